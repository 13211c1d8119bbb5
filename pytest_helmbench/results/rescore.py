"""New rules over stored replies: a run is judged again without a call, and becomes a run of its own.

The cases are performed as in any session, by their kind; the record of the run stands where the gateway stands then.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import asdict, replace
from importlib.metadata import version
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Loaded, Loader, SessionValues
from pytest_helmbench.benchmarks.registry import kind_of, places_named, places_of
from pytest_helmbench.core.ids import new_id
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import AttemptRecord, Outcome, Reply, ResultRecord, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.questions import Judges
from pytest_helmbench.engine.work import CaseContext, Route, RunnerSettings, UnjudgedError
from pytest_helmbench.gateway.call import Call, CallWatch, CaseClock, Origin
from pytest_helmbench.gateway.faults import Fault
from pytest_helmbench.gateway.providers.endpoints import replay_endpoint
from pytest_helmbench.gateway.replies import encode, parse_reply
from pytest_helmbench.gateway.requests import completion_bound, request_hash
from pytest_helmbench.gateway.retries import RetryPolicy
from pytest_helmbench.judging.judge import load_template, with_reply
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.results.differences import ChangedVerdicts, changed_verdicts
from pytest_helmbench.results.stored_scores import run_totals, scored_run, stored_score
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.store.leases import iso_time
from pytest_helmbench.store.read.benchmark_places import place_of
from pytest_helmbench.store.read.reply_rows import (
    JudgeReply,
    StoredCase,
    StoredReply,
    judge_replies,
    newest_reply,
    stored_cases,
)
from pytest_helmbench.store.read.runs import RunDetail, judges_of
from pytest_helmbench.store.read.score_facts import load_facts
from pytest_helmbench.store.write.run_rows import RunRecord
from pytest_helmbench.store.write.writer import Store

NOT_RESCORED = "not_rescored"
"""Reason of a case whose reply cannot be judged again."""

_JUDGED = ("passed", "failed")
_AT_ONCE = 16


class RescoreError(HelmbenchError):
    """A run that cannot be judged again."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """What judging a run again has changed; counts are cases × repetitions judged before.

    Args:
        run_id: The new run.
        changed: Verdicts and credits that changed, as a comparison of both runs counts them.
        needs_judge: Their judge would be asked something new.
        other_prompt: Their prompt is another one now.
        gone: No longer in the benchmark.
        not_rescored: Their reply cannot be judged again, by the sentence that says why.
        before: Score of the old run; None when it can have none.
        after: Score of the new run, likewise.
    """

    run_id: int
    changed: ChangedVerdicts
    needs_judge: int
    other_prompt: int
    gone: int
    not_rescored: Mapping[str, int]
    before: RunScore | None
    after: RunScore | None


@dataclass(frozen=True, slots=True)
class _Judged:
    """A case with its new outcome and the answers that it rests on, the case's own first."""

    stored: StoredCase
    job: CaseJob
    outcome: Outcome
    answers: StoredAnswers


def rescore(
    path: Path, detail: RunDetail, root: Path, session: SessionValues, settings: Settings
) -> Rescored:
    """Judge the stored replies of a run by the rules that its benchmark has now, and store that as a new run.

    Args:
        path: Results file.
        detail: The run.
        root: Folder of the benchmark.
        session: What the kind is given, but for the settings.
        settings: Of the command; what decides verdicts is taken from the run.

    Raises:
        RescoreError: A scenario of the run is broken, or nothing of the run is in the benchmark.
        HelmbenchError: Its kind cannot, or the benchmark or the judge's template cannot be read.
        StoreError: The file cannot be read or written.
    """
    run_id = detail.id
    places = places_of(root)
    if places is None:
        raise RescoreError(f"{root}: no benchmark\n  hint: name one with --benchmark PATH")
    refuse_kind(run_id, places.name)
    settings = settings.judging_as(detail.settings)
    loader = kind_of(places).open(replace(session, settings=settings))
    return asyncio.run(_rescored(path, detail, loader, _target(detail, root), settings))


