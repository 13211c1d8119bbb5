"""Rescoring: the stored replies of a run judged again by the rules of today, without a call, as a run of its own.

The kind of the benchmark performs the cases as in any session; the record of the run takes the place of the gateway.
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
from pytest_helmbench.options.settings import Settings, judging_as
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

NEEDS_JUDGE = "needs_judge"
"""Reason of a case whose judge has never answered its question."""

OTHER_PROMPT = "other_prompt"
"""Reason of a case whose prompt has changed: its stored reply answers another question."""

_AT_ONCE = 16


class RescoreError(HelmbenchError):
    """A run that cannot be judged again."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """The changes that judging a run again has made; counts are cases × repetitions judged before.

    Args:
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


def rescore(
    path: Path, detail: RunDetail, root: Path, session: SessionValues, settings: Settings
) -> Rescored:
    """Judge the stored replies of a run by the rules that its benchmark has now, and store that as a new run.

    Args:
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
    _refuse_kind(run_id, places.name)
    settings = judging_as(settings, detail.settings)
    loader = kind_of(places).open(replace(session, settings=settings))
    return asyncio.run(_rescored(path, detail, loader, _target(detail, root), settings))


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
    _refuse_kind(run_id, detail.kind)


def _refuse_kind(run_id: int, kind: str) -> None:
    """Refuse a kind whose replies only itself can judge."""
    sentence = places_named(kind).not_rescored
    if sentence:
        raise HelmbenchError(f"run {run_id} cannot be judged anew: {sentence}")


async def _rescored(
    path: Path, detail: RunDetail, loader: Loader, target: Target, settings: Settings
) -> Rescored:
    run_id = detail.id
    try:
        loaded = loader.load(target.benchmark, (target,))
        jobs = {job.code: job for file in loaded.files for job in loaded.jobs(file, "", 1)}
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
        known = [(case, jobs[case.code]) for case in cases if case.code in jobs]
        judged = await _judged(known, settings, JudgeAnswers(path, judge_replies(path, run_id)))
    finally:
        await loader.close()
    sample = None if facts is None or facts.sample is None else facts.sample.narrowed(codes)
    place = place_of(loaded.root, path)
    record = _record(detail, loaded, codes, place, whole=len(codes) == len(jobs))
    rescored_id = _write(path, replace(record, broken=broken, sample=sample), judged)
    outcomes = [case.outcome for case in judged]
    reasons = Counter(outcome.reason for outcome in outcomes)
    return Rescored(
        run_id=rescored_id,
        changed=changed_verdicts((path, run_id), (path, rescored_id)),
        needs_judge=reasons[NEEDS_JUDGE],
        other_prompt=reasons[OTHER_PROMPT],
        gone=len(cases) - len(judged),
        not_rescored=Counter(case.message for case in outcomes if case.message and not case.judged),
        before=stored_score(path, run_id),
        after=stored_score(path, rescored_id),
    )


def _target(detail: RunDetail, root: Path) -> Target:
    """Return the models of a run, at addresses that nothing is sent to."""

    def route(model: str) -> Route:
        return Route(ModelEntry(model), replay_endpoint(model))

    return Target(root, route(detail.model), tuple(map(route, judges_of(detail.settings))))


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


@dataclass(frozen=True, slots=True)
class _RescoredCase:
    """A case with its new outcome and the answers that it rests on, the case's own first."""

    stored: StoredCase
    job: CaseJob
    outcome: Outcome
    answers: StoredAnswers


async def _judged(
    cases: Iterable[tuple[StoredCase, CaseJob]], settings: Settings, judges: JudgeAnswers
) -> Sequence[_RescoredCase]:
    """Perform cases on what the record says; return each with its new outcome, in order."""
    rules = RunnerSettings(settings.strict_json, load_template(settings.judge_template))
    places = asyncio.Semaphore(_AT_ONCE)

    async def judge(stored: StoredCase, job: CaseJob) -> _RescoredCase:
        job = replace(job, repetition=stored.repetition)
        answers = StoredAnswers(stored, judges)
        if answers.own is None:
            return _RescoredCase(stored, job, _as_before(stored), answers)
        async with places:
            outcome = await _outcome(job, answers, rules)
        if outcome.reason == NEEDS_JUDGE and stored.outcome == Verdict.ERROR:
            outcome = _as_before(stored)  # where the judge itself failed, that is still what is known
        outcome = outcome if outcome.judged else with_reply(outcome, answers.own.reply)
        return _RescoredCase(stored, job, outcome, answers)

    return await asyncio.gather(*(judge(*case) for case in cases))


async def _outcome(job: CaseJob, answers: StoredAnswers, rules: RunnerSettings) -> Outcome:
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
        settings=rules,
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
    if stored.outcome in ("passed", "failed"):
        return Outcome(Verdict.ERROR, "unreadable_reply")
    return Outcome(Verdict(stored.outcome), stored.reason)


