"""Tools of a pack's rows while they are run and judged: settings, files, the sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles
from pytest_helmbench.core.granted import NOT_ALLOWED, NOTHING_NAMED, Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.sandbox.box import Engine, Unavailable
from pytest_helmbench.sandbox.detection import find_engine
from pytest_helmbench.sandbox.fence import Fence, find_fence


@dataclass(frozen=True, slots=True)
class PackSettings:
    """How packs are run and judged.

    Args:
        parity: By the published rules instead of those made for what models really write.
        show_hidden: Verdicts may show hidden values.
        allow_commands: Dangerous commands that a row may need.
        answer_form: How rows ask for their answers; None for what they say themselves.
    """

    parity: bool = False
    show_hidden: bool = False
    allow_commands: Granted[tuple[str, ...]] = NOTHING_NAMED
    answer_form: str | None = None


@dataclass(frozen=True, slots=True)
class RowTools:
    """The values that the rows of a pack share.

    Args:
        settings: How the session runs and judges packs.
        files: The files of the pack.
        sandboxes: The sandbox engine of this process, looked for once.
    """

    settings: PackSettings
    files: PackFiles
    sandboxes: Sandboxes

    async def engine(self) -> Engine:
        """Return what runs foreign code here.

        Raises:
            UnjudgedError: Nothing does.
        """
        engine = await self.sandboxes.engine()
        if isinstance(engine, Unavailable):
            raise UnjudgedError(Outcome(Verdict.SKIPPED, engine.code, engine.reason))
        return engine

    async def fence(self) -> Fence | None:
        """Return what keeps the user's own agent in; None where it runs with his rights, as he has said.

        Raises:
            UnjudgedError: There is nothing, and he has not.
        """
        fence = await self.sandboxes.fence()
        if isinstance(fence, Unavailable):
            raise UnjudgedError(Outcome(Verdict.SKIPPED, "no_sandbox", fence.reason))
        return fence

    async def obstacle(self, image: str | None) -> Unavailable | None:
        """Return why nothing runs foreign code here in an image; None when it can be run."""
        engine = await self.sandboxes.engine()
        return engine if isinstance(engine, Unavailable) else await engine.obstacle(image)


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
        mode: Granted[str],
        *,
        pull: Granted[bool],
        note: Callable[[str], None],
        unprotected: Granted[bool] = NOT_ALLOWED,
    ) -> None:
        self._unprotected = unprotected
        self._fencing: asyncio.Task[Fence | Unavailable] | None = None
        self._mode = mode
        self._pull = pull
        self.note = note
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
                self.note("the agent ran with your rights (--helmbench-unprotected)")
        found = await asyncio.shield(self._fencing)
        return None if isinstance(found, Unavailable) and self._unprotected else found

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
