"""New rules over stored replies: a run is judged again without a call, and becomes a run of its own."""

from __future__ import annotations

import asyncio
import json
import time
import uuid
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree
from pytest_helmbench.benchmarks.scenario_trees.jobs import weighted_behaviours
from pytest_helmbench.benchmarks.scenario_trees.tree import Combination, ScenarioTree
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.outcome import (
    AttemptRecord,
    Evaluation,
    Outcome,
    Reply,
    ResultRecord,
    Verdict,
)
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.faults import Fault
from pytest_helmbench.gateway.wire import encode, parse_reply, request_hash
from pytest_helmbench.judging.case_evaluation import (
    evaluate_judged,
    judged_outcome,
    with_reply,
)
from pytest_helmbench.judging.judge import JudgeTemplate, OffMenuError, load_template
from pytest_helmbench.judging.rubric import Criterion
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.session.stored_scores import run_totals, stored_score
from pytest_helmbench.store.plans import load_facts
from pytest_helmbench.store.replay import (
    JudgeReply,
    StoredCase,
    StoredReply,
    judge_replies,
    newest_reply,
    stored_cases,
)
from pytest_helmbench.store.run_queries import RunDetail
from pytest_helmbench.store.run_rows import RunRecord, iso_time
from pytest_helmbench.store.writer import Store

__all__ = ["NEEDS_JUDGE", "OTHER_PROMPT", "RescoreError", "Rescored", "rescore"]

NEEDS_JUDGE = "needs_judge"
"""Reason of a case that a judge would have to be asked about."""
OTHER_PROMPT = "other_prompt"
"""Reason of a case whose prompt has changed: its stored reply answers another question."""

_JUDGED = ("passed", "failed")


class RescoreError(HelmbenchError):
    """A run that cannot be judged again."""


@dataclass(frozen=True, slots=True)
class Rescored:
    """What judging a run again has changed; counts are cases × repetitions judged before.

    Args:
        run_id: The new run.
        now_pass: Failed before.
        now_fail: Passed before.
        same: Verdict as before.
        needs_judge: Their judge would be asked something new.
        other_prompt: Their prompt is another one now.
        gone: No longer in the tree.
        before: Score of the old run; None when it can have none.
        after: Score of the new run, likewise.
    """

    run_id: int
    now_pass: int
    now_fail: int
    same: int
    needs_judge: int
    other_prompt: int
    gone: int
    before: RunScore | None
    after: RunScore | None


@dataclass(frozen=True, slots=True)
class _Use:
    """A stored reply that an outcome rests on, as it came and as it was read."""

    purpose: str
    criterion: str
    stored: StoredReply
    reply: Reply


@dataclass(frozen=True, slots=True)
class _Judged:
    """A case with its new outcome and the replies that it rests on, the case's own first."""

    stored: StoredCase
    combination: Combination
    outcome: Outcome
    uses: tuple[_Use, ...]


class _NeedsJudgeError(Exception):
    """No judge has ever answered this request."""


def rescore(path: Path, detail: RunDetail, root: Path) -> Rescored:
    """Judge the stored replies of a run by the rules that a tree has now, and store that as a new run.

    Args:
        path: Results file.
        detail: The run.
        root: Folder of the benchmark.

    Raises:
        RescoreError: A scenario of the run is broken in the tree, or nothing of the run is in it.
        HelmbenchError: The tree or the judge's template cannot be read.
        StoreError: The file cannot be read or written.
    """
    run_id = detail.summary.id
    facts = load_facts(path, run_id)
    benchmark = load_tree(root)
    known = _combinations(benchmark, add_no_context=bool(detail.settings.get("add_no_context")))
    planned = facts.codes if facts is not None else ()
    _refuse_broken(benchmark, planned)
    codes = tuple(code for code in planned if code in known)
    if not codes:
        raise RescoreError(
            f"{root}: no case of run {run_id} is in this benchmark\n  hint: name its own with --benchmark PATH"
        )
    cases = stored_cases(path, run_id)
    replay = _Replay(path, detail, judge_replies(path, run_id))
    judged = asyncio.run(replay.judged([(case, known[case.code]) for case in cases if case.code in known]))
    record = _record(detail, benchmark, codes, whole=len(codes) == len(known))
    new_id = _write(path, record, judged, weighted_behaviours(benchmark))
    return _difference(new_id, cases, judged, stored_score(path, run_id), stored_score(path, new_id))


