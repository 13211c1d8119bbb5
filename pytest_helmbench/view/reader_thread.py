"""A thread that reads the results file, so that the server answers meanwhile; it keeps no program from ending."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["ReaderThread"]

_Read = TypeVar("_Read")


class ReaderThread:
    """One thread, one thing at a time, in the order they were asked for.

    Args:
        name: Of the thread.
    """

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name=name, daemon=True).start()

    async def read(self, act: Callable[[], _Read]) -> _Read:
        """Return what a function returns, or raise what it raises."""

        async def call() -> _Read:
            return act()

        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))
