"""The report of one run, computed from the record: the value that every format is written from."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from fractions import Fraction
from itertools import product
from pathlib import Path

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.case import is_judgement
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.kind_words import NO_COLUMNS, OwnColumns, RunWords
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event
from pytest_helmbench.core.scrub import ShownTexts, scrub, scrubbed
from pytest_helmbench.core.tools import MadeCall, tool_calls
from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.results.losses import Losses
from pytest_helmbench.results.run_counts import RunCounts, recorded_counts
from pytest_helmbench.results.stored_scores import (
    ScoredRun,
    coded_rows,
    pack_verdicts,
    planned_rows,
    scored_run,
    tree_rows,
)
from pytest_helmbench.scoring.breakdown import (
    Breakdown,
    ConstantScores,
    Speed,
    breakdown,
    constant_scores,
    speed_of,
)
from pytest_helmbench.scoring.judge_agreement import Agreement, agreement
from pytest_helmbench.scoring.reruns import RepetitionRates, repetition_rates
from pytest_helmbench.scoring.run_score import RunScore
from pytest_helmbench.store.read.costs import CostRow, costs
from pytest_helmbench.store.read.judgements import JudgedCriterion, judged_criteria
from pytest_helmbench.store.read.results import (
    CallRow,
    ResultRow,
    ShownMessage,
    asked_turns,
    case_steps,
    in_flight,
    notable_calls,
    perturbation_texts,
    recorded_outcomes,
    results,
    timed_cases,
)
from pytest_helmbench.store.read.runs import OWN_DATA, RunDetail, judges_of, run_detail
from pytest_helmbench.store.read.score_facts import RunFacts

_FAILED = "failed"
FLIPPED_SHOWN = 10
"""Most cases that a report lists as newly failing, or as newly passing."""
_OPENED = 200


@dataclass(frozen=True, slots=True)
class RunReport:
    """One run on record.

    Args:
        detail: The run, its settings and its outcomes by reason.
        score: None for a run of cases that were selected by earlier outcomes.
        breakdown: Recall and false escalation by every axis.
        constants: What an answer that never looks at the case scores over the whole loaded tree.
        titles: Names of pillars and titles of behaviours by code.
        failures: Cases judged wrong, neutral ones too, the most points lost first; with texts where asked for.
        counts: What a session's summary counts.
        judges: Ids of the marking models, in order; empty where none was named.
        panel: What several of them said about the same replies; None where one alone has judged.
        comparison: With the baseline of the session that writes the report; None where it has none.
        judgements: Evaluation rows that a judge has decided.
        costs: By behaviour and purpose.
        is_flat: The benchmark has no behaviours: what rests on severities says nothing.
        repetitions: Flaky cases, pass@k and pass^k; None for a run without repetitions.
        words: What its kind says of the run; None for nothing.
        columns: What it says of each result.
        results: All of them, in natural order, where every case was asked for; empty otherwise.
        calls: Of the cases whose calls say more than their result, likewise; by code and repetition.
        groups: Groups of the score that a case counts for, likewise, by code; empty where there are behaviours.
        steps: Of the cases that were worked on in steps (agents, Bench Packs), likewise, by code and repetition.
        losses: Points of the score that each case and part has lost.
        opening: First line of the perturbation by code, of the worst failures and of cases whose verdict differs.
    """

    detail: RunDetail
    score: RunScore | None
    breakdown: Breakdown
    constants: ConstantScores
    titles: Mapping[str, str]
    failures: tuple[ResultRow, ...]
    counts: RunCounts
    judges: tuple[str, ...]
    judgements: int
    costs: tuple[CostRow, ...]
    is_flat: bool = False
    repetitions: RepetitionRates | None = None
    words: RunWords | None = None
    columns: OwnColumns = NO_COLUMNS
    panel: PanelReport | None = None
    comparison: RunComparison | None = None
    results: tuple[ResultRow, ...] = ()
    calls: Mapping[tuple[str, int], tuple[CallRow, ...]] = field(default_factory=dict)
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    steps: Mapping[tuple[str, int], tuple[Event, ...]] = field(default_factory=dict)
    speed: Speed = Speed()
    losses: Losses = Losses()
    opening: Mapping[str, str] = field(default_factory=dict)
    path: Path = Path()

    def compared(self, comparison: RunComparison | None) -> RunReport:
        """Return the report with a comparison, and with the first lines of cases whose verdict differs."""
        if comparison is None:
            return self
        flipped = (*comparison.newly_failing[:FLIPPED_SHOWN], *comparison.newly_passing[:FLIPPED_SHOWN])
        codes = [case.code for case in flipped]
        opening = {**self.opening, **opening_lines(self.path, self.detail.id, codes)}
        return replace(self, comparison=comparison, opening=opening)

    @property
    def judge(self) -> str:
        """The first marking model; empty where none was named."""
        return next(iter(self.judges), "")

    @property
    def not_run(self) -> int:
        """Planned cases without any result."""
        return max(0, self.detail.total_tests - sum(self.detail.outcomes.values()))


def run_report(
    path: Path,
    run_id: int,
    *,
    with_text: bool = False,
    all_cases: bool = False,
    scored: ScoredRun | None = None,
) -> RunReport | None:
    """Return a run as report values; None when there is no such run.

    Args:
        with_text: Also prompts and replies, of failures or, with `all_cases`, of all.
        all_cases: Also every result with its calls.
        scored: Its facts and score where they are at hand; they are read otherwise.
    """
    detail, scored = run_detail(path, run_id), scored or scored_run(path, run_id, with_rows=True)
    if detail is None or scored is None:
        return None
    facts, record = scored.facts, record_of(detail.kind)
    rows = tuple(planned_rows(facts)) if scored.rows is None else scored.rows
    found = recorded_results(path, detail, outcome=None if all_cases else _FAILED, with_text=with_text)
    outcomes = recorded_outcomes(path, run_id)
    spent = costs(path, run_id)
    failures = tuple(scored.losses.worst_first(row for row in found if row.outcome == _FAILED))
    report = RunReport(
        detail=detail,
        score=scored.score,
        breakdown=breakdown(rows),
        repetitions=repetition_rates(coded_rows(facts)) if facts.repeat > 1 else None,
        constants=tree_constants(facts, add_no_context=bool(detail.settings.get("add_no_context"))),
        titles=facts.titles,
        failures=failures,
        counts=recorded_counts(path, run_id, outcomes, spent),
        judges=judges_of(detail.settings),
        judgements=sum(rows for rule, rows in outcomes.rules.items() if is_judgement(rule)),
        costs=spent,
        is_flat=facts.rows is not None,
        words=record.run(path, run_id),
        columns=record.columns,
        panel=panel_report(path, run_id),
        speed=measured_speed(path, (run_id,)),
        losses=scored.losses,
        opening=opening_lines(path, run_id, [row.code for row in failures[:_OPENED]]),
        path=path,
    )
    if not all_cases:
        return report
    groups = {} if facts.rows is None else {verdict.row: verdict.groups for verdict in pack_verdicts(facts)}
    calls, steps = notable_calls(path, run_id), case_steps(path, run_id)
    return replace(report, results=found, calls=calls, steps=steps, groups=groups)


def opening_lines(path: Path, run_id: int, codes: Sequence[str]) -> dict[str, str]:
    """Return by code the first line of each perturbation that says something: no heading."""
    texts = perturbation_texts(path, run_id, codes) if codes else {}
    return {
        code: next((line for line in text.splitlines() if line.strip() and not line.startswith("#")), "")
        for code, text in texts.items()
    }


def tree_constants(facts: RunFacts, *, add_no_context: bool) -> ConstantScores:
    """Return what constant answers score over the whole benchmark of a run; None in it for one without behaviours."""
    return constant_scores(tree_rows(facts, add_no_context=add_no_context), facts.scoring, facts.labels)


def better_constant(facts: RunFacts, *, add_no_context: bool) -> Fraction | None:
    """Return the score of the better constant answer; None where all rows want the same, and for a pack."""
    flagging = () if facts.rows is not None else tree_constants(facts, add_no_context=add_no_context).flagging
    return flagging[0][1] if flagging else None


def measured_speed(path: Path, run_ids: Sequence[int]) -> Speed:
    """Return how fast the replies of some runs came, taken together."""
    return speed_of(timed_cases(path, run_ids), *in_flight(path, run_ids))


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run with its results in natural order, and the columns that exports have beside those of all kinds."""

    detail: RunDetail
    results: tuple[ResultRow, ...]
    columns: OwnColumns


