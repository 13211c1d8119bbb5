"""The job queue: starts jobs in order ahead of those who wait for them, and never more than it may.

It knows order, window and cancelling; what a job does is passed in.
"""

from __future__ import annotations

import asyncio
import itertools
import queue
import time
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, Protocol, TypeVar

from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.call import CallWatch

_TICK_S = 1.0
_LAST_S = 1.0  # for what does not even end when it is cancelled


class CancelledRunError(HelmbenchError):
    """The run was cancelled while an outcome was waited for."""


class Queued(Protocol):
    """A piece of work: hashable by identity, with the model whose limits it falls under."""

    @property
    def model_id(self) -> str:
        """The model id."""

    @property
    def goes_singly(self) -> bool:
        """Whether none of its calls may go in a batch."""


JobT = TypeVar("JobT", bound=Queued)


class Progress(CallWatch, Generic[JobT]):
    """The engine as a running job sees it. One per job."""

    def __init__(self, queue: JobQueue[JobT], job: JobT) -> None:
        self._queue = queue
        self.job = job
        self.sending = 0
        self.has_sent = False
        self.given_up = ""
        self.may_wait = not job.goes_singly
        self.started = time.monotonic()
        self._refused = False

    def check(self) -> None:
        """Raise `asyncio.CancelledError` once the run is cancelled: nothing more may be sent."""
        if self._queue.cancelled is not None:
            self._refused = True
            raise asyncio.CancelledError(self._queue.cancelled)

    def check_whole(self) -> None:
        """Raise `asyncio.CancelledError` where the end of the run has kept a request of the job from being sent.

        Foreign code may have taken that for an answer, and its result would not be an outcome.
        """
        if self._refused:
            raise asyncio.CancelledError(self._queue.cancelled)

    @contextmanager
    def asleep(self) -> Iterator[None]:
        """While a job waits for a retry it holds no place: others may start."""
        self._queue._resting(self.job, 1)
        try:
            yield
        finally:
            self._queue._resting(self.job, -1)

    def on_the_wire(self) -> _OnTheWire:
        """While a request of the job is out, a cancelled run grants it a short grace."""
        return _OnTheWire(self)


class _OnTheWire:
    __slots__ = ("_progress",)

    def __init__(self, progress: Progress[Any]) -> None:
        self._progress = progress

    def __enter__(self) -> None:
        self._progress.sending += 1
        self._progress.has_sent = True

    def __exit__(self, *_error: object) -> None:
        self._progress.sending -= 1


