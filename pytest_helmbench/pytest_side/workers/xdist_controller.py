"""The role of an xdist controller: it runs no items, permits the calls of its workers and records their results."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_helmbench.core.outcome import Outcome, RecordedReply, ResultRecord, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.backend import LocalBackend, Question, ReplyQuery
from pytest_helmbench.gateway.permits import Permit, PermitRequest, RefusedError
from pytest_helmbench.pytest_side.workers.interruption import Interruptions
from pytest_helmbench.pytest_side.workers.role import (
    INTERRUPT_GRACE_S,
    INTERRUPTED,
    INTERRUPTED_AGAIN,
    SessionRole,
)
from pytest_helmbench.pytest_side.workers.xdist_scheduling import SliceScheduling, WorkerNode, crash_report
from pytest_helmbench.pytest_side.workers.xdist_worker import NewNode, Start, send
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.plan import Plan

if TYPE_CHECKING:
    from execnet import Channel

_WORKERS_GRACE_S = 0.7
_TICK_S = 1.0


class XdistController(SessionRole):
    """Serves the workers, ticking about once a second; a pytest plugin with the hooks of xdist."""

    def __init__(
        self,
        config: pytest.Config,
        coordinator: Coordinator,
        announce: Callable[[Plan], None],
        tick: Callable[[], None],
        interruptions: Interruptions,
    ) -> None:
        self._config = config
        self._coordinator = coordinator
        self._interruptions = interruptions
        self._announce = announce
        self._tick = tick
        self._loop = coordinator.library.loop
        self._loop.listen(self._stop_with_loop)
        self._servers: dict[object, ChannelServer] = {}
        self._workers = 0
        self._scheduling: SliceScheduling | None = None
        self._plan: Plan | None = None
        self._backend: LocalBackend | None = None
        self._unreported: dict[str, Outcome] = {}
        self._crashes: set[str] = set()
        self._failures = 0
        self._cancelled = False
        self._in_a_hurry = False
        self._worker_ended: str | None = None
        self._stops = False

    # pytest and pytest-xdist

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: NewNode) -> None:
        """Give a new worker its channel."""
        channel = node.gateway.newchannel()
        node.workerinput["helmbench"] = channel
        node.workerinput["helmbench_settings"] = pickle.dumps(self._coordinator.settings)
        self._workers = node.workerinput["workercount"]
        name = node.workerinput["workerid"]
        handlers: Mapping[str, Callable[..., None]] = {
            "plan": self._keep_plan,
            "note": self._coordinator.note,
            "changed": self._coordinator.add_changed,
            "interrupted": lambda by: self._stop_with_worker(f"{name} was sent {by}"),
        }
        self._servers[node] = ChannelServer(self._loop, channel, handlers)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self) -> SliceScheduling:
        """Schedule by slices."""
        self._scheduling = SliceScheduling(
            self._config, self._workers, self._open_runs, self._prefetch, self._refuse_difference
        )
        return self._scheduling

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: SliceScheduling
    ) -> None:
        """Queue the item of a dead worker once more."""
        again = crashitem not in self._crashes
        self._crashes.add(crashitem)
        crash_report(report, again=again)
        if again:
            sched.mark_test_pending(crashitem)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self) -> None:
        """End the session when a signal has ended a worker, before xdist replaces it."""
        if self._worker_ended is not None and not self._stops:
            self._stops = True
            raise KeyboardInterrupt(self._worker_ended)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Forget the outcome of a reported item; stop all workers at `--maxfail`."""
        if hasattr(report, "helmbench") or report.when == "teardown":
            self._forget_outcome(getattr(report, "node", None), report.nodeid)
        self._failures += report.failed
        most = self._config.getoption("maxfail", 0)
        if most and self._failures >= most:
            self.cancel(f"stopping after {self._failures} failures")

    # The role

    @property
    def left_over(self) -> int:
        """Number of items that never ran, because their worker died and no other took them."""
        return self._scheduling.left_over if self._scheduling is not None else 0

    def cancel(self, reason: str) -> None:
        """Cancel every worker."""
        if not self._cancelled:
            self._cancelled = True
            for server in self._servers.values():
                server.send("cancel", reason)

    def end(self, *, interrupted: bool) -> None:
        """Wait a moment for workers that still send, then put everything on disk."""
        if interrupted:
            self.cancel(INTERRUPTED)
        if self._cancelled:
            self._await_workers(INTERRUPT_GRACE_S if interrupted else 0.0)
        self._loop.run_last(asyncio.sleep(0))  # until everything that has arrived from the workers is handled
        self._coordinator.close(interrupted=interrupted, tick=self._tick)

    def _await_workers(self, grace_s: float) -> None:
        """Wait until the workers send nothing more; Ctrl-C cuts the grace of their calls short."""
        until = time.monotonic() + grace_s + _WORKERS_GRACE_S
        serving = [server for server in self._servers.values() if server.serving]
        while time.monotonic() < until and not all(server.ended for server in serving):
            time.sleep(0.01)
            if self._in_a_hurry:
                self._in_a_hurry = False
                until = time.monotonic() + _WORKERS_GRACE_S
                for server in serving:
                    server.send("cancel", INTERRUPTED_AGAIN)

    def hurry(self) -> None:
        """Have the code that awaits the workers cut their grace short."""
        self._in_a_hurry = True
        self._coordinator.hurry()

    def interrupted(self, _by: str) -> None:
        self._stops = True
        self.cancel(INTERRUPTED)

    def _stop_with_worker(self, sentence: str) -> None:
        """Stop all workers when a signal ends one of them. On xdist's receiver thread."""
        self._worker_ended = sentence
        self.cancel(INTERRUPTED)
        self._interruptions.worker_ends(sentence)

    def _stop_with_loop(self) -> None:
        """Stop all workers, since the loop answers no calls any more. On the loop's thread."""
        self._worker_ended = str(self._loop.ended)
        self.cancel(INTERRUPTED)

    def _forget_outcome(self, node: WorkerNode | None, node_id: str) -> None:
        if self._scheduling is not None and node is not None:
            self._scheduling.mark_reported(node, node_id)
        # On the loop, where its outcome has arrived before: the main thread may be ahead of it.
        self._loop.soon(self._unreported.pop, node_id, None)

    def _keep_plan(self, plan: object) -> None:
        if self._plan is None and isinstance(plan, Plan):
            self._plan = plan

    def _open_runs(self) -> None:
        """Open the runs: every worker has collected, and nothing has been called yet."""
        plan = self._plan
        if plan is None:
            return
        coordinator = self._coordinator
        try:
            if plan.adopted is not None:
                coordinator.library.adopt(plan.adopted)
            for run in plan.runs:
                coordinator.library.load(Path(run.benchmark))
            coordinator.prepare(plan)
            self._announce(plan)
            if plan.dry:
                coordinator.note_dry_resume()
            else:
                self._backend = coordinator.open(plan, self._remember, self._send_stopped_model)
        except HelmbenchError as error:
            raise pytest.UsageError(scrub(str(error))) from error
        self._loop.soon(self._tick_again)

    def _tick_again(self) -> None:
        """Draw the live line about once a second: no item waits in this process."""
        if self._coordinator.ended is None:
            self._tick()
            self._loop.loop.call_later(_TICK_S, self._tick_again)

    def _prefetch(self, node: WorkerNode, indices: Iterable[int], node_ids: Sequence[str]) -> None:
        """Send a worker the places of its items, and their node ids where they were another worker's before."""
        coordinator, backend = self._coordinator, self._backend
        server = self._servers.get(node)
        if server is None or backend is None:
            return
        server.serve(backend)
        known: dict[str, Outcome] = {}
        if node_ids:
            self._loop.run(asyncio.sleep(0))  # until what the dead worker has sent is handled
            coordinator.use_own_replies(backend)
            waiting = self._unreported
            known = {key: outcome for key in node_ids if (outcome := waiting.get(key)) is not None}
        run_ids = dict(coordinator.runs.run_ids)
        start = Start(run_ids, tuple(indices), known, coordinator.judged, inherits=bool(node_ids))
        server.send("start", start)

    def _remember(self, record: ResultRecord) -> None:
        if record.outcome.verdict is not Verdict.ERROR:
            self._unreported[record.node_id] = record.outcome.for_item()

    def _send_stopped_model(self, model: str, sentence: str) -> None:
        for server in self._servers.values():
            server.send("stop-model", model, sentence)

    def _refuse_difference(self, sentence: str) -> None:
        self._coordinator.note(sentence)
        raise pytest.UsageError(sentence)