async def _rescored(
    path: Path, detail: RunDetail, loader: Loader, target: Target, settings: Settings
) -> Rescored:
    run_id = detail.id
    try:
        loaded = loader.load(target.benchmark, (target,))
        jobs = {job.code: job for job in _jobs(loaded)}
        facts = load_facts(path, run_id)
        planned, broken = (facts.codes, facts.broken) if facts is not None else ((), ())
        _refuse_broken(loaded, [code for code in planned if code not in jobs])
        codes = tuple(code for code in planned if code in jobs)
        if not codes:
            raise RescoreError(
                f"{loaded.root}: no case of run {run_id} is in this benchmark\n"
                "  hint: name its own with --benchmark PATH"
            )
        cases = stored_cases(path, run_id)
        judge = _Judge(settings, JudgeAnswers(path, judge_replies(path, run_id)))
        known = [(case, jobs[case.code]) for case in cases if case.code in jobs]
        judged = await judge.judged(known)
    finally:
        await loader.close()
    sample = None if facts is None or facts.sample is None else facts.sample.narrowed(codes)
    place = place_of(loaded.root, path)
    record = _record(detail, loaded, codes, place, whole=len(codes) == len(jobs))
    rescored_id = _write(path, replace(record, broken=broken, sample=sample), judged)
    changed = changed_verdicts((path, run_id), (path, rescored_id))
    scores = stored_score(path, run_id), stored_score(path, rescored_id)
    return _difference(rescored_id, cases, judged, changed, scores)


def _target(detail: RunDetail, root: Path) -> Target:
    """Return the models of a run. Nothing is sent to where they are said to be reached."""

    def route(model: str) -> Route:
        return Route(ModelEntry(model), replay_endpoint(model))

    return Target(root, route(detail.model), tuple(map(route, judges_of(detail.settings))))


def _jobs(loaded: Loaded) -> Iterator[CaseJob]:
    for file in loaded.files:
        yield from loaded.jobs(file, "", 1)


def _refuse_broken(loaded: Loaded, missing: Iterable[str]) -> None:
    """A broken scenario must not pass for one that was taken out of the benchmark."""
    scenarios = {loaded.scenario_of(code) for code in missing}
    texts = [
        problem.text(loaded.root)
        for name, problems in loaded.broken
        if name in scenarios
        for problem in problems
    ]
    if texts:
        raise RescoreError("\n".join([f"{loaded.root}: scenarios of the run are broken:", *texts]))


class _Judge:
    """Performs cases on what the record says.

    Args:
        settings: As the run was judged.
        judges: What judges have said in it.
    """

    def __init__(self, settings: Settings, judges: JudgeAnswers) -> None:
        self._judges = judges
        template = load_template(settings.judge_template)
        self._settings = RunnerSettings(settings.strict_json, template)
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def judged(self, cases: Iterable[tuple[StoredCase, CaseJob]]) -> Sequence[_Judged]:
        """Return every case with its new outcome, in order."""
        return await asyncio.gather(*(self._one(stored, job) for stored, job in cases))

    async def _one(self, stored: StoredCase, job: CaseJob) -> _Judged:
        job = replace(job, repetition=stored.repetition)
        answers = StoredAnswers(stored, self._judges)
        if answers.own is None:
            return _Judged(stored, job, _as_before(stored), answers)
        async with self._places:
            outcome = await self._outcome(job, answers)
        if outcome.reason == NEEDS_JUDGE and stored.outcome == Verdict.ERROR:
            outcome = _as_before(stored)  # where the judge itself failed, that is still what is known
        outcome = outcome if outcome.judged else with_reply(outcome, answers.own)
        return _Judged(stored, job, outcome, answers)

    async def _outcome(self, job: CaseJob, answers: StoredAnswers) -> Outcome:
        if job.not_rescored is not None:
            return Outcome(Verdict.SKIPPED, NOT_RESCORED, job.not_rescored)
        context = CaseContext(
            gateway=answers,
            origin=Origin(0, job.code, job.repetition),
            entry=job.target.model.entry,
            endpoint=replay_endpoint(job.model_id),
            marking_models=job.target.judges,
            clock=CaseClock(answers.retry_policy),
            watch=CallWatch(),
            settings=self._settings,
            judges=Judges(answers),
        )
        try:
            return await job.work.perform(job.case(None), context)
        except UnjudgedError as stop:
            return stop.outcome
        except HelmbenchError as error:
            return Outcome(Verdict.ERROR, "not_readable", str(error))


