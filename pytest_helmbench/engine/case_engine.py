"""Gateway, runner and job queue of one process, put together: jobs go in, outcomes come out, on record."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import field, replace

from pytest_helmbench.core.bounded_calls import RuleTimeoutError
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import CaseKey, Outcome, RecordedCase, ResultRecord, Verdict, utc_now
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.dialogue import Dialogue
from pytest_helmbench.engine.job import CaseJob, RunIds
from pytest_helmbench.engine.job_queue import JobQueue, Progress
from pytest_helmbench.engine.loop import AwakeClock, LoopThread
from pytest_helmbench.engine.questions import Judges
from pytest_helmbench.engine.work import (
    CaseContext,
    RunnerSettings,
    UnjudgedError,
    fault_outcome,
    usable_endpoint,
)
from pytest_helmbench.gateway.backend import Backend, RecordedUse
from pytest_helmbench.gateway.call import CaseClock, Origin
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.permits import ModelLimits, RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.gateway.retries import RetryPolicy

_log = logging.getLogger(__name__)


class CaseRunner:
    """Turns jobs into outcomes.

    Args:
        resumed: The runs that they belong to.
    """

    def __init__(
        self, gateway: Gateway, backend: Backend, settings: RunnerSettings, resumed: Resumed
    ) -> None:
        self._gateway = gateway
        self._backend = backend
        self._settings = settings
        self._resumed = resumed
        self._judges = Judges(gateway)
        self._awake = AwakeClock()

    async def run(self, job: CaseJob, progress: Progress[CaseJob]) -> Outcome:
        """Return the outcome of a case; it is on disk by then, or an error."""
        self._awake.start()
        origin = Origin(self._run_id(job), job.code, job.repetition)
        before = self._resumed.judged.get((origin.run_id, origin.code, origin.repetition))
        if before is not None and not job.runs_anew and await self._stands(job, before, origin):
            self._record(job, origin, before.outcome, from_record=True)
            return before.outcome
        if before is not None and not job.runs_anew:
            self._resumed.on_changed(job.name)
        _log.info("%s: start with %s, repetition %d", origin.code, scrub(job.model_id), job.repetition)
        started_at = utc_now()
        try:
            outcome = await self._outcome(job, origin, progress)
        except UnjudgedError as stop:
            outcome = stop.outcome
        except RefusedError as error:
            outcome = fault_outcome(error)
        except RuleTimeoutError as error:
            outcome = Outcome(Verdict.ERROR, error.code, str(error))
        except HelmbenchError as error:
            outcome = Outcome(Verdict.ERROR, "not_judged", str(error))
        except MemoryError:
            outcome = Outcome(Verdict.ERROR, "not_judged", "there was not enough memory for this case")
        except asyncio.CancelledError:
            if not progress.given_up:
                raise
            outcome = Outcome(Verdict.ERROR, "timed_out", progress.given_up)
        progress.check_whole()
        outcome = replace(outcome, started_at=started_at, completed_at=utc_now())
        # A case that was not even asked leaves the verdict that it has.
        supersedes = before is not None and outcome.verdict is not Verdict.SKIPPED
        self._record(job, origin, outcome, supersedes=supersedes)
        try:
            # Its reply is on disk, so nothing paid is at stake: another case may have its place.
            with progress.asleep():
                await self._backend.stored()
        except RefusedError as error:
            return fault_outcome(error)
        return outcome.for_item()

    def _record(
        self,
        job: CaseJob,
        origin: Origin,
        outcome: Outcome,
        *,
        supersedes: bool = False,
        from_record: bool = False,
    ) -> None:
        self._backend.record_result(
            ResultRecord(
                run_id=origin.run_id,
                code=origin.code,
                node_id=job.node_id,
                family=job.family,
                repetition=origin.repetition,
                severity=job.severity,
                difficulty=job.difficulty,
                neutral=job.neutral,
                outcome=outcome,
                supersedes=supersedes,
                from_record=from_record,
            )
        )
        _log.info("%s: %s%s", origin.code, outcome.verdict, f" ({outcome.reason})" if outcome.reason else "")

    async def _stands(self, job: CaseJob, before: RecordedCase, origin: Origin) -> bool:
        """Return whether a verdict on record answers the request of now by the rule of now."""
        endpoint = job.target.model.endpoint
        if isinstance(endpoint, Unusable):
            return True
        case = job.case(job.system_prompt)
        if job.is_one_question and before.request_hash not in await self._answered_by(
            job, origin, case, endpoint
        ):
            return False
        weights = (case.severity, case.difficulty, job.neutral)
        if weights != (before.severity, before.difficulty, before.neutral):
            return False
        known = tuple(evaluation.rule_hash for evaluation in before.outcome.evaluations)
        return known == job.rule_hashes(case, self._settings)

    async def _answered_by(
        self, job: CaseJob, origin: Origin, case: Case, endpoint: Endpoint
    ) -> frozenset[str]:
        """Return the hashes of the request that the last reply to a case answers; none where it must be asked."""
        dialogue, entry = Dialogue(case), job.target.model.entry
        if not case.is_conversation:
            call = dialogue.call(origin, entry, endpoint)
            return frozenset() if call is None else self._gateway.fingerprints(call)
        last = frozenset[str]()
        while (call := dialogue.call(origin, entry, endpoint)) is not None:
            request_hash, reply = await self._gateway.on_record(call)
            if reply is None:
                return frozenset()
            last = frozenset((request_hash,))
            dialogue.hear(reply)
        return last

    def _run_id(self, job: CaseJob) -> int:
        run_id = self._resumed.run_ids.get(job.target.key)
        if run_id is None:
            raise RuntimeError(f"{job.name}: its run is not open")
        return run_id

    async def _outcome(self, job: CaseJob, origin: Origin, progress: Progress[CaseJob]) -> Outcome:
        endpoint = usable_endpoint(job.target.model, "no_model")
        if job.skip_reason is not None:
            raise UnjudgedError(Outcome(Verdict.SKIPPED, "unsupported", job.skip_reason))
        context = CaseContext(
            gateway=self._gateway,
            origin=origin,
            entry=job.target.model.entry,
            endpoint=endpoint,
            marking_models=job.target.judges,
            clock=CaseClock(self._gateway.retry_policy, self._awake),
            watch=progress,
            settings=self._settings,
            judges=self._judges,
        )
        return await job.work.perform(self._case(job), context)

    def _case(self, job: CaseJob) -> Case:
        try:
            return job.case(job.system_prompt)
        except HelmbenchError as error:
            raise UnjudgedError(Outcome(Verdict.ERROR, "not_readable", str(error))) from error


_WIDE_WINDOW = 10_000


@dataclass(frozen=True, slots=True)
class Share:
    """The share of a session that one process works on.

    Args:
        concurrency: Calls in flight in the whole session.
        few_ahead: At most `concurrency` outcomes wait (the session stops at a failure).
        workers: Processes that the session has.
        name: Of this process, in reply keys.
    """

    concurrency: int
    few_ahead: bool
    workers: int = 1
    name: str = ""

    @property
    def window(self) -> int:
        """Most outcomes that may wait for their items here."""
        return max(1, self.concurrency // self.workers) if self.few_ahead else _WIDE_WINDOW

    @property
    def slack(self) -> int:
        """Cases that wait for permits beside those that have one, so that the limiter always finds one to start."""
        return 0 if self.few_ahead else max(4, self.concurrency // 4)


@dataclass(frozen=True, slots=True)
class CaseEngineSettings:
    """Settings that the cases of a session share.

    Args:
        recorded: Whether replies on record may replace calls.
        limits: Of models, by model id.
        batched: Ids of the models whose calls go in batches where they may.
    """

    runner: RunnerSettings
    retry_policy: RetryPolicy
    recorded: RecordedUse = RecordedUse.NEVER
    limits: Mapping[str, ModelLimits] = field(default_factory=dict)
    batched: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Resumed:
    """The runs that cases belong to.

    Args:
        run_ids: `evaluation_runs.id` by benchmark and model.
        judged: Cases with a verdict on record, by run, code and repetition; empty unless a session goes on.
        on_changed: Told the name of a case whose verdict on record is not that of now.
    """

    run_ids: RunIds
    judged: Mapping[CaseKey, RecordedCase]
    on_changed: Callable[[str], None]


class CaseEngine:
    """Runs the cases of a process ahead of the items that wait for them.

    Args:
        loop: Where everything runs; not closed here.
    """

    def __init__(
        self, loop: LoopThread, backend: Backend, settings: CaseEngineSettings, share: Share, resumed: Resumed
    ) -> None:
        self._loop = loop
        self.gateway = loop.run(_gateway(backend, settings, share.name))
        runner = CaseRunner(self.gateway, backend, settings.runner, resumed)

        # A server that has to load its models is asked for one after the other.
        queues = {name: (one.loads and one.server) or name for name, one in settings.limits.items()}
        most_of: dict[str, int] = {}
        for name, one in settings.limits.items():
            most_of[queues[name]] = max(most_of.get(queues[name], 1), one.concurrency)

        def width(queue_name: str) -> int:
            most = most_of.get(queue_name, share.concurrency)
            return share.slack + min(most, share.concurrency)

        def queue_of(name: str) -> str:
            return queues.get(name, name)

        self.queue: JobQueue[CaseJob] = JobQueue(loop, runner.run, width, share.window, queue_of)

    def end(self, reason: str, grace_s: float) -> None:
        """Cancel what is left; calls on the wire get a grace, which Ctrl-C cuts short. Then close the client."""
        try:
            self.queue.cancel(reason, grace_s)
        except KeyboardInterrupt:
            self.queue.hurry()
            self.queue.cancel(reason, 0.0)
        self._loop.run_last(self.gateway.close())


async def _gateway(backend: Backend, settings: CaseEngineSettings, name: str) -> Gateway:
    gateway = Gateway(backend, None, settings.retry_policy, name, recorded=settings.recorded)
    gateway.batched = settings.batched
    return gateway
