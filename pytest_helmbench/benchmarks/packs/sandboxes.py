"""The sandbox of a process: looked for when the first row needs it, closed at the end."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from pytest_helmbench.sandbox.box import Engine, Unavailable
from pytest_helmbench.sandbox.detection import find_engine

__all__ = ["Sandboxes"]


class Sandboxes:
    """Finds the engine once.

    Args:
        mode: `--helmbench-sandbox`.
        pull: Images may be fetched.
        note: Says something in the summary.
    """

    def __init__(self, mode: str, *, pull: bool, note: Callable[[str], None]) -> None:
        self._mode = mode
        self._pull = pull
        self._note = note
        self._search: asyncio.Task[Engine | Unavailable] | None = None

    async def engine(self) -> Engine | Unavailable:
        """Return what runs foreign code here, or why nothing does."""
        if self._search is None:
            self._search = asyncio.get_running_loop().create_task(self._find())
        return await asyncio.shield(self._search)

    async def close(self) -> None:
        """Remove everything that is still there."""
        if self._search is None:
            return
        engine = await self._search
        if not isinstance(engine, Unavailable):
            await engine.close()

    async def _find(self) -> Engine | Unavailable:
        engine = await find_engine(self._mode, pull=self._pull)
        if not isinstance(engine, Unavailable) and engine.warning:
            self._note(engine.warning)
        return engine