def _combinations(benchmark: ScenarioTree, *, add_no_context: bool) -> dict[str, Combination]:
    return {
        combination.code: combination
        for scenario in benchmark.scenarios.values()
        for combination in scenario.combinations(add_no_context=add_no_context)
    }


def _refuse_broken(benchmark: ScenarioTree, planned: Iterable[str]) -> None:
    """A broken scenario must not pass for one that was taken out of the tree."""
    parts = [known for code in planned if (known := CaseCode.parse(code)) is not None]
    scenarios = {f"{known.pillar}-{known.behaviour}-{known.scenario}" for known in parts}
    texts = [
        problem.text(benchmark.root)
        for file, problems in benchmark.problems.items()
        if benchmark.broken[file] in scenarios
        for problem in problems
    ]
    if texts:
        raise RescoreError("\n".join([f"{benchmark.root}: scenarios of the run are broken:", *texts]))


class _Replay:
    """Answers from the record.

    Args:
        path: Results file.
        detail: The run whose replies are taken.
        judges: What judges have said in it.
    """

    def __init__(self, path: Path, detail: RunDetail, judges: Sequence[JudgeReply]) -> None:
        settings = detail.settings
        template = settings.get("judge_template")
        self._path = path
        self._strict_json = bool(settings.get("strict_json"))
        self._judge = str(settings.get("judge") or "")
        self._template: JudgeTemplate = load_template(Path(str(template)) if template else None)
        self._requests: dict[tuple[str, int, str], bytes] = {}
        self._samples: dict[int, bytes] = {}
        self._answers: dict[tuple[str, int, str, str], StoredReply] = {}
        for said in judges:
            reply = said.reply
            self._requests[said.code, said.repetition, said.criterion] = reply.request
            self._samples[said.repetition] = reply.request
            self._answers[said.code, said.repetition, said.criterion, reply.request_hash] = reply

    async def judged(self, cases: Iterable[tuple[StoredCase, Combination]]) -> list[_Judged]:
        """Return every case with its new outcome."""
        return [await self._one(stored, combination) for stored, combination in cases]

    async def _one(self, stored: StoredCase, combination: Combination) -> _Judged:
        own = stored.reply
        reply = None if own is None else _read(own, f"{stored.code} {stored.repetition}")
        if own is None or reply is None:
            return _Judged(stored, combination, _as_before(stored), ())
        uses = [_Use("case", "", own, reply)]
        if _user_message(own.request) != combination.prompt():
            outcome = Outcome(Verdict.SKIPPED, OTHER_PROMPT)
        else:
            outcome = await self._outcome(stored, combination.case(), reply, uses)
        return _Judged(stored, combination, with_reply(outcome, reply), tuple(uses))

    async def _outcome(self, stored: StoredCase, case: Case, reply: Reply, uses: list[_Use]) -> Outcome:
        if isinstance(case.rule, ReplyRule):
            return judged_outcome(reply, (case.rule.evaluate(case, reply, strict_json=self._strict_json),))
        try:
            evaluations = await self._evaluations(case, reply, stored.repetition, uses)
        except OffMenuError:
            return Outcome(Verdict.ERROR, "judge_off_menu")
        except _NeedsJudgeError:
            # Where the judge itself failed before, that is still what is known.
            failed = stored.outcome == Verdict.ERROR
            return _as_before(stored) if failed else Outcome(Verdict.SKIPPED, NEEDS_JUDGE)
        return judged_outcome(reply, evaluations)

    async def _evaluations(
        self, case: Case, reply: Reply, repetition: int, uses: list[_Use]
    ) -> tuple[Evaluation, ...]:
        async def ask(
            criterion: Criterion, messages: tuple[Message, ...], response_format: Mapping[str, Any]
        ) -> Reply:
            place = (case.code, repetition, criterion.name)
            answer = self._answer(place, messages, response_format)
            read = None if answer is None else _read(answer, " ".join(map(str, place)))
            if answer is None or read is None:
                raise _NeedsJudgeError
            uses.append(_Use("judge", criterion.name, answer, read))
            return read

        return await evaluate_judged(case, reply, template=self._template, judge_model=self._judge, ask=ask)

    def _answer(
        self, place: tuple[str, int, str], messages: Iterable[Message], response_format: Mapping[str, Any]
    ) -> StoredReply | None:
        """Return what the judge has said to exactly this request, in this run or in any other.

        The request is the stored one (model, sampling, what its server wants) with the new words in it.
        """
        code, repetition, criterion = place
        sample = self._requests.get(place) or self._samples.get(repetition)
        if sample is None:
            return None
        body = json.loads(sample)
        body["messages"] = [{"role": message.role, "content": message.content} for message in messages]
        body["response_format"] = response_format
        wanted = request_hash(encode(body))
        known = self._answers.get((code, repetition, criterion, wanted))
        return known or newest_reply(self._path, wanted, repetition)


