"""One case from prompt to outcome: asks, evaluates, has it judged, puts the outcome on record."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from pytest_helmbench.benchmarks.scenario_trees.field_evaluation import evaluate_fields
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, ResultRecord, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.engine import Progress
from pytest_helmbench.engine.job import CaseJob, Route, RunIds
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, Work, fault_outcome
from pytest_helmbench.gateway.attempt import utc_now
from pytest_helmbench.gateway.backend import Backend
from pytest_helmbench.gateway.call import Call, Origin
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.faults import FaultKind
from pytest_helmbench.gateway.gateway import NOT_ON_RECORD, Gateway
from pytest_helmbench.gateway.limiter import ModelStoppedError, RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable
from pytest_helmbench.gateway.retries import CallFailedError
from pytest_helmbench.judging.case_evaluation import (
    evaluate_judged,
    judged_outcome,
    with_reply,
)
from pytest_helmbench.judging.judge import JudgeTemplate, OffMenuError, is_on_menu
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

__all__ = ["CaseRunner", "RunnerSettings"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class RunnerSettings:
    """What every case of a session shares.

    Args:
        system_prompt: Text of a system message before the user message; None for none.
        strict_json: No recovery of JSON from surrounding text.
        template: The judge's wording.
    """

    system_prompt: str | None
    strict_json: bool
    template: JudgeTemplate


CaseKey = tuple[int, str, int]
"""Run, code, repetition."""


class JudgedBefore(Protocol):
    """A verdict on record."""

    @property
    def outcome(self) -> Outcome:
        """As it was."""

    @property
    def request_hash(self) -> str:
        """Of the request that the judged reply answers."""

    @property
    def severity(self) -> int:
        """Base severity that it was reached with; `difficulty` and `neutral` likewise."""

    @property
    def difficulty(self) -> int:
        """See `severity`."""

    @property
    def neutral(self) -> bool:
        """See `severity`."""


class CaseRunner:
    """Turns jobs into outcomes.

    Args:
        gateway: Where calls go.
        backend: Where outcomes are put on record.
        settings: Shared by all cases.
        run_ids: `evaluation_runs.id` by benchmark and model.
        judged: Cases with a verdict on record, by run, code and repetition.
        on_changed: Told the name of a case whose verdict on record is not that of now.
    """

    def __init__(
        self,
        gateway: Gateway,
        backend: Backend,
        settings: RunnerSettings,
        run_ids: RunIds,
        judged: Mapping[CaseKey, JudgedBefore],
        on_changed: Callable[[str], None],
    ) -> None:
        self._gateway = gateway
        self._backend = backend
        self._settings = settings
        self._run_ids = run_ids
        self._on_record = judged
        self._on_changed = on_changed
        self._without_temperature: set[str] = set()

    async def run(self, job: CaseJob, progress: Progress[CaseJob]) -> Outcome:
        """Return the outcome of a case; it is on its way to the record by then."""
        before = self._on_record.get((self._run_id(job), job.code, job.repetition))
        if before is not None and not job.runs_anew and self._stands(job, before):
            self._record(job, before.outcome)
            return before.outcome
        if before is not None and not job.runs_anew:
            self._on_changed(job.name)
        _log.info("%s: start with %s, repetition %d", job.code, scrub(job.model_id), job.repetition)
        started_at = utc_now()
        try:
            outcome = await self._outcome(job, progress)
        except UnjudgedError as stop:
            outcome = stop.outcome
        except RefusedError as error:
            outcome = fault_outcome(error)
        outcome = replace(outcome, started_at=started_at, completed_at=utc_now())
        # A case that was not even asked leaves the verdict that it has.
        supersedes = before is not None and outcome.verdict is not Verdict.SKIPPED
        self._record(job, outcome, supersedes=supersedes)
        return outcome.for_item()

    def _record(self, job: CaseJob, outcome: Outcome, *, supersedes: bool = False) -> None:
        self._backend.record_result(
            ResultRecord(
                run_id=self._run_id(job),
                code=job.code,
                node_id=job.node_id,
                family=job.family,
                repetition=job.repetition,
                severity=job.severity,
                difficulty=job.difficulty,
                neutral=job.neutral,
                outcome=outcome,
                supersedes=supersedes,
            )
        )
        _log.info("%s: %s%s", job.code, outcome.verdict, f" ({outcome.reason})" if outcome.reason else "")

    def _stands(self, job: CaseJob, before: JudgedBefore) -> bool:
        """Return whether a verdict on record answers the request of now by the rule of now."""
        endpoint = job.target.model.endpoint
        if isinstance(endpoint, Unusable):
            return True
        case = job.case(self._settings.system_prompt)
        call = Call(self._origin(job), job.target.model.entry, endpoint, case.messages, case.response_format)
        if job.is_one_question and self._gateway.fingerprint(call) != before.request_hash:
            return False
        weights = (case.severity, case.difficulty, job.neutral)
        if weights != (before.severity, before.difficulty, before.neutral):
            return False
        judge = job.target.judge.entry.id if job.target.judge is not None else ""
        wanted = job.rule_hashes(case, self._settings.template, judge)
        return tuple(evaluation.rule_hash for evaluation in before.outcome.evaluations) == wanted

    def _origin(self, job: CaseJob) -> Origin:
        return Origin(self._run_id(job), job.code, job.repetition)

    def _run_id(self, job: CaseJob) -> int:
        run_id = self._run_ids.get(job.target.key)
        if run_id is None:
            raise RuntimeError(f"{job.name}: its run is not open")
        return run_id

    async def _outcome(self, job: CaseJob, progress: Progress[CaseJob]) -> Outcome:
        endpoint = _usable(job.target.model, "no_model")
        if job.skip_reason is not None:
            raise UnjudgedError(Outcome(Verdict.SKIPPED, "unsupported", job.skip_reason))
        case = self._case(job)
        judge = _judge_of(job, case)
        clock = CaseClock(self._gateway.patience)
        work = job.work
        if work is not None:
            obstacle = await work.obstacle(case)
            if obstacle is not None:
                return obstacle
            entry = job.target.model.entry
            performed = await work.perform(
                case, CaseContext(self._gateway, self._origin(job), entry, endpoint, clock, progress)
            )
            if performed is not None:
                return performed
        call = Call(
            self._origin(job),
            job.target.model.entry,
            endpoint,
            case.messages,
            case.response_format,
            timeout_s=case.timeout_s,
        )
        try:
            reply = await self._gateway.ask(call, clock, progress)
        except (CallFailedError, ModelStoppedError) as error:
            raise UnjudgedError(fault_outcome(error)) from error
        if work is not None and judge is None:
            evaluations = await self._worked(work, case, reply)
        elif judge is None:
            evaluations = evaluate_fields(case, reply, strict_json=self._settings.strict_json)
        else:
            evaluations = await self._judged(job, case, reply, judge, clock, progress)
        return judged_outcome(reply, evaluations)

    async def _worked(self, work: Work, case: Case, reply: Reply) -> tuple[Evaluation, ...]:
        try:
            return await work.evaluate(case, reply)
        except UnjudgedError as stop:
            raise UnjudgedError(with_reply(stop.outcome, reply)) from stop

    def _case(self, job: CaseJob) -> Case:
        try:
            return job.case(self._settings.system_prompt)
        except HelmbenchError as error:
            raise UnjudgedError(Outcome(Verdict.ERROR, "not_readable", str(error))) from error

    async def _judged(
        self,
        job: CaseJob,
        case: Case,
        reply: Reply,
        judge: tuple[Route, Endpoint],
        clock: CaseClock,
        progress: Progress[CaseJob],
    ) -> tuple[Evaluation, ...]:
        route, endpoint = judge
        sequence = 0

        async def ask(
            criterion: Criterion, messages: tuple[Message, ...], response_format: Mapping[str, Any]
        ) -> Reply:
            nonlocal sequence
            sequence += 1
            call = Call(
                self._origin(job),
                route.entry,
                endpoint,
                messages,
                response_format,
                purpose="judge",
                criterion=criterion.name,
                sequence=sequence,
                accepts=partial(is_on_menu, criterion),
            )
            return await self._ask_judge(call, clock, progress)

        try:
            return await evaluate_judged(
                case, reply, template=self._settings.template, judge_model=route.entry.id, ask=ask
            )
        except OffMenuError as error:
            outcome = Outcome(
                Verdict.ERROR, "judge_off_menu", f"the judge {route.entry.id} is at fault: {error}"
            )
            raise UnjudgedError(with_reply(outcome, reply)) from error
        except (CallFailedError, ModelStoppedError) as error:
            raise UnjudgedError(with_reply(fault_outcome(error, "judge_"), reply)) from error

    async def _ask_judge(self, call: Call, clock: CaseClock, progress: Progress[CaseJob]) -> Reply:
        """Ask once more without a temperature when the judge's provider takes none; it is asked so from then on."""
        sampling = call.entry.sampling
        plain = replace(call, entry=replace(call.entry, sampling=replace(sampling, temperature=None)))
        if call.entry.id in self._without_temperature:
            return await self._gateway.ask(plain, clock, progress)
        try:
            return await self._gateway.ask(call, clock, progress)
        except CallFailedError as error:
            fault = error.fault
            takes_none = fault.kind is FaultKind.REJECTED and "temperature" in (
                fault.parameter or fault.message
            )
            if sampling.temperature is None or not (takes_none or fault.reason == NOT_ON_RECORD):
                raise
            if takes_none:
                self._without_temperature.add(call.entry.id)
            return await self._gateway.ask(plain, clock, progress)


def _usable(route: Route, reason: str) -> Endpoint:
    if isinstance(route.endpoint, Unusable):
        message = f"{route.entry.id} cannot be called: {route.endpoint.reason}"
        raise UnjudgedError(Outcome(Verdict.SKIPPED, reason, message))
    return route.endpoint


def _judge_of(job: CaseJob, case: Case) -> tuple[Route, Endpoint] | None:
    """Return who judges; None for field rules. Without a usable judge the case is not even asked."""
    if not isinstance(case.rule, JudgeRule):
        return None
    route = job.target.judge
    if route is None:
        message = "no judge: give --helmbench-marking-model, or marking_model in models.yml"
        raise UnjudgedError(Outcome(Verdict.SKIPPED, "no_judge", message))
    return route, _usable(route, "no_judge")
