"""The event loop of a process, in a thread of its own; its clock; and the process closed to others."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

_PR_SET_DUMPABLE = 4


def close_to_others() -> None:
    """Keep programs of the same user from reading our environment and memory, and from writing into it.

    `/proc/PID/environ` and `/proc/PID/mem` belong to root then. Elsewhere than on Linux nothing is done.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


T = TypeVar("T")

_SLICE_S = 0.5
_STUCK_S = 1.5


class LoopThread:
    """An asyncio loop that runs in a daemon thread until `close`."""

    def __init__(self) -> None:
        self.ending = False
        """Nothing more should be started."""
        self._stuck = False
        self._came_round = 0.0
        close_to_others()  # a process with a loop has keys, or runs foreign code
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

    def run_last(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run what ends a session: a loop that has not come round for a while is left alone.

        Somebody's rule may be at work on it, and take however long.

        Raises:
            RuntimeError: The thread has ended.
        """
        if self._stuck or not self.alive:
            coroutine.close()
            if self._stuck:
                return
            raise RuntimeError("the engine's thread has ended")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self.soon(self._come_round)
        self._came_round = time.monotonic()
        while self.alive and not self._stuck and not wait((future,), _SLICE_S).done:
            self._stuck = time.monotonic() - self._came_round > _STUCK_S
        if future.done():
            future.result()
        elif not self._stuck:
            raise RuntimeError("the engine's thread has ended")

    def _come_round(self) -> None:
        self._came_round = time.monotonic()
        self._loop.call_later(_SLICE_S, self._come_round)

    def close(self) -> None:
        """Cancel what is left, stop the loop, join the thread; see `run_last` for one that does not come round."""
        if self._loop.is_closed() or self._stuck:
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


_TICK_S = 0.5
_STANDSTILL_S = 2.0  # no loop that runs leaves out its ticks for so long


class AwakeClock:
    """Monotonic seconds, without those in which nothing in this process ran.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._lost_s = 0.0
        self._ticks = False

    def __call__(self) -> float:
        """Return the seconds."""
        now = self._clock()
        gap_s = now - self._last
        if self._ticks and gap_s > _STANDSTILL_S:
            self._lost_s += gap_s - _TICK_S
        self._last = now
        return now - self._lost_s

    def start(self) -> None:
        """Look at the time twice a second from now on, on the running loop; until then nothing is left out."""
        if not self._ticks:
            self()
            self._ticks = True
            self._tick()

    def _tick(self) -> None:
        self()
        asyncio.get_running_loop().call_later(_TICK_S, self._tick)
