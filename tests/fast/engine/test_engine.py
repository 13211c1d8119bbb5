"""The engine: order, places, window, cancelling, and that no waiter is ever left waiting."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from waiting import PATIENCE_S, until, until_async

from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.engine.job_queue import CancelledRunError, JobQueue, Progress
from pytest_helmbench.engine.loop import LoopEndedError, LoopThread

_GRACE_S = 0.2


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    name: str
    model_id: str = "m"
    goes_singly: bool = False


_Work = Callable[[_Job, Progress[_Job]], Awaitable[Outcome]]


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread()
    yield thread
    thread.close()


def _outcome(job: _Job) -> Outcome:
    return Outcome(Verdict.PASSED, message=job.name)


def _engine(loop: LoopThread, work: _Work, places: int = 4, window: int = 100) -> JobQueue[_Job]:
    return JobQueue(loop, work, lambda _model_limits: places, window)


def _jobs(count: int, model_id: str = "m") -> list[_Job]:
    return [_Job(f"{model_id}{number}", model_id) for number in range(count)]


class _Recorder:
    """Work that records who started, and ends when it is let go."""

    def __init__(self) -> None:
        self.started: list[str] = []
        self.at_once = 0
        self.most_at_once = 0
        self.free = threading.Event()

    async def __call__(self, job: _Job, progress: Progress[_Job]) -> Outcome:
        self.started.append(job.name)
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        while not self.free.is_set():  # noqa: ASYNC110 - set from another thread
            await asyncio.sleep(0.002)
        self.at_once -= 1
        return _outcome(job)


def test_jobs_start_in_order_within_their_places_and_each_outcome_finds_its_waiter(loop: LoopThread) -> None:
    work = _Recorder()
    engine = _engine(loop, work, places=4)
    jobs = _jobs(20)
    engine.start(jobs)
    until(lambda: len(work.started) == 4)
    assert [job.name for job, _ in engine.in_flight()] == ["m0", "m1", "m2", "m3"]
    work.free.set()
    assert [engine.obtain(job).message for job in jobs] == [job.name for job in jobs]
    assert work.started == [job.name for job in jobs]
    assert work.most_at_once == 4


def test_a_model_whose_calls_are_stuck_takes_no_place_of_another(loop: LoopThread) -> None:
    work = _Recorder()

    async def stuck(job: _Job, progress: Progress[_Job]) -> Outcome:
        if job.model_id == "slow":
            return await work(job, progress)
        return _outcome(job)

    engine = _engine(loop, stuck, places=3)
    slow, quick = _jobs(20, "slow"), _jobs(20, "quick")
    engine.start([job for pair in zip(slow, quick, strict=True) for job in pair])
    assert engine.obtain(quick[-1]).message == "quick19"
    assert work.most_at_once == 3
    work.free.set()
    assert engine.obtain(slow[-1]).message == "slow19"


def test_of_models_in_one_queue_one_starts_when_the_other_has_ended(loop: LoopThread) -> None:
    work = _Recorder()
    one, other = _jobs(3, "one"), _jobs(3, "other")
    engine: JobQueue[_Job] = JobQueue(loop, work, lambda _queue: 4, 100, lambda _model_id: "server")
    engine.start([*one, *other])
    until(lambda: len(work.started) == 3)
    time.sleep(0.05)  # the fourth place stays free: the jobs may have more to ask
    assert work.started == ["one0", "one1", "one2"]
    work.free.set()
    assert [engine.obtain(job).message for job in (*one, *other)] == work.started
    assert work.started == [job.name for job in (*one, *other)]


def test_no_more_outcomes_wait_than_the_window_holds(loop: LoopThread) -> None:
    work = _Recorder()
    work.free.set()
    engine = _engine(loop, work, window=5)
    jobs = _jobs(20)
    engine.start(jobs)
    until(lambda: engine.finished == 5)
    time.sleep(0.05)
    assert len(work.started) == 5
    engine.obtain(jobs[0])
    until(lambda: len(work.started) == 6)


def test_an_item_gets_its_outcome_though_the_window_is_full_of_others(loop: LoopThread) -> None:
    work = _Recorder()
    work.free.set()
    engine = _engine(loop, work, window=3)
    jobs = _jobs(10)
    engine.start(jobs)
    until(lambda: engine.finished == 3)
    assert engine.obtain(jobs[9]).message == "m9"
    never_started = _Job("on demand")
    assert engine.obtain(never_started).message == "on demand"


def test_outcomes_that_nobody_takes_do_not_clog_the_window_for_good(loop: LoopThread) -> None:
    work = _Recorder()
    work.free.set()
    engine = _engine(loop, work, window=4)
    jobs = _jobs(40)
    engine.start(jobs)
    for job in jobs[4:20]:  # a hook of another plugin skipped the first four
        engine.obtain(job)
    until(lambda: len(work.started) >= 23)  # three or more are ahead of the twentieth again


def test_a_job_runs_once_however_closely_its_waiter_and_its_end_meet(loop: LoopThread) -> None:
    runs: Counter[str] = Counter()

    async def work(job: _Job, progress: Progress[_Job]) -> Outcome:
        runs[job.name] += 1
        await asyncio.sleep(0)
        return _outcome(job)

    engine = _engine(loop, work, places=2, window=3)
    jobs = _jobs(3000)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        engine.start(jobs)
        for job in jobs:
            assert engine.obtain(job).message == job.name
    finally:
        sys.setswitchinterval(interval)
    assert set(runs.values()) == {1}
    assert engine.in_flight() == []


class _Hesitant(LoopThread):
    """Lets other threads go first when the main thread wants something."""

    def soon(self, function: Callable[..., object], *args: object) -> None:
        if threading.current_thread() is threading.main_thread():
            time.sleep(0.1)
        super().soon(function, *args)


def test_a_job_that_ends_while_its_waiter_is_about_to_start_it_is_not_started_again() -> None:
    loop = _Hesitant()
    work = _Recorder()
    work.free.set()
    engine = _engine(loop, work)
    (job,) = _jobs(1)
    threading.Timer(0.03, engine.start, ([job],)).start()
    assert engine.obtain(job).message == "m0"
    time.sleep(0.05)
    assert work.started == ["m0"]
    loop.close()


def test_a_rerun_asks_again(loop: LoopThread) -> None:
    work = _Recorder()
    work.free.set()
    engine = _engine(loop, work)
    (job,) = _jobs(1)
    engine.start([job])
    engine.obtain(job)
    engine.obtain(job)
    assert work.started == ["m0", "m0"]


def test_a_bug_in_a_job_reaches_its_waiter_and_gives_its_place_back(loop: LoopThread) -> None:
    async def work(job: _Job, progress: Progress[_Job]) -> Outcome:
        if job.name != "m9":
            raise ZeroDivisionError(job.name)
        return _outcome(job)

    engine = _engine(loop, work, places=1, window=1)
    jobs = _jobs(10)
    engine.start(jobs)
    for job in jobs[:9]:
        with pytest.raises(ZeroDivisionError, match=job.name):
            engine.obtain(job)
    assert engine.obtain(jobs[9]).message == "m9"


def test_a_job_that_waits_for_a_retry_lends_its_place(loop: LoopThread) -> None:
    asleep = threading.Event()

    async def work(job: _Job, progress: Progress[_Job]) -> Outcome:
        if job.name == "m0":
            with progress.asleep():
                asleep.set()
                await asyncio.sleep(60)
        return _outcome(job)

    engine = _engine(loop, work, places=1)
    jobs = _jobs(3)
    engine.start(jobs)
    assert asleep.wait(PATIENCE_S)
    assert engine.obtain(jobs[2]).message == "m2"
    engine.cancel("enough", _GRACE_S)


def test_cancelling_wakes_the_waiter_at_once_and_starts_nothing_more(loop: LoopThread) -> None:
    work = _Recorder()
    engine = _engine(loop, work, places=2)
    jobs = _jobs(10)
    engine.start(jobs)
    until(lambda: len(work.started) == 2)
    threading.Timer(0.1, engine.drop_queued, ("the controller said so", _GRACE_S)).start()
    with pytest.raises(CancelledRunError, match="the controller said so"):
        engine.obtain(jobs[5])
    engine.cancel("the session has ended", _GRACE_S)
    assert work.started == ["m0", "m1", "m5"][: len(work.started)]
    assert engine.in_flight() == []
    with pytest.raises(CancelledRunError, match="the controller said so"):
        engine.obtain(jobs[6])


def test_what_is_on_the_wire_gets_a_grace_and_then_sends_nothing_more(loop: LoopThread) -> None:
    ends: dict[str, str] = {}

    async def work(job: _Job, progress: Progress[_Job]) -> Outcome:
        try:
            with progress.on_the_wire():
                await until_async(lambda: job.name != "m2" and engine.cancelled)
            if job.name == "m1":
                progress.check()  # it would ask a judge now
        except asyncio.CancelledError:
            ends[job.name] = "cancelled"
            raise
        ends[job.name] = "done"
        return _outcome(job)

    engine = _engine(loop, work, places=3)
    jobs = _jobs(3)
    engine.start(jobs)
    until(lambda: len(engine.in_flight()) == 3)
    started = time.monotonic()
    engine.cancel("enough", grace_s := 0.5)
    assert grace_s <= time.monotonic() - started
    assert ends == {"m0": "done", "m1": "cancelled", "m2": "cancelled"}
    assert engine.obtain(jobs[0]).message == "m0"


def test_a_job_that_ignores_its_cancellation_does_not_hold_the_end(loop: LoopThread) -> None:
    over = threading.Event()

    async def work(job: _Job, progress: Progress[_Job]) -> Outcome:
        while not over.is_set():
            try:
                await asyncio.sleep(0.01)
            except asyncio.CancelledError:
                continue
        return _outcome(job)

    engine = _engine(loop, work)
    engine.start(_jobs(1))
    until(engine.in_flight)
    engine.cancel("enough", _GRACE_S)
    over.set()


def test_ctrl_c_in_a_waiter_leaves_an_engine_that_can_be_cancelled(loop: LoopThread) -> None:
    work = _Recorder()
    engine = _engine(loop, work)
    jobs = _jobs(3)
    engine.start(jobs)

    def tick() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engine.obtain(jobs[0], tick)
    engine.cancel("interrupted", _GRACE_S)
    assert engine.in_flight() == []


def _out_of_memory() -> None:
    raise MemoryError


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize(
    ("dies", "why"),
    [
        (lambda loop: loop.stop(), "the engine's thread has ended: "),
        (lambda _: _out_of_memory(), r"the engine's thread has ended \(MemoryError\): "),
        (lambda _: sys.exit(1), r"the engine's thread has ended \(SystemExit\): "),
    ],
)
def test_a_waiter_hears_it_when_the_loop_has_died(
    loop: LoopThread, dies: Callable[[asyncio.AbstractEventLoop], object], why: str
) -> None:
    told: list[LoopEndedError] = []
    loop.listen(lambda: told.append(loop.ended))
    work = _Recorder()
    engine = _engine(loop, work)
    jobs = _jobs(2)
    engine.start(jobs)
    until(lambda: len(work.started) == 2)
    loop.soon(dies, loop.loop)
    until(lambda: not loop.alive)
    for job in (jobs[0], _Job("late")):
        with pytest.raises(LoopEndedError, match=why):
            engine.obtain(job)
    engine.cancel("enough", _GRACE_S)
    # A loop that an exception has ended leaves its tasks; none of them outlives the test.
    left = asyncio.all_tasks(loop.loop)
    for task in left:
        task.cancel()
    if left:
        with suppress(RuntimeError):  # it was stopped before
            loop.loop.run_until_complete(asyncio.sleep(0))
        loop.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))
    assert bool(told) == ("(" in why)