class JobQueue(Generic[JobT]):
    """Runs jobs on a loop thread; the main thread takes the outcomes one by one.

    Both threads share plain attributes and no lock: Ctrl-C may hit the main thread at any bytecode, and a lock
    that it held then would stay held. Comments say where their order matters.

    Args:
        work: Turns a job into its outcome; raises only what is a bug, or `asyncio.CancelledError`.
        width: Places per queue; a resting job holds none.
        window: How far beyond the job whose outcome was taken last others may start.
        queue_of: The queue of a model's jobs. In a queue of several models a job of another model starts when those
            of the one before have ended: between two calls a job may be busy with other things.
    """

    def __init__(
        self,
        loop: LoopThread,
        work: Callable[[JobT, Progress[JobT]], Awaitable[Outcome]],
        width: Callable[[str], int],
        window: int,
        queue_of: Callable[[str], str] = str,
    ) -> None:
        self._loop = loop
        self._work = work
        self._width = width
        self._window = window
        self._queue_of = queue_of
        self._queues: dict[str, deque[tuple[int, JobT]]] = {}
        self._active: Counter[str] = Counter()
        self._active_of: Counter[str] = Counter()  # by model
        self._numbers = itertools.count()
        # Behind the number of the job that was taken last. Written by the waiting thread only.
        self._position = 0
        self._window_full = False
        self._running: dict[JobT, tuple[asyncio.Task[None], Progress[JobT]]] = {}
        self._queued: dict[JobT, int] = {}
        self._done: dict[JobT, tuple[int, Outcome | BaseException]] = {}
        self._awaited: JobT | None = None
        self._wake: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._ending: asyncio.Task[None] | None = None
        self._in_a_hurry = asyncio.Event()
        self.cancelled: str | None = None
        self.finished = 0

    def start(self, jobs: Sequence[JobT]) -> None:
        """Begin with these jobs, in this order; more may be added later."""
        self._loop.soon(self._enqueue, tuple(jobs))

    def obtain(self, job: JobT, tick: Callable[[], None] = lambda: None) -> Outcome:
        """Wait for the outcome of a job and take it; a job that was not started is started now.

        Args:
            job: Any job, from any thread but the loop's; one waiter at a time.
            tick: Called about once a second while waiting.

        Raises:
            CancelledRunError: The run was cancelled first.
            LoopEndedError: The loop's thread has ended.
        """
        # Said before looking: an outcome that comes after the look finds a waiter to wake.
        self._awaited = job
        try:
            if job not in self._done and job not in self._running:
                self._loop.soon(self._want, job)
            while job not in self._done and self.cancelled is None:
                self._wait(tick)
        finally:
            self._awaited = None  # before the outcome is taken, see `_want`
        number, result = self._done.pop(job, (-1, None))
        if result is None:
            raise CancelledRunError(self.cancelled or "")
        self._position = max(self._position, number + 1)
        if self._window_full:
            self._loop.soon(self._fill)
        if isinstance(result, BaseException):
            raise result
        return result

    def give_up(self, job: JobT, why: str) -> Outcome | None:
        """End a job that its waiter waits for no longer, and return its outcome; None where nothing of it was sent.

        Args:
            job: In `obtain` until now.
            why: A sentence, for the outcome.
        """
        self._loop.run(self._end_one(job, why))
        return self.obtain(job) if job in self._done else None

    def launch(self, job: JobT) -> None:
        """Start a job now, whatever the window says; `obtain` takes its outcome."""
        self._loop.soon(self._launch_at_once, job)

    def ready_outcome(self, job: JobT) -> Outcome | None:
        """Return the outcome that `obtain` would not have to wait for; it stays to be taken. None for an error too."""
        _, result = self._done.get(job, (-1, None))
        return result if isinstance(result, Outcome) else None

    def has_ended(self, job: JobT) -> bool:
        """Return whether there is nothing more to wait for: a job has ended, or everything has."""
        return job in self._done or self.cancelled is not None or not self._loop.alive

    def cancel(self, reason: str, grace_s: float) -> None:
        """End the run: nothing starts, waiters end at once, calls on the wire get a short grace.

        Returns when everything has ended, or a job keeps the loop to itself.
        """
        self.drop_queued(reason, grace_s)
        self._loop.run_last(self._ended())

    def drop_queued(self, reason: str, grace_s: float) -> None:
        """Begin to cancel: let nothing new be sent, wake the waiter, and return. From any thread."""
        if self.cancelled is None:
            self.cancelled = reason
        self._wake.put(None)
        self._loop.soon(self._begin_end, grace_s)

    def hurry(self) -> None:
        """Let calls on the wire have no more grace. From any thread."""
        self._loop.soon(self._in_a_hurry.set)

    def in_flight(self) -> list[tuple[JobT, float]]:
        """Return the jobs that run now with their age in seconds, the oldest first."""
        now = time.monotonic()
        running = [(job, now - progress.started) for job, (_, progress) in tuple(self._running.items())]
        return sorted(running, key=lambda pair: -pair[1])

    def _wait(self, tick: Callable[[], None]) -> None:
        """Wait for a sign in short slices: Windows delivers Ctrl-C only between them."""
        try:
            self._wake.get(timeout=_TICK_S)
        except queue.Empty:
            if not self._loop.alive:
                raise self._loop.ended from None
            tick()

    # Everything below runs on the loop.

    def _enqueue(self, jobs: Iterable[JobT]) -> None:
        for job in jobs:
            if job not in self._queued and job not in self._running and job not in self._done:
                self._queued[job] = number = next(self._numbers)
                self._queues.setdefault(self._queue_of(job.model_id), deque()).append((number, job))
        self._fill()

    def _want(self, job: JobT) -> None:
        """Start a job that is waited for, whatever the window says."""
        # In this order: a waiter stops waiting first and takes the outcome then, so a job that is neither
        # running nor done but still awaited has not been run for it.
        if job in self._running or job in self._done or self._awaited is not job:
            return
        if self.cancelled is not None:
            return
        self._launch(job)

    def _launch_at_once(self, job: JobT) -> None:
        if self.cancelled is None and job not in self._running and job not in self._done:
            self._launch(job)

    def _fill(self) -> None:
        while self.cancelled is None and not self._loop.ending:
            # The flag goes up before the position is read: a taker in between wakes us once more.
            self._window_full = True
            first = self._first_job()
            if first is not None and first[0] >= self._position + self._window:
                return
            self._window_full = False
            if first is None:
                return
            self._launch(first[1])

    def _first_job(self) -> tuple[int, JobT] | None:
        """Return the earliest queued job whose model has a place."""
        best: tuple[int, JobT] | None = None
        for queue_name, jobs in self._queues.items():
            while jobs and jobs[0][1] not in self._queued:
                jobs.popleft()  # it was started
            if jobs and (best is None or jobs[0][0] < best[0]) and self._has_place(queue_name, jobs[0][1]):
                best = jobs[0]
        return best

    def _has_place(self, queue_name: str, job: JobT) -> bool:
        active = self._active[queue_name]
        return active < self._width(queue_name) and active == self._active_of[job.model_id]

    def _launch(self, job: JobT) -> None:
        number = self._queued.pop(job, -1)
        self._take_places(job, 1)
        progress = Progress(self, job)
        task = asyncio.get_running_loop().create_task(self._run(job, number, progress))
        self._running[job] = (task, progress)

    async def _run(self, job: JobT, number: int, progress: Progress[JobT]) -> None:
        result: Outcome | BaseException
        try:
            result = await self._work(job, progress)
        except asyncio.CancelledError:
            if self.cancelled is not None:
                result = CancelledRunError(self.cancelled)
            else:
                result = (
                    self._loop.ended if self._loop.ending else RuntimeError("the job was cancelled alone")
                )
        except BaseException as error:  # noqa: BLE001 - a bug in a job must reach its waiter, not hang it
            result = error
        try:
            self._settle(job, number, result)
        except BaseException as error:
            self._loop.fail(error)
            raise

    def _settle(self, job: JobT, number: int, result: Outcome | BaseException) -> None:
        # Done before it runs no longer: a look at both misses nothing.
        self._done[job] = (number, result)
        del self._running[job]
        if self._awaited is job:
            # Behind what came in the same moment: the waiter then finds it done, and wakes less often.
            asyncio.get_running_loop().call_soon(self._wake.put, None)
        self._take_places(job, -1)
        self.finished += 1
        self._fill()

    def _resting(self, job: JobT, change: int) -> None:
        self._take_places(job, -change)
        if change > 0:
            self._fill()

    def _take_places(self, job: JobT, change: int) -> None:
        self._active[self._queue_of(job.model_id)] += change
        self._active_of[job.model_id] += change

    async def _end_one(self, job: JobT, why: str) -> None:
        task, progress = self._running.get(job, (None, None))
        if task is None or progress is None or not progress.has_sent:
            return
        progress.given_up = why
        task.cancel()
        await asyncio.wait((task,), timeout=_LAST_S)

    def _begin_end(self, grace_s: float) -> None:
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._wind_down(grace_s))

    async def _ended(self) -> None:
        if self._ending is not None:
            await self._ending

    async def _wind_down(self, grace_s: float) -> None:
        for task, progress in tuple(self._running.values()):
            if not progress.sending:
                task.cancel()
        tasks = [task for task, _ in self._running.values()]
        if not tasks:
            return
        hurry = asyncio.ensure_future(self._in_a_hurry.wait())
        ends = asyncio.ensure_future(asyncio.wait(tasks))
        await asyncio.wait((ends, hurry), timeout=grace_s, return_when=asyncio.FIRST_COMPLETED)
        hurry.cancel()
        ends.cancel()
        late = [task for task in tasks if not task.done()]
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=_LAST_S)
