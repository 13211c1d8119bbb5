"""Where an item turns for its outcome: from this process, or over xdist's channel.

A process has one role in its session. The controller has no items; it serves the workers.
"""

from __future__ import annotations

import gc
import os
import pickle
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_helmbench.core.outcome import AttemptRecord, Outcome, ResultRecord, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.assembly import Assembly, Share
from pytest_helmbench.engine.engine import CancelledRunError, Engine
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.engine.runner import RunnerSettings
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.gateway import Patience
from pytest_helmbench.gateway.limiter import Limiter, NotStoredError, SessionLimits
from pytest_helmbench.gateway.reply_cache import CacheMode, ReplyCache
from pytest_helmbench.judging.judge import JudgeTemplate
from pytest_helmbench.pytest_side.xdist_channel import (
    ChannelServer,
    RemoteBackend,
    SliceScheduling,
    Start,
    Told,
)
from pytest_helmbench.session.gates import Gates
from pytest_helmbench.session.library import Library
from pytest_helmbench.session.recorded_replies import RecordedReplies
from pytest_helmbench.session.runs import Plan, RunBook
from pytest_helmbench.session.settings import Settings
from pytest_helmbench.session.targets import model_limits, session_concurrency
from pytest_helmbench.store.recorded_runs import CaseKey, RecordedCase

__all__ = [
    "NOTHING_UNFINISHED",
    "Coordinator",
    "SessionRole",
    "SingleProcess",
    "XdistController",
    "XdistWorker",
]

NOTHING_UNFINISHED = "nothing was unfinished: this was a fresh run"

_NAMED = 20
_GRACE_S = 0.3
_WORKERS_GRACE_S = 0.7


