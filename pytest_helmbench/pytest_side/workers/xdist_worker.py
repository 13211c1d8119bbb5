"""An xdist worker: its channel to the controller, which has the limiter and the database, and its role."""

from __future__ import annotations

import asyncio
import itertools
import pickle
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, cast

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import (
    AttemptRecord,
    CaseKey,
    Outcome,
    RecordedCase,
    RecordedReply,
    ResultRecord,
)
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.case_engine import Resumed
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.engine.job_queue import CancelledRunError
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.backend import ReplyQuery
from pytest_helmbench.gateway.batches import BatchAnswer, BatchLine
from pytest_helmbench.gateway.permits import (
    AttemptResult,
    FailedCase,
    Permit,
    PermitRequest,
)
from pytest_helmbench.pytest_side.workers.role import (
    GRACE_S,
    INTERRUPTED,
    INTERRUPTED_AGAIN,
    CaseEngines,
    SessionRole,
    dry_run_outcome,
    grace_after,
)
from pytest_helmbench.run.plan import Plan
from pytest_helmbench.speed.interpreter import end_without_search

if TYPE_CHECKING:
    from execnet import Channel, Gateway


class NewNode(Protocol):
    """A worker of xdist that is about to start."""

    @property
    def gateway(self) -> Gateway:
        """execnet's gateway to the process of the worker."""

    @property
    def workerinput(self) -> dict[str, Any]:
        """Values that xdist sends to the worker when it starts."""


def send(channel: Channel, *message: object) -> bool:
    """Send a message; return whether the other end is alive. From any thread."""
    # Pickled: both ends are this program, and execnet knows no dataclasses, enums and lone surrogates.
    try:
        channel.send(pickle.dumps(message))
    except OSError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Start:
    """The message that starts a worker.

    Args:
        run_ids: `evaluation_runs.id` by benchmark and model.
        indices: Places of its items, in order.
        known: Outcomes by node id that a crashed worker had already brought in.
        judged: Cases that the run being resumed has judged, by run, code and repetition.
        inherits: The items were a dead worker's: some of their calls may be answered.
    """

    run_ids: Mapping[tuple[str, str], int]
    indices: tuple[int, ...]
    known: Mapping[str, Outcome]
    judged: Mapping[CaseKey, RecordedCase]
    inherits: bool = False


