"""The parts of a page, one per run, as its template takes them: texts, cards, rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from difflib import SequenceMatcher

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, excerpt, scrub
from pytest_helmbench.reports.page.columns import PagePart, told_evaluation
from pytest_helmbench.reports.run_facts import (
    cautions,
    cost_cells,
    differing_facts,
    rate_text,
)
from pytest_helmbench.reports.session_texts import cost_text, reasons_text
from pytest_helmbench.reports.tables import seconds, share
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.scoring.breakdown import Detection
from pytest_helmbench.scoring.thresholds import (
    GateVerdict,
    ThresholdError,
    gate,
    parse_share,
    parse_thresholds,
)
from pytest_helmbench.store.result_queries import ResultRow


@dataclass(frozen=True, slots=True)
class Card:
    """One number with its name.

    Args:
        name: Of the number.
        value: As text.
        note: What it rests on; empty for nothing.
    """

    name: str
    value: str
    note: str = ""


@dataclass(frozen=True, slots=True)
class CaseLine:
    """A case in one line.

    Args:
        row: Its result.
        rule: That has spoken.
        expected: Cut; `observed` likewise, in pieces, each with whether it is not expected.
        before: How it came out in the baseline; empty where nothing is compared.
    """

    row: ResultRow
    rule: str
    expected: str
    observed: tuple[tuple[str, bool], ...]
    before: str


def part_cautions(part: PagePart) -> tuple[str, ...]:
    """Return what must be known before the numbers of a part are believed."""
    return () if part.report is None else cautions(part.report)


def part_differences(part: PagePart) -> tuple[str, ...]:
    """Return what the two runs of a comparison do not have in common."""
    if part.report is None or part.baseline is None:
        return ()
    return tuple(differing_facts(part.baseline.detail, part.report.detail))


def gates(report: RunReport) -> tuple[GateVerdict, ...]:
    """Return how the run stands to the thresholds that its session was given."""
    settings = report.detail.settings
    wanted, coverage = settings.get("min_score"), settings.get("min_coverage")
    if report.score is None or not isinstance(wanted, str):
        return ()
    try:
        thresholds = parse_thresholds(wanted)
        if not isinstance(coverage, str):
            return tuple(gate(report.score, threshold) for threshold in thresholds)
        least = parse_share(coverage, "--helmbench-min-coverage")
        return tuple(gate(report.score, threshold, least) for threshold in thresholds)
    except ThresholdError:
        return ()  # written by a version that read thresholds otherwise


def cards(report: RunReport) -> Iterator[Card]:
    """Yield the numbers beside the score of a run."""
    detail, counts = report.detail, report.counts
    judged = f"{counts.judged:,} of {detail.summary.total_tests:,} cases judged"
    total = None if report.score is None else report.score.total
    yield Card("pass rate", share(None if total is None else total.pass_rate), judged)
    if total is not None:
        bounds = total.bounds
        note = ""
        if bounds is not None and total.coverage is not None and total.coverage < 1:
            note = f"the score lies between {share(bounds.low)} and {share(bounds.high)}"
        yield Card("coverage", share(total.coverage), note)
    outcomes = {name: detail.count(name) for name in ("passed", "failed", "error", "skipped")}
    yield Card("failed", f"{outcomes['failed']:,}", f"{outcomes['passed']:,} passed")
    errors = {
        reason or "": count for (outcome, reason), count in detail.outcomes.items() if outcome == "error"
    }
    yield Card("errors", f"{outcomes['error']:,}", reasons_text(errors) or "in no score")
    if outcomes["skipped"] or report.not_run:
        yield Card("not run", f"{outcomes['skipped'] + report.not_run:,}", f"{outcomes['skipped']:,} skipped")
    calls = f"{counts.case_calls + counts.judge_calls:,} calls, {counts.replays:,} from the record"
    yield Card("cost USD", cost_text(counts.known_cost_usd, counts.unknown_costs), calls)
    speed = report.speed
    if speed.median_ms is not None and speed.p95_ms is not None:
        yield Card("median time", seconds(speed.median_ms), f"95 % within {seconds(speed.p95_ms)}")


def usd(value: float) -> str:
    """Return an amount for people."""
    return cost_text(value, 0)


def case_lines(part: PagePart, most: int) -> tuple[Sequence[CaseLine], int]:
    """Return the worst failures of a run, or of a comparison what has become worse; and how many there are.

    The order is by severity points × weight of the behaviour.

    Args:
        part: Of the page.
        most: Lines at most.
    """
    report = part.report
    if report is None:
        return (), 0
    if part.baseline is not None:
        worse = [row for row in report.results if part.flips[row.code, row.repetition].word == "worse"]
    else:
        worse = list(report.failures)
    weights = {} if report.score is None else {one.code: one.weight for one in report.score.behaviours}

    def stake(row: ResultRow) -> float:
        code = CaseCode.parse(row.code)
        weight = 1 if code is None else weights.get(f"{code.pillar}-{code.behaviour}", 1)
        return 0 if row.neutral else abs(row.severity) * float(weight)

    worse.sort(key=lambda row: -stake(row))
    return [_case_line(row, part) for row in worse[:most]], len(worse)


def _case_line(row: ResultRow, part: PagePart) -> CaseLine:
    one = told_evaluation(row)
    flip = part.flips.get((row.code, row.repetition))
    before = "" if flip is None else flip.before
    if one is None:
        return CaseLine(row, "", "", (), before)
    expected, observed = (excerpt(text, OBSERVED_LIMIT) for text in (one.expected, one.observed))
    rule = f"{one.rule} {scrub(one.criterion)}".strip()
    return CaseLine(row, rule, expected, tuple(_marked(expected, observed)), before)


def _marked(expected: str, observed: str) -> Iterator[tuple[str, bool]]:
    """Yield the words of what was observed, each piece with whether it is not what was expected."""
    first, second = expected.split(), observed.split()
    matcher = SequenceMatcher(None, first, second, autojunk=False)
    for tag, _, _, start, end in matcher.get_opcodes():
        if start < end:
            yield " ".join(second[start:end]), tag != "equal"


def detection_rows(found: Iterable[Detection]) -> Iterator[tuple[str, ...]]:
    """Yield code, share right, recall and false escalation of each group."""
    for one in found:
        yield (one.code, *map(rate_text, (one.right, one.recall, one.false_escalation)))


def cost_rows(report: RunReport) -> Iterator[tuple[str, ...]]:
    """Yield what every purpose in every behaviour took, below `COST_HEAD`."""
    return map(cost_cells, report.costs)