class SessionRole(Protocol):
    """What the session plugin asks of the role of its process."""

    def begin(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """Start on the selected items.

        Args:
            jobs: One per selected item, in run order; None where nothing is to be started ahead.
            plan: What will be asked.
        """

    def obtain(self, job: CaseJob, tick: Callable[[], None]) -> Outcome:
        """Wait for an outcome; raises `CancelledRunError`."""

    @property
    def engine(self) -> Engine[CaseJob] | None:
        """What runs cases in this process; None in a dry run."""

    def known(self, job: CaseJob) -> Outcome | None:
        """Return, once, the outcome that a worker had brought in before it died."""

    def note(self, text: str) -> None:
        """Say something in the summary."""

    def cancel(self, reason: str) -> None:
        """Begin to stop: nothing new is sent, and who waits is woken."""

    def end(self, *, interrupted: bool) -> None:
        """Stop, and put everything on disk."""


class Coordinator:
    """Gate, record and loop of the process that owns them.

    Args:
        settings: Of the session.
        library: Its benchmarks.
        gates: What its scores must reach.
    """

    def __init__(self, settings: Settings, library: Library, gates: Gates) -> None:
        self.settings = settings
        self.library = library
        self.gates = gates
        self.book = RunBook(settings)
        self.notes: list[str] = []
        self.changed: dict[str, None] = {}
        self.stopped_models: dict[str, str] = {}
        self.overdrawn: str | None = None
        self.limiter: Limiter | None = None
        self.backend: LocalBackend | None = None
        self.loop: LoopThread | None = None
        self.started = time.perf_counter()
        self.ended: float | None = None
        self._recorded_replies: RecordedReplies | None = None
        self.on_result: Callable[[ResultRecord], None] = lambda _record: None
        self.on_model_stopped: Callable[[str, str], None] = lambda _model, _sentence: None

    def prepare(self, plan: Plan) -> None:
        """Find out what is left to ask, so that it can be announced. Only a resumed session opens its file for that.

        Raises:
            StoreError: The database cannot be used.
            ResumeError: The session cannot go on as it was started now.
        """
        self.book.know(plan, self.library.loaded)
        if self.settings.resume and not plan.dry:
            self.book.prepare(plan, self.library.loaded)

    def open(self, plan: Plan) -> None:
        """Open runs and gate.

        Raises:
            StoreError: The database cannot be used.
        """
        self.book.open(plan, self.library.loaded)
        settings = self.settings
        limits = SessionLimits(
            concurrency=session_concurrency(settings),
            requests_per_minute=settings.requests_per_minute,
            tokens_per_minute=settings.tokens_per_minute,
            max_cost_usd=settings.max_cost_usd,
        )
        self.limiter = Limiter(limits, time.monotonic, self._model_stopped, self._set_overdrawn)
        self.limiter.add_models(model_limits(self.book.targets.values(), settings).values())
        for loaded in self.library.loaded:
            self.limiter.add_models(loaded.item_limits)
        if self.book.store is not None and self.book.resumption is None:
            self.library.note_starts(self.book.store)
        self.backend = LocalBackend(
            self.limiter, self._record_attempt, self._record_result, self._reply_cache()
        )
        self.started = time.perf_counter()

    @property
    def judged(self) -> Mapping[CaseKey, RecordedCase]:
        """The cases that a resumed session has judged."""
        return self.book.resumption.judged if self.book.resumption is not None else {}

    def _reply_cache(self) -> ReplyCache | None:
        settings = self.settings
        if settings.resume:
            self.note(self._resumed_sentence())
        if not settings.may_use_recorded or self.book.store is None:
            return None
        resumption = self.book.resumption
        runs = resumption.runs.values() if resumption is not None else ()
        self._recorded_replies = RecordedReplies(self.book.store, settings.cache, runs)
        return ReplyCache(self._recorded_replies, shares=settings.cache is CacheMode.REUSE)

    def use_own_replies(self) -> None:
        """Let replies that a dead worker has brought in stand for calls: they are paid. Waits for the disk."""
        if self.book.store is None or self.backend is None:
            return
        self.book.store.flush()
        if self._recorded_replies is None:
            self._recorded_replies = RecordedReplies(self.book.store, self.settings.cache, ())
            self.backend.use_replies(ReplyCache(self._recorded_replies, shares=False))
        self._recorded_replies.trust(self.book.tallies)

    def _resumed_sentence(self) -> str:
        resumption = self.book.resumption
        if resumption is None:
            return NOTHING_UNFINISHED
        runs = ", ".join(map(str, sorted(resumption.runs.values())))
        return f"went on with run {runs}: {len(resumption.judged)} judged cases were on record"

    def note_dry_resume(self) -> None:
        """Say that a dry run goes on with nothing."""
        if self.settings.resume:
            self.note("--helmbench-resume had no effect: nothing is called in a dry run, so nothing went on")

    def add_changed(self, name: str) -> None:
        """Take note of a case whose verdict on record is not that of now."""
        self.changed[name] = None

    def note(self, text: str) -> None:
        """Say something in the summary, once."""
        if text not in self.notes:
            self.notes.append(text)

    def close(self, *, interrupted: bool) -> None:
        """Close runs, database and loop."""
        if self.ended is None:
            self.ended = time.perf_counter()
            if self.changed:
                self.note(changed_text(tuple(self.changed)))
            if self._recorded_replies is not None:
                self._recorded_replies.close()
            try:
                if not interrupted:
                    self._total_packs()
            finally:
                self.book.close(interrupted=interrupted)
            self.library.write_runs(self.note)
            if self.loop is not None:
                self.loop.run(self.library.close())
                self.loop.close()

    def _total_packs(self) -> None:
        store = self.book.store
        if store is not None and store.fault is None:
            store.flush()
            self.library.store_totals(store, self.note)

    def _record_attempt(self, record: AttemptRecord) -> None:
        self.book.record_attempt(record)
        self._stop_when_nothing_is_stored()

    def _record_result(self, record: ResultRecord) -> None:
        self.book.record_result(record)
        self.on_result(record)
        self._stop_when_nothing_is_stored()

    def _stop_when_nothing_is_stored(self) -> None:
        fault = self.book.store.fault if self.book.store is not None else None
        if fault is not None and self.limiter is not None and self.limiter.closed is None:
            self.limiter.close(NotStoredError(f"replies cannot be stored, so nothing more is asked: {fault}"))

    def _model_stopped(self, model: str, sentence: str) -> None:
        self.stopped_models[model] = sentence
        self.on_model_stopped(model, sentence)

    def _set_overdrawn(self, sentence: str) -> None:
        self.overdrawn = sentence


def _assembly(
    settings: Settings,
    template: JudgeTemplate,
    library: Library,
    loop: LoopThread,
    backend: LocalBackend | RemoteBackend,
    share: Share,
) -> Assembly:
    limits_by_model = model_limits((target for item in library.loaded for target in item.targets), settings)
    assembly = Assembly(
        loop,
        backend,
        Patience(settings.timeout_s, settings.case_timeout_s, settings.max_retries),
        RunnerSettings(settings.system_prompt, settings.strict_json, template),
        share,
        lambda model_id: limits_by_model[model_id].most if model_id in limits_by_model else share.concurrency,
    )
    assembly.gateway.may_use_recorded = settings.may_use_recorded
    assembly.gateway.replays_only = settings.cache is CacheMode.ONLY
    return assembly


def composed(job: CaseJob, system_prompt: str | None) -> Outcome:
    """Return the outcome of a dry run: the prompt was composed, nothing was called."""
    job.case(system_prompt)
    return Outcome(Verdict.SKIPPED, "dry run", "dry run")


def changed_text(names: Sequence[str]) -> str:
    """Return what the summary says of cases whose verdict on record is not that of now."""
    shown = ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")
    return f"request or rule has changed since they were judged, so they ran again: {shown}"


class SingleProcess:
    """The role of a process that runs its session alone.

    Args:
        coordinator: Limiter and record.
        template: The judge's wording.
        announce: Called with the plan before the first call; may end the session.
        few_ahead: The session stops at a failure.
    """

    def __init__(
        self,
        coordinator: Coordinator,
        template: JudgeTemplate,
        announce: Callable[[Plan], None],
        *,
        few_ahead: bool,
    ) -> None:
        self._coordinator = coordinator
        self._template = template
        self._announce = announce
        self._few_ahead = few_ahead
        self._assembly: Assembly | None = None

    def begin(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """See `SessionRole.begin`."""
        coordinator = self._coordinator
        coordinator.prepare(plan)
        self._announce(plan)
        if plan.dry:
            coordinator.note_dry_resume()
            return
        coordinator.open(plan)
        if coordinator.backend is None:
            return
        coordinator.loop = coordinator.library.loop
        self._assembly = _assembly(
            coordinator.settings,
            self._template,
            coordinator.library,
            coordinator.loop,
            coordinator.backend,
            Share(session_concurrency(coordinator.settings), self._few_ahead),
        )
        coordinator.library.note = coordinator.note
        coordinator.on_model_stopped = self._assembly.gateway.stop_model
        self._assembly.runner.judged = coordinator.judged
        self._assembly.runner.on_changed = lambda job: coordinator.add_changed(job.name)
        self._assembly.engine.start([job for job in jobs if job is not None])

    def obtain(self, job: CaseJob, tick: Callable[[], None]) -> Outcome:
        """See `SessionRole.obtain`."""
        if self._assembly is None:
            return composed(job, self._coordinator.settings.system_prompt)
        return self._assembly.engine.obtain(job, tick)

    @property
    def engine(self) -> Engine[CaseJob] | None:
        """See `SessionRole.engine`."""
        return self._assembly.engine if self._assembly is not None else None

    def known(self, job: CaseJob) -> Outcome | None:  # noqa: ARG002 - a role's
        """Return None: nobody has died."""
        return None

    def note(self, text: str) -> None:
        """See `SessionRole.note`."""
        self._coordinator.note(text)

    def cancel(self, reason: str) -> None:
        """See `SessionRole.cancel`."""
        if self._assembly is not None:
            self._assembly.engine.drop_queued(reason, _GRACE_S)

    def end(self, *, interrupted: bool) -> None:
        """See `SessionRole.end`."""
        if self._assembly is not None and self._coordinator.loop is not None:
            self._assembly.end("the session has ended", _GRACE_S)
            self._assembly = None
        self._coordinator.close(interrupted=interrupted)


class XdistWorker:
    """The role of an xdist worker.

    Args:
        settings: Of the session.
        library: Its benchmarks.
        template: The judge's wording.
        channel: To the controller.
        share: What the worker has of the session.
    """

    def __init__(
        self,
        settings: Settings,
        library: Library,
        template: JudgeTemplate,
        channel: Any,
        share: Share,
    ) -> None:
        self._settings = settings
        self._library = library
        self._template = template
        self._share = share
        self._loop = library.loop
        self._lock = threading.Lock()
        self._jobs: Sequence[CaseJob | None] = ()
        self._known: dict[str, Outcome] = {}
        self._assembly: Assembly | None = None
        self._dry = False
        self.cancelled: str | None = None
        self._backend = RemoteBackend(self._loop, channel, self._start, self._stop_model, self.cancel)

    def begin(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """Tell the controller what was collected; calls start when it says so."""
        self._jobs = jobs
        self._dry = plan.dry
        self._library.note = self.note
        if not plan.dry:
            self._assembly = _assembly(
                self._settings,
                self._template,
                self._library,
                self._loop,
                self._backend,
                self._share,
            )
        self._backend.send("plan", plan)

    def obtain(self, job: CaseJob, tick: Callable[[], None]) -> Outcome:
        """See `SessionRole.obtain`."""
        if self.cancelled is not None:
            raise CancelledRunError(self.cancelled)
        known = self.known(job)
        if known is not None:
            return known
        if self._assembly is None:
            return composed(job, self._settings.system_prompt)
        return self._assembly.engine.obtain(job, tick)

    @property
    def engine(self) -> Engine[CaseJob] | None:
        """See `SessionRole.engine`."""
        return self._assembly.engine if self._assembly is not None else None

    def known(self, job: CaseJob) -> Outcome | None:
        """See `SessionRole.known`."""
        return self._known.pop(job.node_id, None)

    def note(self, text: str) -> None:
        """See `SessionRole.note`."""
        self._backend.send("note", text)

    def cancel(self, reason: str) -> None:
        """See `SessionRole.cancel`; the controller says so too, on xdist's receiver thread."""
        with self._lock:
            self.cancelled = self.cancelled or reason
        if self._assembly is not None:
            self._assembly.engine.drop_queued(reason, _GRACE_S)

    def end(self, *, interrupted: bool) -> None:  # noqa: ARG002 - the controller knows by itself
        """See `SessionRole.end`."""
        if self._assembly is not None:
            self._assembly.end("the session has ended", _GRACE_S)
        self._loop.run(self._library.close())
        self._backend.send("bye")
        self._loop.close()
        if self.cancelled is not None or (self._jobs and all(self._jobs)):
            # pytest and the interpreter each search everything for garbage before the process may end, and
            # the session waits for it. Nothing of that is needed when no test of somebody else's was run.
            gc.freeze()

    def _start(self, start: Start) -> None:
        for item in self._library.loaded:
            for target in item.targets:
                target.run_id = start.run_ids.get(target.key)
        self._known.update(start.known)
        if self._assembly is not None:
            self._assembly.gateway.may_use_recorded |= start.inherits
            self._assembly.runner.judged = start.judged
            self._assembly.runner.on_changed = lambda job: self._backend.send("changed", job.name)
        jobs = [job for index in start.indices if (job := self._jobs[index]) is not None]
        if self._assembly is not None:
            known = self._known
            self._assembly.engine.start([job for job in jobs if not known or job.node_id not in known])

    def _stop_model(self, model: str, sentence: str) -> None:
        if self._assembly is not None:
            self._assembly.gateway.stop_model(model, sentence)


class XdistController:
    """The role of an xdist controller: it serves the workers.

    Args:
        coordinator: Limiter and record.
        announce: Called with the plan before the first call; may end the session.
    """

    def __init__(self, coordinator: Coordinator, announce: Callable[[Plan], None]) -> None:
        self._coordinator = coordinator
        self._announce = announce
        self._servers: dict[Any, ChannelServer] = {}
        self._workers = 0
        self._scheduling: SliceScheduling | None = None
        self._plan: Plan | None = None
        self._unreported: dict[str, Outcome] = {}
        self._crashes: set[str] = set()
        self._cancelled = False
        self.on_tick: Callable[[], None] = lambda: None
        coordinator.on_result = self._remember
        coordinator.on_model_stopped = self._tell_stopped
        coordinator.loop = coordinator.library.loop

    def connect(self, node: Any) -> None:
        """Give a new worker its channel."""
        channel = node.gateway.newchannel()
        node.workerinput["helmbench"] = channel
        node.workerinput["helmbench_settings"] = pickle.dumps(self._coordinator.settings)
        self._workers = node.workerinput["workercount"]
        loop = self._coordinator.loop
        if loop is not None:
            told = Told(self._planned, self._coordinator.note, self._coordinator.add_changed)
            self._servers[node] = ChannelServer(loop, channel, told)

    def scheduler(self, config: pytest.Config, on_difference: Callable[[str], None]) -> SliceScheduling:
        """Return our scheduler for the session."""
        self._scheduling = SliceScheduling(
            config, self._workers, self._scheduled, self._prefetch, on_difference
        )
        return self._scheduling

    @property
    def left_over(self) -> int:
        """How many items were never run, because their worker died and no other took them."""
        return self._scheduling.left_over if self._scheduling is not None else 0

    def reported(self, node: Any, node_id: str) -> None:
        """Forget the outcome of an item that has been reported."""
        if self._scheduling is not None:
            self._scheduling.mark_reported(node, node_id)
        if self._coordinator.loop is not None:
            # On the loop, where its outcome has arrived before: the main thread may be ahead of it.
            self._coordinator.loop.soon(self._unreported.pop, node_id, None)

    def runs_again(self, node_id: str) -> bool:
        """Return whether an item whose worker died may run once more."""
        if node_id in self._crashes:
            return False
        self._crashes.add(node_id)
        return True

    def cancel(self, reason: str) -> None:
        """See `SessionRole.cancel`: every worker's waiting ends at once."""
        if not self._cancelled:
            self._cancelled = True
            for server in self._servers.values():
                server.send("cancel", reason)

    def begin(self, jobs: Sequence[CaseJob | None], plan: Plan) -> None:
        """Do nothing: the controller has no items."""

    def obtain(self, job: CaseJob, tick: Callable[[], None]) -> Outcome:  # noqa: ARG002 - a role's
        """Never called: the controller has no items."""
        raise CancelledRunError("the controller runs no items")

    @property
    def engine(self) -> Engine[CaseJob] | None:
        """None: the controller has no items."""
        return None

    def known(self, job: CaseJob) -> Outcome | None:  # noqa: ARG002 - a role's
        """Return None: the workers are told."""
        return None

    def note(self, text: str) -> None:
        """See `SessionRole.note`."""
        self._coordinator.note(text)

    def end(self, *, interrupted: bool) -> None:
        """See `SessionRole.end`: workers that still talk get a short grace."""
        if interrupted:
            self.cancel("interrupted")
        if self._cancelled:
            until = time.monotonic() + _WORKERS_GRACE_S
            serving = [server for server in self._servers.values() if server.serving]
            while time.monotonic() < until and not all(server.ended for server in serving):
                time.sleep(0.01)
        loop = self._coordinator.loop
        if loop is not None:
            loop.run(_nothing())  # what has arrived is handled before the runs are closed
        self._coordinator.close(interrupted=interrupted)

    def _planned(self, plan: object) -> None:
        if self._plan is None and isinstance(plan, Plan):
            self._plan = plan

    def _scheduled(self) -> None:
        """Open the runs: every worker has collected, and nothing has been called yet."""
        plan = self._plan
        if plan is None:
            return
        coordinator = self._coordinator
        try:
            if plan.python_tests is not None:
                coordinator.library.hand_written(plan.python_tests)
            for run in plan.runs:
                coordinator.library.load(Path(run.benchmark))
            coordinator.prepare(plan)
            self._announce(plan)
            if plan.dry:
                coordinator.note_dry_resume()
            else:
                coordinator.open(plan)
        except HelmbenchError as error:
            raise pytest.UsageError(scrub(str(error))) from error
        if coordinator.loop is not None:
            coordinator.loop.soon(self._tick)

    def _tick(self) -> None:
        """Let the live line be drawn about once a second: here nobody waits for an item who could."""
        loop = self._coordinator.loop
        if self._coordinator.ended is None and loop is not None:
            self.on_tick()
            loop.loop.call_later(1.0, self._tick)

    def _prefetch(self, node: Any, indices: Sequence[int], node_ids: Sequence[str]) -> None:
        coordinator = self._coordinator
        server = self._servers.get(node)
        if (
            server is None
            or coordinator.limiter is None
            or coordinator.backend is None
            or coordinator.loop is None
        ):
            return
        server.serve(coordinator.limiter, coordinator.backend)
        known: dict[str, Outcome] = {}
        if node_ids:
            coordinator.loop.run(_nothing())  # what the dead worker has sent is handled first
            coordinator.use_own_replies()
            known = {key: outcome for key in node_ids if (outcome := self._unreported.get(key)) is not None}
        run_ids: Mapping[tuple[str, str], int] = coordinator.book.run_ids()
        server.send(
            "start", Start(run_ids, tuple(indices), known, coordinator.judged, inherits=bool(node_ids))
        )

    def _remember(self, record: ResultRecord) -> None:
        if record.outcome.verdict is not Verdict.ERROR:
            self._unreported[record.node_id] = record.outcome.for_item()

    def _tell_stopped(self, model: str, sentence: str) -> None:
        for server in self._servers.values():
            server.send("stop-model", model, sentence)


async def _nothing() -> None:
    return


def in_ci() -> bool:
    """Return whether this is a CI machine: texts stay out of its logs, and it gets no live progress."""
    return bool(os.environ.get("CI"))