def _as_before(stored: StoredCase) -> Outcome:
    """Return the outcome of a case that cannot be judged again: an error stays one."""
    verdict = Verdict(stored.outcome) if stored.outcome not in _JUDGED else Verdict.ERROR
    reason = stored.reason if stored.outcome not in _JUDGED else "unreadable_reply"
    return Outcome(verdict, reason)


def _record(
    detail: RunDetail, loaded: Loaded, codes: tuple[str, ...], place: str | None, *, whole: bool
) -> RunRecord:
    run = detail
    scoring = loaded.scoring
    settings = {
        **detail.settings,
        "benchmark_path": str(loaded.root),
        "scoring": None if scoring is None else asdict(scoring),
    }
    return RunRecord(
        benchmark=loaded.outline,
        model=run.model,
        provider=detail.provider,
        base_url=detail.base_url,
        scope="selected" if run.scope == "whole" and not whole else run.scope,
        total_tests=len(codes) * int(str(settings.get("repeat") or 1)),
        total_evaluations=None,
        settings=settings,
        plugin_version=version("pytest-helmbench"),
        started_at=iso_time(time.time()),
        codes=codes,
        rescored_from=run.id,
        place=place,
    )


def _write(path: Path, record: RunRecord, judged: Sequence[_Judged]) -> int:
    """Store the new run and return its id."""
    store = Store.open(path)
    try:
        (run_id,) = store.open_runs(new_id(), [record])
        for case in judged:
            for attempt in _attempts(run_id, case):
                store.record_attempt(attempt)
            store.record_result(_result(run_id, case))
        store.flush()
        facts = load_facts(path, run_id)
        status = "complete" if facts is not None and facts.complete else "partial"
        store.close_run(run_id, run_totals(status, iso_time(time.time()), scored_run(path, run_id)))
    finally:
        store.close()
    if store.fault is not None:
        raise store.fault
    return run_id


def _attempts(run_id: int, case: _Judged) -> Iterator[AttemptRecord]:
    now = iso_time(time.time())
    counts: Counter[str] = Counter()
    for answer in case.answers.given:
        stored, reply = answer.stored, answer.reply
        counts[answer.purpose] += 1
        yield AttemptRecord(
            run_id=run_id,
            code=case.stored.code,
            repetition=case.stored.repetition,
            criterion=answer.criterion,
            purpose=answer.purpose,
            sequence=counts[answer.purpose],
            attempt=0,
            status_code=200,
            finish_reason=reply.finish_reason,
            error=None,
            latency_ms=reply.latency_ms,
            usage=reply.usage,
            provider_model=reply.provider_model,
            request_hash=stored.request_hash,
            request_body=stored.request,
            response_body=stored.body,
            text=stored.text,
            thoughts=scrub(reply.thoughts) or None,
            inner_thoughts=reply.inner_thoughts,
            reply_key=reply.key,
            from_cache=True,
            started_at=now,
            received_at=now,
            judge=answer.judge or None,
            asked=answer.judge or None,
            turn=answer.turn,
        )