def _record(
    detail: RunDetail, loaded: Loaded, codes: tuple[str, ...], place: str | None, *, whole: bool
) -> RunRecord:
    scoring = loaded.scoring
    settings = {
        **detail.settings,
        "benchmark_path": str(loaded.root),
        "scoring": None if scoring is None else asdict(scoring),
    }
    return RunRecord(
        benchmark=loaded.outline,
        model=detail.model,
        provider=detail.provider,
        base_url=detail.base_url,
        scope="selected" if detail.scope == "whole" and not whole else detail.scope,
        total_tests=len(codes) * int(str(settings.get("repeat") or 1)),
        total_evaluations=None,
        settings=settings,
        plugin_version=version("pytest-helmbench"),
        started_at=iso_time(time.time()),
        codes=codes,
        rescored_from=detail.id,
        place=place,
    )


def _write(path: Path, record: RunRecord, judged: Sequence[_RescoredCase]) -> int:
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


def _attempts(run_id: int, case: _RescoredCase) -> Iterator[AttemptRecord]:
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


def _result(run_id: int, case: _RescoredCase) -> ResultRecord:
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


class JudgeAnswers:
    """The answers of judges in a run; its results file may hold those of other runs, too."""

    def __init__(self, path: Path, replies: Sequence[JudgeReply]) -> None:
        self._path = path
        self._requests: dict[tuple[str, str, int, str], StoredReply] = {}
        self._samples: dict[tuple[str, int], StoredReply] = {}
        self._answers: dict[tuple[str, str, int, str, str], StoredReply] = {}
        for given in replies:
            reply, judge = given.reply, given.judge or ""
            key = judge, given.code, given.repetition, given.criterion
            self._requests[key] = reply
            self._samples[judge, given.repetition] = reply
            self._answers[*key, reply.request_hash] = reply

    def answer(self, call: Call) -> StoredReply | None:
        """Return the judge's answer to exactly this request, in this run or in any other.

        The request is the stored one (model, sampling, what its server wants) with the new words in it.
        """
        judge, repetition = call.entry.id, call.origin.repetition
        key = judge, call.origin.code, repetition, call.criterion
        sample = self._requests.get(key) or self._samples.get((judge, repetition))
        if sample is None:
            return None
        body = json.loads(sample.request)
        body["messages"] = [message.wire() for message in call.messages]
        body["response_format"] = call.response_format
        wanted = request_hash(encode(body))
        known = self._answers.get((*key, wanted))
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
    """Answers the calls of one case from the record. See `engine.work.CaseGateway`."""

    retry_policy = RetryPolicy()

    def __init__(self, case: StoredCase, judges: JudgeAnswers) -> None:
        self._judges = judges
        self._case = case
        reply = None if case.reply is None else _read(case.reply, f"{case.code} {case.repetition}")
        self.own = None if case.reply is None or reply is None else GivenAnswer("case", "", case.reply, reply)
        """The answer of the model; None where none can be read."""
        self._turns: list[GivenAnswer] = []
        self._judged: list[GivenAnswer] = []

    @property
    def given(self) -> Sequence[GivenAnswer]:
        """The answers that were given, those of the model first."""
        own = [] if self.own is None else [self.own]
        return [*(self._turns or own), *self._judged]

    def place(self, _model_id: str, _units: int = 1) -> AbstractAsyncContextManager[None]:
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
        if self.own is None or not _asks_the_same(call, self.own.stored):
            raise UnjudgedError(Outcome(Verdict.SKIPPED, OTHER_PROMPT))
        return self.own.reply

    def _turn_reply(self, call: Call) -> Reply:
        """Return the newest reply to the conversation so far."""
        key = f"{call.origin.code} {call.origin.repetition} {len(self._turns)}"
        for stored in reversed(self._case.turns):
            reply = _read(stored, key) if _asks_the_same(call, stored) else None
            if reply is not None:
                self._turns.append(GivenAnswer("case", "", stored, reply, turn=call.turn))
                return reply
        raise UnjudgedError(Outcome(Verdict.SKIPPED, OTHER_PROMPT))

    def _judge_reply(self, call: Call) -> Reply:
        stored = self._judges.answer(call)
        key = f"{call.origin.code} {call.origin.repetition} {call.criterion}"
        reply = None if stored is None else _read(stored, key)
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
        latency_ms=stored.latency_ms,
        key=key,
        recorded=True,
        first_cost_usd=parsed.usage.cost_usd,
    )


def _asks_the_same(call: Call, stored: StoredReply) -> bool:
    """Return whether a stored request has the messages of a call; the system prompt is the run's own."""
    sent_system, sent = _by_role(json.loads(stored.request).get("messages") or [])
    system, messages = _by_role([message.wire() for message in call.messages])
    return sent == messages and sent_system.endswith(system)


def _by_role(messages: Sequence[JsonObject]) -> tuple[str, list[JsonObject]]:
    """Return the text of the system messages, and the other messages."""
    system = [str(message.get("content")) for message in messages if message.get("role") == "system"]
    return "\n\n".join(system), [message for message in messages if message.get("role") != "system"]
