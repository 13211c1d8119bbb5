"""The sandbox of a process: looked for when the first row needs it, closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pytest_helmbench.core.users_word import NOT_ALLOWED, UsersWord
from pytest_helmbench.sandbox.box import Engine, Unavailable
from pytest_helmbench.sandbox.detection import find_engine
from pytest_helmbench.sandbox.fence import Fence, find_fence
from pytest_helmbench.sandbox.owners import remove_leftover_folders

__all__ = ["Sandboxes"]


class Sandboxes:
    """Finds the engine once.

    Args:
        mode: `--helmbench-sandbox`.
        pull: Images may be fetched.
        unprotected: The user's own agent may run without a fence.
        note: Says something in the summary.
    """

    def __init__(
        self,
        mode: UsersWord[str],
        *,
        pull: UsersWord[bool],
        note: Callable[[str], None],
        unprotected: UsersWord[bool] = NOT_ALLOWED,
    ) -> None:
        self._unprotected = unprotected
        self._fencing: asyncio.Task[Fence | Unavailable] | None = None
        self._mode = mode
        self._pull = pull
        self._note = note
        self._search: asyncio.Task[Engine | Unavailable] | None = None

    async def engine(self) -> Engine | Unavailable:
        """Return what runs foreign code here, or why nothing does."""
        if self._search is None:
            self._search = asyncio.get_running_loop().create_task(self._find())
        return await asyncio.shield(self._search)

    async def fence(self) -> Fence | Unavailable | None:
        """Return what keeps the user's own agent in, or why there is nothing; None where it may run without."""
        if self._fencing is None:
            self._fencing = asyncio.get_running_loop().create_task(find_fence(self._mode))
            found = await asyncio.shield(self._fencing)
            if isinstance(found, Unavailable) and self._unprotected:
                self._note("the agent ran with your rights (--helmbench-unprotected)")
        found = await asyncio.shield(self._fencing)
        return None if isinstance(found, Unavailable) and self._unprotected else found

    async def remove_leftovers(self) -> None:
        """Remove what processes of this machine have left that were killed."""
        engine = await self.engine()
        if not isinstance(engine, Unavailable):
            await asyncio.to_thread(remove_leftover_folders)
            await engine.remove_leftovers()

    async def close(self) -> None:
        """Remove everything that is still there."""
        fence = None if self._fencing is None else await self._fencing
        if isinstance(fence, Fence):
            await fence.close()
        if self._search is None:
            return
        engine = await self._search
        if not isinstance(engine, Unavailable):
            await engine.close()

    async def _find(self) -> Engine | Unavailable:
        return await find_engine(self._mode, pull=self._pull)