def _result(run_id: int, case: _Judged) -> ResultRecord:
    job = case.job
    now = iso_time(time.time())
    return ResultRecord(
        run_id=run_id,
        code=case.stored.code,
        node_id=case.stored.node_id,
        family=job.family,
        repetition=case.stored.repetition,
        severity=job.severity,
        difficulty=job.difficulty,
        neutral=job.neutral,
        outcome=replace(case.outcome, started_at=now, completed_at=now),
    )


def _difference(
    run_id: int,
    cases: Sequence[StoredCase],
    judged: Sequence[_Judged],
    changed: ChangedVerdicts,
    scores: tuple[RunScore | None, RunScore | None],
) -> Rescored:
    """Return what a new run has changed, and what it could not judge."""
    reasons: Counter[str | None] = Counter()
    not_rescored: Counter[str] = Counter()
    for case in judged:
        reasons[case.outcome.reason] += 1
        if case.outcome.message and not case.outcome.judged:
            not_rescored[case.outcome.message] += 1
    return Rescored(
        run_id=run_id,
        changed=changed,
        needs_judge=reasons[NEEDS_JUDGE],
        other_prompt=reasons[OTHER_PROMPT],
        gone=len(cases) - len(judged),
        not_rescored=not_rescored,
        before=scores[0],
        after=scores[1],
    )


NEEDS_JUDGE = "needs_judge"
"""Reason of a case that a judge would have to be asked about."""
OTHER_PROMPT = "other_prompt"
"""Reason of a case whose prompt has changed: its stored reply answers another question."""


class JudgeAnswers:
    """What judges have said in a run.

    Args:
        path: Results file, where judges of other runs may have answered too.
        replies: Of the run.
    """

    def __init__(self, path: Path, replies: Sequence[JudgeReply]) -> None:
        self._path = path
        self._requests: dict[tuple[str, str, int, str], StoredReply] = {}
        self._samples: dict[tuple[str, int], StoredReply] = {}
        self._answers: dict[tuple[str, str, int, str, str], StoredReply] = {}
        for said in replies:
            reply, judge = said.reply, said.judge or ""
            self._requests[judge, said.code, said.repetition, said.criterion] = reply
            self._samples[judge, said.repetition] = reply
            self._answers[judge, said.code, said.repetition, said.criterion, reply.request_hash] = reply

    def answer(self, call: Call) -> StoredReply | None:
        """Return what the judge has said to exactly this request, in this run or in any other.

        The request is the stored one (model, sampling, what its server wants) with the new words in it.

        Raises:
            StoreError: The file cannot be read.
        """
        code, repetition, criterion = call.origin.code, call.origin.repetition, call.criterion
        judge = call.entry.id
        sample = self._requests.get((judge, code, repetition, criterion)) or self._samples.get(
            (judge, repetition)
        )
        if sample is None:
            return None
        body = json.loads(sample.request)
        body["messages"] = [message.wire() for message in call.messages]
        body["response_format"] = call.response_format
        wanted = request_hash(encode(body))
        known = self._answers.get((judge, code, repetition, criterion, wanted))
        return known or newest_reply(self._path, wanted, repetition, judge, sample.address)


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """An answer that an outcome rests on, as it came and as it was read."""

    purpose: str
    criterion: str
    stored: StoredReply
    reply: Reply
    judge: str = ""
    turn: int | None = None


