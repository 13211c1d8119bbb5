"""The engine: starts jobs in order ahead of those who wait for them, and never more than it may.

It knows order, window and cancelling; what a job does is passed in.
"""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Generic, Protocol, TypeVar

from pytest_helmbench.bench.outcome import Outcome
from pytest_helmbench.bench.problem import HelmbenchError
from pytest_helmbench.engine.loop import LoopThread

__all__ = ["CancelledRunError", "Engine", "Job", "Progress"]

_TICK_S = 1.0


class CancelledRunError(HelmbenchError):
    """The run was cancelled while somebody waited for an outcome."""


class Job(Protocol):
    """A piece of work: hashable by identity, with the lane whose limit it falls under."""

    @property
    def lane(self) -> str:
        """Name of the lane (a model id)."""


JobT = TypeVar("JobT", bound=Job)


class Progress(Generic[JobT]):
    """What a running job may tell the engine. One per job."""

    def __init__(self, engine: Engine[JobT], job: JobT) -> None:
        self._engine = engine
        self.job = job
        self.sending = 0
        self.started = time.monotonic()

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """While a job waits for a retry it holds no place: others may start."""
        self._engine._resting(self.job, 1)
        try:
            yield
        finally:
            self._engine._resting(self.job, -1)

    @contextmanager
    def on_the_wire(self) -> Iterator[None]:
        """While a request of the job is out, a cancelled run grants it a short grace."""
        self.sending += 1
        try:
            yield
        finally:
            self.sending -= 1


class Engine(Generic[JobT]):
    """Runs jobs on a loop thread; the main thread takes the outcomes one by one.

    Args:
        loop: Where jobs run.
        work: Turns a job into its outcome; raises only what is a bug, or `asyncio.CancelledError`.
        width: Places per lane name, and in all under the empty name; a resting job holds none.
        window: Most jobs that may have started without their outcome being taken.
    """

    def __init__(
        self,
        loop: LoopThread,
        work: Callable[[JobT, Progress[JobT]], Awaitable[Outcome]],
        width: Callable[[str], int],
        window: int,
    ) -> None:
        self._loop = loop
        self._work = work
        self._width = width
        self._window = window
        self._queues: dict[str, deque[tuple[int, JobT]]] = {}
        self._active: dict[str, int] = {}
        self._active_in_all = 0
        self._numbers = itertools.count()
        self._launched = 0
        self._taken = 0  # written by the waiting thread only
        self._window_full = False
        self._running: dict[JobT, tuple[asyncio.Task[None], Progress[JobT]]] = {}
        self._queued: set[JobT] = set()
        self._done: dict[JobT, Outcome | BaseException] = {}
        self._lock = threading.Condition()
        self._awaited: JobT | None = None
        self._cancelled: str | None = None
        self.finished = 0

    def start(self, jobs: Sequence[JobT]) -> None:
        """Begin with these jobs, in this order; more may be added later."""
        self._loop.soon(self._enqueue, tuple(jobs))

    def obtain(self, job: JobT, tick: Callable[[], None] = lambda: None) -> Outcome:
        """Wait for the outcome of a job and take it; a job that nobody has started is started now.

        Args:
            job: Any job, from any thread but the loop's; one waiter at a time.
            tick: Called about once a second while waiting.

        Raises:
            CancelledRunError: The run was cancelled first.
        """
        with self._lock:
            if job not in self._done:
                self._awaited = job
                if job not in self._running:
                    self._loop.soon(self._want, job)
                # Short slices: Windows delivers Ctrl-C only between them.
                while job not in self._done and self._cancelled is None:
                    if not self._lock.wait(_TICK_S):
                        tick()
                self._awaited = None
            result = self._done.pop(job, None)
        if result is None:
            raise CancelledRunError(self._cancelled or "")
        if isinstance(result, BaseException):
            raise result
        self._taken += 1
        if self._window_full:
            self._loop.soon(self._fill)
        return result

    def cancel(self, reason: str, grace_s: float) -> None:
        """End the run: nothing starts, waiters end at once, calls on the wire get a short grace.

        Returns when everything has ended.
        """
        with self._lock:
            if self._cancelled is None:
                self._cancelled = reason
            self._lock.notify_all()
        self._loop.run(self._wind_down(grace_s))

    def drop_queued(self, reason: str) -> None:
        """Let nothing new start and wake the waiter; what runs goes on. From any thread."""
        with self._lock:
            self._cancelled = reason
            self._lock.notify_all()

    def in_flight(self) -> list[tuple[JobT, float]]:
        """Return the jobs that run now with their age in seconds, the oldest first."""
        now = time.monotonic()
        running = [(job, now - progress.started) for job, (_, progress) in tuple(self._running.items())]
        return sorted(running, key=lambda pair: -pair[1])

    # Everything below runs on the loop.

    def _enqueue(self, jobs: Iterable[JobT]) -> None:
        for job in jobs:
            if job not in self._queued and job not in self._running and job not in self._done:
                self._queues.setdefault(job.lane, deque()).append((next(self._numbers), job))
                self._queued.add(job)
        self._fill()

    def _want(self, job: JobT) -> None:
        """Start a job that is waited for, whatever the window says."""
        # Its outcome may have come, and been taken, before this call was made: then nobody waits any more.
        if self._awaited is not job or job in self._running or job in self._done or self._cancelled is not None:
            return
        self._launch(job)

    def _fill(self) -> None:
        while self._cancelled is None and self._active_in_all < self._width(""):
            # The flag goes up before the count is read: a taker in between wakes us once more.
            self._window_full = True
            if self._launched - self._taken >= self._window:
                return
            self._window_full = False
            job = self._next_job()
            if job is None:
                return
            self._launch(job)

    def _next_job(self) -> JobT | None:
        """Return the earliest queued job whose lane has a place."""
        best: tuple[int, str] | None = None
        for lane, queue in self._queues.items():
            while queue and queue[0][1] not in self._queued:
                queue.popleft()  # somebody waited for it and it was started out of turn
            if (
                queue
                and self._active.get(lane, 0) < self._width(lane)
                and (best is None or queue[0][0] < best[0])
            ):
                best = (queue[0][0], lane)
        return self._queues[best[1]].popleft()[1] if best is not None else None

    def _launch(self, job: JobT) -> None:
        self._queued.discard(job)
        self._launched += 1
        self._count(job, 1)
        progress = Progress(self, job)
        task = asyncio.get_running_loop().create_task(self._run(job, progress))
        self._running[job] = (task, progress)

    async def _run(self, job: JobT, progress: Progress[JobT]) -> None:
        result: Outcome | BaseException
        try:
            result = await self._work(job, progress)
        except asyncio.CancelledError:
            if self._cancelled is None:
                raise
            result = CancelledRunError(self._cancelled)
        except BaseException as error:  # noqa: BLE001 - a bug in a job must reach its waiter, not hang it
            result = error
        self._count(job, -1)
        del self._running[job]
        self.finished += 1
        with self._lock:
            self._done[job] = result
            if self._awaited is job:
                self._lock.notify_all()
        self._fill()

    def _resting(self, job: JobT, change: int) -> None:
        self._count(job, -change)
        if change > 0:
            self._fill()

    def _count(self, job: JobT, change: int) -> None:
        self._active[job.lane] = self._active.get(job.lane, 0) + change
        self._active_in_all += change

    async def _wind_down(self, grace_s: float) -> None:
        waiting = [task for task, progress in self._running.values() if not progress.sending]
        for task in waiting:
            task.cancel()
        tasks = [task for task, _ in self._running.values()]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=grace_s)
            for task in late:
                task.cancel()
            if late:
                await asyncio.wait(late)