def _read(stored: StoredReply, key: str) -> Reply | None:
    """Return a reply from its stored body; its cost was paid by the run that asked."""
    parsed = parse_reply(200, stored.body)
    if isinstance(parsed, Fault):
        return None
    return Reply(
        text=parsed.text,
        refusal=parsed.refusal,
        finish_reason=parsed.finish_reason,
        usage=replace(parsed.usage, cost_usd=0.0),
        latency_ms=stored.latency_ms or 0.0,
        provider_model=parsed.provider_model,
        key=key,
    )


def _as_before(stored: StoredCase) -> Outcome:
    """Return the outcome of a case that cannot be judged again: an error stays one."""
    verdict = Verdict(stored.outcome) if stored.outcome not in _JUDGED else Verdict.ERROR
    reason = stored.reason if stored.outcome not in _JUDGED else "unreadable_reply"
    return Outcome(verdict, reason)


def _user_message(request: bytes) -> str | None:
    messages = json.loads(request).get("messages") or [{}]
    content: str | None = messages[-1].get("content")
    return content


def _record(detail: RunDetail, benchmark: ScenarioTree, codes: tuple[str, ...], *, whole: bool) -> RunRecord:
    run = detail.summary
    scoring = benchmark.scoring
    settings = {
        **detail.settings,
        "benchmark_path": str(benchmark.root),
        "scoring": None if scoring is None else asdict(scoring),
    }
    return RunRecord(
        benchmark=benchmark,
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
    )


def _write(path: Path, record: RunRecord, judged: Sequence[_Judged], weighted: frozenset[str]) -> int:
    """Store the new run and return its id."""
    store = Store.open(path)
    try:
        (run_id,) = store.open_runs(str(uuid.uuid4()), [record])
        for case in judged:
            for attempt in _attempts(run_id, case):
                store.record_attempt(attempt)
            store.record_result(_result(run_id, case, weighted))
        store.flush()
        done = sum(case.outcome.judged for case in judged)
        status = "complete" if done == record.total_tests else "partial"
        store.close_run(run_id, run_totals(status, iso_time(time.time()), stored_score(path, run_id)))
    finally:
        store.close()
    if store.fault is not None:
        raise store.fault
    return run_id


def _attempts(run_id: int, case: _Judged) -> Iterator[AttemptRecord]:
    now = iso_time(time.time())
    counts: Counter[str] = Counter()
    for use in case.uses:
        stored, reply = use.stored, use.reply
        counts[use.purpose] += 1
        yield AttemptRecord(
            run_id=run_id,
            code=case.stored.code,
            repetition=case.stored.repetition,
            criterion=use.criterion,
            purpose=use.purpose,
            sequence=counts[use.purpose],
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
            reply_key=reply.key,
            from_cache=True,
            started_at=now,
            received_at=now,
        )


def _result(run_id: int, case: _Judged, weighted: frozenset[str]) -> ResultRecord:
    combination = case.combination
    now = iso_time(time.time())
    return ResultRecord(
        run_id=run_id,
        code=case.stored.code,
        node_id=case.stored.node_id,
        family=combination.scenario.family,
        repetition=case.stored.repetition,
        severity=combination.severity,
        difficulty=combination.difficulty,
        neutral=combination.severity == 0 and combination.scenario.behaviour in weighted,
        outcome=replace(case.outcome, started_at=now, completed_at=now),
    )


def _difference(
    run_id: int,
    cases: Sequence[StoredCase],
    judged: Sequence[_Judged],
    before: RunScore | None,
    after: RunScore | None,
) -> Rescored:
    """Pair the verdicts of the old run with those of the new one."""
    pairs: Counter[tuple[str, str]] = Counter()
    reasons: Counter[str | None] = Counter()
    for case in judged:
        pairs[case.stored.outcome, case.outcome.verdict.value] += 1
        reasons[case.outcome.reason] += 1
    return Rescored(
        run_id=run_id,
        now_pass=pairs["failed", "passed"],
        now_fail=pairs["passed", "failed"],
        same=pairs["passed", "passed"] + pairs["failed", "failed"],
        needs_judge=reasons[NEEDS_JUDGE],
        other_prompt=reasons[OTHER_PROMPT],
        gone=len(cases) - len(judged),
        before=before,
        after=after,
    )