class StoredAnswers:
    """Answers the calls of one case from the record. See `engine.work.CaseGateway`.

    Args:
        case: As stored.
        judges: Of its run.
    """

    retry_policy = RetryPolicy()

    def __init__(self, case: StoredCase, judges: JudgeAnswers) -> None:
        self._judges = judges
        self._case = case
        self.own = None if case.reply is None else _read(case.reply, f"{case.code} {case.repetition}")
        """What the model said; None where nothing can be read."""
        self._turns: list[GivenAnswer] = []
        self._judged: list[GivenAnswer] = []

    @property
    def given(self) -> Sequence[GivenAnswer]:
        """The answers that were given, those of the model first."""
        if self.own is None or self._case.reply is None or self._turns:
            return [*self._turns, *self._judged]
        return [GivenAnswer("case", "", self._case.reply, self.own), *self._judged]

    def place(self, _model_id: str) -> AbstractAsyncContextManager[None]:
        """There is room for all."""
        return nullcontext()

    async def ask(self, call: Call, _clock: CaseClock, _watch: CallWatch) -> Reply:
        """Return what is on record.

        Raises:
            UnjudgedError: This was never asked.
        """
        if call.purpose != "case":
            return self._judge_reply(call)
        if call.turn is not None:
            return self._turn_reply(call)
        if self.own is None or self._case.reply is None or not _asks_the_same(call, self._case.reply):
            raise UnjudgedError(Outcome(Verdict.SKIPPED, OTHER_PROMPT))
        return self.own

    def _turn_reply(self, call: Call) -> Reply:
        """Return the newest reply to the conversation so far."""
        key = f"{call.origin.code} {call.origin.repetition} {len(self._turns)}"
        alike = (stored for stored in reversed(self._case.turns) if _asks_the_same(call, stored))
        for stored in alike:
            reply = _read(stored, key)
            if reply is not None:
                self._turns.append(GivenAnswer("case", "", stored, reply, turn=call.turn))
                return reply
        raise UnjudgedError(Outcome(Verdict.SKIPPED, OTHER_PROMPT))

    def _judge_reply(self, call: Call) -> Reply:
        stored = self._judges.answer(call)
        reply = (
            None
            if stored is None
            else _read(stored, f"{call.origin.code} {call.origin.repetition} {call.criterion}")
        )
        if stored is None or reply is None:
            raise UnjudgedError(Outcome(Verdict.SKIPPED, NEEDS_JUDGE))
        self._judged.append(GivenAnswer("judge", call.criterion, stored, reply, call.entry.id))
        return reply


def _read(stored: StoredReply, key: str) -> Reply | None:
    """Return a reply from its stored body; its cost was paid by the run that asked."""
    parsed = parse_reply(200, stored.body, most_tokens=completion_bound(json.loads(stored.request)))
    if isinstance(parsed, Fault):
        return None
    return replace(
        parsed,
        usage=replace(parsed.usage, cost_usd=0.0),
        latency_ms=stored.latency_ms or 0.0,
        key=key,
        recorded=True,
        first_cost_usd=parsed.usage.cost_usd,
    )


def _asks_the_same(call: Call, stored: StoredReply) -> bool:
    """Return whether a stored request has the messages of a call; the system prompt is the run's own."""
    said = _by_role(json.loads(stored.request).get("messages") or [])
    asked = _by_role([message.wire() for message in call.messages])
    return said[1] == asked[1] and said[0].endswith(asked[0])


def _by_role(messages: Sequence[JsonObject]) -> tuple[str, list[JsonObject]]:
    """Return the text of the system messages, and the other messages."""
    system = [str(message.get("content")) for message in messages if message.get("role") == "system"]
    return "\n\n".join(system), [message for message in messages if message.get("role") != "system"]


def refuse_run(detail: RunDetail) -> None:
    """Refuse a run of another tool, and one of a kind whose replies only itself can judge.

    Raises:
        HelmbenchError: It is such a run, or its kind is not installed.
    """
    run_id, tool = detail.id, detail.settings.get("imported_from")
    if tool is not None:
        raise HelmbenchError(
            f"run {run_id} cannot be judged anew: another tool has run it ({tool}), and its replies are not stored"
        )
    refuse_kind(run_id, detail.kind)


def refuse_kind(run_id: int, kind: str) -> None:
    """Refuse a kind whose replies only itself can judge; see `refuse_run`."""
    sentence = places_named(kind).not_rescored
    if sentence:
        raise HelmbenchError(f"run {run_id} cannot be judged anew: {sentence}")
