"""The event loop of a process, in a thread of its own."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

__all__ = ["LoopThread"]

T = TypeVar("T")

_SLICE_S = 0.5


class LoopThread:
    """An asyncio loop that runs in a daemon thread until `close`."""

    def __init__(self) -> None:
        self.ending = False
        """Nothing more should be started."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="helmbench-engine", daemon=True)
        self._thread.start()

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, for scheduling from other threads."""
        return self._loop

    @property
    def alive(self) -> bool:
        """Whether somebody runs what is scheduled."""
        return self._thread.is_alive()

    def soon(self, function: Callable[..., object], *args: object) -> None:
        """Call a function on the loop, from any thread; nothing happens once the loop is closed."""
        try:
            self._loop.call_soon_threadsafe(function, *args)
        except RuntimeError:
            if not self._loop.is_closed():
                raise

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the loop and wait for its result.

        Raises:
            RuntimeError: The thread has ended.
        """
        if not self.alive:
            coroutine.close()
            raise RuntimeError("the engine's thread has ended")
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        # Short slices: Windows delivers Ctrl-C only between them, and the thread may end before it answers.
        while not wait((future,), _SLICE_S).done:
            if not self.alive:
                raise RuntimeError("the engine's thread has ended")
        return future.result()

    def close(self) -> None:
        """Cancel what is left, stop the loop, join the thread."""
        if self._loop.is_closed():
            return
        self.soon(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()
        self.ending = True
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())