class RemoteBackend:
    """The backend of a worker: every call goes over the channel.

    Args:
        loop: The event loop of the gateway.
        on_start: Called with the items to prefetch, on xdist's receiver thread.
        on_stop_model: Called with a model that does not work, on the loop.
        on_cancel: Called at the end of the session, on xdist's receiver thread.
    """

    def __init__(
        self,
        loop: LoopThread,
        channel: Channel,
        on_start: Callable[[Start], None],
        on_stop_model: Callable[[str, str], None],
        on_cancel: Callable[[str], None],
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._on_start = on_start
        self._on_stop_model = on_stop_model
        self._on_cancel = on_cancel
        self._numbers = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._storing: asyncio.Task[None] | None = None
        channel.setcallback(self._receive, endmarker=None)

    def send(self, *message: object) -> None:
        """Send a message; cancel the session where the controller is gone. From any thread."""
        if not send(self._channel, *message):
            self._on_cancel("the controller is gone")

    async def _ask(self, word: str, *wanted: object) -> object:
        """Return the controller's answer to a message; abandon it when the caller is cancelled."""
        number = next(self._numbers)
        waiter: asyncio.Future[object] = asyncio.get_running_loop().create_future()
        self._waiting[number] = waiter
        self.send(word, number, *wanted)
        try:
            return await waiter
        except asyncio.CancelledError:
            if not waiter.done() or waiter.cancelled():
                self.send("abandon", number)
            elif waiter.exception() is None:
                self._give_back(waiter.result())
            raise
        finally:
            self._waiting.pop(number, None)

    async def acquire(self, request: PermitRequest) -> Permit:
        return cast("Permit", await self._ask("admit", request))

    async def batched(self, line: BatchLine) -> BatchAnswer:
        return cast("BatchAnswer", await self._ask("batch", line))

    def settle(self, permit: Permit, result: AttemptResult, record: AttemptRecord) -> None:
        self.send("settle", permit, result, record)

    def release(self, permit: Permit) -> None:
        self.send("release", permit)

    def failed(self, model: str, case: FailedCase) -> None:
        self.send("failed", model, case)

    async def look_up(self, query: ReplyQuery) -> RecordedReply | None:
        return cast("RecordedReply | None", await self._ask("recall", query))

    def give_up(self, query: ReplyQuery) -> None:
        self.send("give-up", query)

    def record_replay(self, record: AttemptRecord) -> None:
        self.send("replay", record)

    def record_result(self, record: ResultRecord) -> None:
        self.send("result", record)

    async def stored(self) -> None:
        """Share one message among all callers of one turn of the loop."""
        if self._storing is None:
            self._storing = asyncio.get_running_loop().create_task(self._ask_whether_stored())
        await asyncio.shield(self._storing)

    async def _ask_whether_stored(self) -> None:
        self._storing = None
        await self._ask("store")

    def _receive(self, data: bytes | None) -> None:
        if data is None:
            self._on_cancel("the controller is gone")
            return
        message = pickle.loads(data)
        match message:
            case ("start", start):
                self._on_start(start)
            case ("cancel", reason):
                self._on_cancel(reason)
            case ("stop-model", model, sentence):
                self._loop.soon(self._on_stop_model, model, sentence)
            case ("answer", number, found):
                self._loop.soon(self._answered, number, found)
            case ("error", number, kind, sentence):
                self._loop.soon(self._failed, number, kind(sentence))

    def _answered(self, number: int, found: object) -> None:
        waiter = self._waiting.get(number)
        if waiter is not None and not waiter.done():
            waiter.set_result(found)
        else:
            self._give_back(found)

    def _give_back(self, found: object) -> None:
        """Give back a permit that arrives after its request was abandoned."""
        if isinstance(found, Permit):
            self.send("release", found)

    def _failed(self, number: int, error: HelmbenchError) -> None:
        waiter = self._waiting.get(number)
        if waiter is not None and not waiter.done():
            waiter.set_exception(error)


class XdistWorker(SessionRole):
    """An engine whose backend is at the far end of a channel."""

    def __init__(self, engines: CaseEngines, channel: Channel, tick: Callable[[], None]) -> None:
        self._engines = engines
        self._tick = tick
        self._lock = threading.Lock()
        self._jobs: Sequence[CaseJob | None] = ()
        self._known: dict[str, Outcome] = {}
        self._cancelled: str | None = None
        self._backend = RemoteBackend(
            engines.library.loop, channel, self._start, self.stop_model, self.cancel
        )

    def collected(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """Send the controller the plan; calls start when it answers."""
        self._jobs = jobs
        self._backend.send("plan", plan)

    def obtain(self, job: CaseJob) -> Outcome:
        if self._cancelled is not None:
            raise CancelledRunError(self._cancelled)
        known = self.known(job)
        if known is not None:
            return known
        if self.cases is None:
            return dry_run_outcome(job)
        return self.cases.queue.obtain(job, self._tick)

    def known(self, job: CaseJob) -> Outcome | None:
        return self._known.pop(job.node_id, None)

    def cancel(self, reason: str) -> None:
        """Begin to stop; the controller calls this as well, on xdist's receiver thread."""
        with self._lock:
            self._cancelled = self._cancelled or reason
        if self.cases is None:
            return
        self.cases.queue.drop_queued(reason, grace_after(reason))
        if reason == INTERRUPTED_AGAIN:
            self.cases.queue.hurry()

    def interrupted(self, _by: str) -> None:
        """Send the controller the signal: it ends the whole session."""
        self._backend.send("interrupted", _by)
        self.cancel(INTERRUPTED)

    def end(self, *, interrupted: bool) -> None:
        """Stop; the controller knows by itself whether the session was interrupted."""
        if self.cases is not None:
            self.cases.end("the session has ended", GRACE_S)
        library = self._engines.library
        library.loop.run_last(library.close())
        self._backend.send("bye")
        library.loop.close()
        if interrupted or self._cancelled is not None or (self._jobs and all(self._jobs)):
            end_without_search()

    def _start(self, start: Start) -> None:
        """Start a slice of the items: the own one, or that of a dead worker."""
        self._known.update(start.known)
        if self.cases is None:
            resumed = Resumed(start.run_ids, start.judged, lambda name: self._backend.send("changed", name))
            self.cases = self._engines.make(self._backend, resumed)
        if start.inherits:
            self.cases.gateway.use_recorded()
        jobs = (self._jobs[index] for index in start.indices)
        self.cases.queue.start([job for job in jobs if job is not None and job.node_id not in self._known])