class ChannelServer:
    """The controller's end of one worker's channel.

    Args:
        loop: The event loop of the limiter.
        handlers: Functions for messages other than calls, by their first word. They run on xdist's receiver thread.
    """

    def __init__(
        self, loop: LoopThread, channel: Channel, handlers: Mapping[str, Callable[..., None]]
    ) -> None:
        self._loop = loop
        self._channel = channel
        self._handlers = handlers
        self._backend: LocalBackend | None = None
        self._asking: dict[int, asyncio.Task[object]] = {}
        self._held: dict[int, Permit] = {}
        self._queries: dict[Question, ReplyQuery] = {}
        self.ended = False
        channel.setcallback(self._receive, endmarker=None)

    def serve(self, backend: LocalBackend) -> None:
        """Begin to answer calls: before this, a worker sends only its plan."""
        self._backend = backend

    @property
    def serving(self) -> bool:
        """Whether the worker has begun."""
        return self._backend is not None

    def send(self, *message: object) -> None:
        """Send a message, unless the worker is gone."""
        if not send(self._channel, *message):
            self.ended = True

    def _receive(self, data: bytes | None) -> None:
        if data is None:
            self.ended = True
            self._loop.soon(self._lost)
            return
        message = pickle.loads(data)
        match message:
            case ("bye",):
                self.ended = True
            case (word, *values) if word in self._handlers:
                self._handlers[word](*values)
            case _:
                self._loop.soon(self._handle, message)

    def _handle(self, message: tuple[Any, ...]) -> None:
        backend = self._backend
        if backend is None:
            return
        match message:
            case ("admit", number, request):
                self._answer(backend, number, self._acquire(backend, request))
            case ("batch", number, line):
                self._answer(backend, number, backend.batched(line))
            case ("abandon", number):
                # A permit that is on its way comes back as released.
                if number in self._asking:
                    self._asking[number].cancel()
            case ("release", permit):
                self._held.pop(permit.number, None)
                backend.release(permit)
            case ("settle", permit, used, record):
                self._held.pop(permit.number, None)
                backend.settle(permit, used, record)
                if record.reply_key is not None:
                    self._queries.pop(record.question, None)
            case ("failed", model, case):
                backend.failed(model, case)
            case ("recall", number, query):
                self._answer(backend, number, self._look_up(backend, query))
            case ("give-up", query):
                self._forget(backend, query)
            case ("replay", record):
                backend.record_replay(record)
            case ("result", record):
                backend.record_result(record)
            case ("store", number):
                self._answer(backend, number, backend.stored())

    def _answer(self, backend: LocalBackend, number: int, asked: Coroutine[None, None, object]) -> None:
        """Send the worker an answer, or an error, when it is known."""
        task = self._asking[number] = asyncio.get_running_loop().create_task(asked)
        task.add_done_callback(lambda done: self._answered(backend, number, done))

    def _answered(self, backend: LocalBackend, number: int, task: asyncio.Task[object]) -> None:
        self._asking.pop(number, None)
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, HelmbenchError):
            kind = type(error) if isinstance(error, RefusedError) else HelmbenchError
            self.send("error", number, kind, str(error))
            return
        found = task.result()
        self.send("answer", number, found)
        # The worker may have ended before its answer was sent.
        if self.ended and isinstance(found, Permit) and found.number in self._held:
            backend.release(self._held.pop(found.number))

    async def _acquire(self, backend: LocalBackend, request: PermitRequest) -> Permit:
        permit = await backend.acquire(request)
        self._held[permit.number] = permit
        return permit

    async def _look_up(self, backend: LocalBackend, query: ReplyQuery) -> RecordedReply | None:
        recorded = await backend.look_up(query)
        if recorded is None:
            self._queries[query.question] = query
        return recorded

    def _forget(self, backend: LocalBackend, query: ReplyQuery) -> None:
        if self._queries.pop(query.question, None) is not None:
            backend.give_up(query)

    def _lost(self) -> None:
        """Take back all permits and claims of a worker that is gone."""
        for task in self._asking.values():
            task.cancel()
        held, self._held = self._held, {}
        if self._backend is not None:
            for permit in held.values():
                self._backend.lose(permit)
            for query in tuple(self._queries.values()):
                self._forget(self._backend, query)
