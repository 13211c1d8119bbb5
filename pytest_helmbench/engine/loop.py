"""The event loop of a process, in a thread of its own; its clock; and the process closed to others."""

from __future__ import annotations

import asyncio
import ctypes
import sys
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Future, wait
from typing import Any, TypeVar

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.threads import start_thread

_PR_SET_DUMPABLE = 4
T = TypeVar("T")
_SLICE_S = 0.5
_STUCK_S = 1.5
_TICK_S = 0.5
_STANDSTILL_S = 2.0  # no loop that runs leaves out its ticks for so long


def close_to_others() -> None:
    """Keep programs of the same user from reading our environment and memory, and from writing into it.

    `/proc/PID/environ` and `/proc/PID/mem` belong to root then. Elsewhere than on Linux nothing is done.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


class LoopEndedError(HelmbenchError):
    """The thread of a loop has ended, so that nothing comes of what was scheduled."""


class LoopThread:
    """An asyncio loop that runs in a daemon thread until `close`, or until something on it is lost for want of memory.

    Raises:
        HelmbenchError: The system lets no thread start.
    """

    def __init__(self) -> None:
        self.ending = False
        """Nothing more should be started."""
        self._stuck = False
        self._came_round = 0.0
        self._failure: BaseException | None = None
        self._on_failure: Callable[[], object] = lambda: None
        close_to_others()  # a process with a loop has keys, or runs foreign code
        self._loop = asyncio.new_event_loop()
        self._loop.set_exception_handler(self._on_error)
        self._thread = start_thread(self._run, "helmbench-engine")

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The loop, for scheduling from other threads."""
        return self._loop

    @property
    def alive(self) -> bool:
        """Whether the loop's thread runs what is scheduled."""
        return self._thread.is_alive()

    @property
    def ended(self) -> LoopEndedError:
        """The error of a caller that waits for a loop that has ended."""
        why = "" if self._failure is None else f" ({type(self._failure).__name__})"
        return LoopEndedError(
            f"the engine's thread has ended{why}: nothing more is asked\n  hint: what was stored is intact; with more"
            " memory, or fewer calls at once (--helmbench-concurrency), go on with --helmbench-resume"
        )

    def listen(self, on_failure: Callable[[], object]) -> None:
        """Call a function when the loop ends by itself, on its thread."""
        self._on_failure = on_failure

    def fail(self, error: BaseException) -> None:
        """End the loop: what a caller waits for was lost. On the loop's thread."""
        self._failure = self._failure or error
        self._loop.stop()

    def _on_error(self, loop: asyncio.AbstractEventLoop, about: dict[str, Any]) -> None:
        error = about.get("exception")
        if isinstance(error, MemoryError):
            self.fail(error)
        else:
            loop.default_exception_handler(about)

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
            LoopEndedError: The thread has ended.
        """
        if not self.alive:
            coroutine.close()
            raise self.ended
        future: Future[T] = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        # Short slices: Windows delivers Ctrl-C only between them, and the thread may end before it answers.
        while not wait((future,), _SLICE_S).done:
            if not self.alive:
                raise self.ended
        return future.result()

    def run_last(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run what ends a session: a loop that has ended, or has not come round for a while, is left alone.

        A rule of a benchmark may be at work on it, and take however long.
        """
        if self._stuck or not self.alive:
            coroutine.close()
            return
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self.soon(self._come_round)
        self._came_round = time.monotonic()
        while self.alive and not self._stuck and not wait((future,), _SLICE_S).done:
            self._stuck = time.monotonic() - self._came_round > _STUCK_S
        if future.done():
            future.result()

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
        try:
            self._loop.run_forever()
        except BaseException as error:
            self.fail(error)
            raise
        finally:
            self.ending = True
            if self._failure is not None:
                self._on_failure()
        tasks = asyncio.all_tasks(self._loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        self._loop.run_until_complete(self._loop.shutdown_asyncgens())


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