def shown_texts(places: Iterable[tuple[Path, int]], asked: ShownTexts | None) -> ShownTexts:
    """Return whose texts a report shows: as asked; else, off CI, those of all cases where data are the user's own."""
    if asked is not None:
        return asked
    details = [run_detail(path, run_id) for path, run_id in places if path.suffix != ".json"]
    is_own = all(run is not None and run.settings.get(OWN_DATA) is True for run in details)
    return ShownTexts.ALL if details and is_own and not os.environ.get("CI") else ShownTexts.NONE


def recorded_run(path: Path, detail: RunDetail, *, with_text: bool = False) -> RecordedRun:
    """Return a run with its results; see `recorded_results`."""
    rows = recorded_results(path, detail, with_text=with_text)
    return RecordedRun(detail, rows, record_of(detail.kind).columns)


def recorded_results(
    path: Path,
    detail: RunDetail,
    code: str | None = None,
    *,
    outcome: str | None = None,
    with_text: bool = False,
) -> tuple[ResultRow, ...]:
    """Return the results of a run, or of one of its cases, with the words of its kind.

    Args:
        outcome: Only those that came out so.
        with_text: Also requests, replies and what may quote them.
    """
    run_id = detail.id
    rows = results(path, run_id, code, outcome=outcome, with_text=with_text)
    words = record_of(detail.kind).results(path, run_id, code, with_text=with_text)
    rows = tuple(replace(row, words=words[row.id]) if row.id in words else row for row in rows)
    asked = asked_turns(path, run_id, code) if with_text else {}
    steps = case_steps(path, run_id, code) if asked else {}
    return tuple(
        replace(row, conversation=tuple(_messages(row, asked[key], steps.get(key, ()))))
        if (key := (row.code, row.repetition)) in asked
        else row
        for row in rows
    )


def _messages(row: ResultRow, asked: Collection[int], steps: Sequence[Event]) -> Iterator[ShownMessage]:
    """Yield what was said in a conversation: the messages of its last request, and the reply to that.

    Args:
        asked: Turns at which the model was asked.
        steps: Tool calls as the model wrote them; a server would refuse some of them in a request.
    """
    messages: list[JsonObject] = [] if row.request is None else json.loads(row.request).get("messages") or []
    answers = iter([message.get("content") for message in messages if message.get("role") == "tool"])
    made = iter([step.payload for step in steps if step.type == "tool"])
    turn = 0
    for message in messages:
        role = scrub(str(message.get("role")))
        turn += role == "user"
        if role == "tool":
            continue
        calls = []
        for call in tool_calls(message, turn):
            sent = {"name": call.name, "arguments": call.decoded(), "answer": next(answers, ""), "fault": ""}
            recorded = {**sent, **next(made, {})}
            name, answer, fault = (scrub(str(recorded[key])) for key in ("name", "answer", "fault"))
            calls.append(MadeCall(turn, name, scrubbed(recorded["arguments"]), answer, fault))
        text = scrub(str(message.get("content") or ""))
        yield ShownMessage(max(1, turn), role, text, tuple(calls), role == "assistant" and turn not in asked)
    if row.reply is not None:
        yield ShownMessage(max(asked), "assistant", row.reply)


@dataclass(frozen=True, slots=True)
class PanelReport:
    """The judges of a run over its replies, those of cases without a verdict among them.

    Args:
        disputed: What they disagree on, by case in natural order.
    """

    judges: tuple[str, ...]
    agreement: Agreement
    disputed: tuple[JudgedCriterion, ...]


def panel_report(path: Path, run_id: int) -> PanelReport | None:
    """Return what several judges said in a run; None where one alone has judged, or none."""
    rows = judged_criteria(path, run_id)
    verdicts = [(row.said[0].passed, row.said[1].passed) for row in rows]
    found = agreement(
        *(verdicts.count((first, second)) for first, second in product((True, False), repeat=2))
    )
    if found is None:
        return None
    names = {said.place: said.judge for row in rows for said in row.said}
    judges = tuple(names[place] for place in sorted(names))
    return PanelReport(judges, found, tuple(row for row in rows if row.disputed))
