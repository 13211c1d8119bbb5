"""Breakdowns beside the score: recall and false escalation by every axis, and scores of constant answers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from math import ceil
from typing import NamedTuple, TypeAlias

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import run_score

BANDS = ("1–3", "4–6", "7–9", "10+")
"""Severity bands by |base|."""
_RowBase: TypeAlias = tuple[Row, int]
"""A row with its base, which is computed once."""
_IsRight: TypeAlias = Callable[[str, int], bool]
"""Whether an answer is right, by the label that its scenario expects (empty for none) and its base."""
_NO_LABELS: Mapping[str, str] = {}
_MOST_LABELS = 50


@dataclass(frozen=True, slots=True)
class RowShare:
    """A share of rows, and of their severity points (Σ |base|)."""

    rows: int
    of_rows: int
    points: int
    of_points: int

    @property
    def plain(self) -> Fraction | None:
        """Share of rows; None without one."""
        return Fraction(self.rows, self.of_rows) if self.of_rows else None

    @property
    def weighted(self) -> Fraction | None:
        """Share of severity points; None without one."""
        return Fraction(self.points, self.of_points) if self.of_points else None


@dataclass(frozen=True, slots=True)
class Detection:
    """How one group of rows was classified; neutral and unjudged rows are left out.

    Args:
        code: What the rows have in common; empty for all.
        right: Passed, of all rows.
        recall: Passed, of the rows with a signal (base > 0).
        false_escalation: Not passed, of the rows without one (base < 0).
    """

    code: str
    right: RowShare
    recall: RowShare
    false_escalation: RowShare


@dataclass(frozen=True, slots=True)
class Matrix:
    """Condition × user context of one scenario.

    Args:
        scenario: `P1-B2-S1`.
        conditions: Rows of the matrix in natural order; None means "without", first.
        user_contexts: Columns, likewise.
        cells: One tuple per condition; None where no case is planned.
    """

    scenario: str
    conditions: tuple[str | None, ...]
    user_contexts: tuple[str | None, ...]
    cells: tuple[tuple[Detection | None, ...], ...]

    @property
    def is_crossed(self) -> bool:
        """Whether there are two conditions and two user contexts, or more: else it says what a list says."""
        return len(self.conditions) > 1 and len(self.user_contexts) > 1


@dataclass(frozen=True, slots=True)
class Breakdown:
    """Detection in all and by every axis; groups are in natural order, without empty ones.

    Args:
        by_pillar: Codes `P1`.
        by_scenario: Codes `P1-B2-S1`.
        by_condition: Codes `P1-B2-S1-C1` (a component belongs to its scenario); the scenario's own code
            gathers its cases without a condition.
        by_user_context: Codes `P1-B2-S1-U1`, likewise.
        by_band: Codes of `BANDS`.
    """

    overall: Detection
    by_pillar: tuple[Detection, ...]
    by_scenario: tuple[Detection, ...]
    by_condition: tuple[Detection, ...]
    by_user_context: tuple[Detection, ...]
    by_band: tuple[Detection, ...]
    matrices: tuple[Matrix, ...]


@dataclass(frozen=True, slots=True)
class ConstantScores:
    """Scores of answers that never look at the case; None without rows that carry points.

    Args:
        flags_everything: The best answer that always gives one label, where scenarios expect labels: it flags the
            scenarios of that label, and is wrong exactly where base < 0 there, where base > 0 elsewhere.
        flags_nothing: Wrong exactly where base > 0.
        all_wrong: Wrong everywhere; above 0 where mistakes in difficult conditions cost less.
    """

    flags_everything: Fraction | None
    flags_nothing: Fraction | None
    all_wrong: Fraction | None = None

    @property
    def flagging(self) -> tuple[tuple[str, Fraction], ...]:
        """Names and scores of the constant flags, the better one first; empty where all rows want the same flag."""
        found = (("flagging everything", self.flags_everything), ("flagging nothing", self.flags_nothing))
        known = [(name, score) for name, score in found if score is not None and score < 1]
        return tuple(sorted(known, key=lambda named: -named[1])) if len(known) == len(found) else ()


def breakdown(rows: Iterable[Row]) -> Breakdown:
    """Return recall and false escalation of a run by every axis.

    Args:
        rows: Of one run, in any order.

    Source:
        Scenario trees, section 6.
    """
    scored = [(row, row.base) for row in rows if not row.neutral]
    return Breakdown(
        overall=_detection("", scored),
        by_pillar=_detections(scored, lambda row: row.pillar),
        by_scenario=_detections(scored, lambda row: row.scenario),
        by_condition=_detections(scored, lambda row: _joined(row.scenario, row.condition)),
        by_user_context=_detections(scored, lambda row: _joined(row.scenario, row.user_context)),
        by_band=_detections(scored, lambda row: BANDS[min((abs(row.base) - 1) // 3, 3)]),
        matrices=_matrices(scored),
    )


def constant_scores(
    rows: Iterable[Row], scoring: Scoring | None = None, labels: Mapping[str, str] = _NO_LABELS
) -> ConstantScores:
    """Return what "flags everything", "flags nothing" and "all wrong" would score, before a cap.

    Args:
        rows: Of the whole loaded tree; verdicts are not looked at.
        scoring: As for the run's own score.
        labels: The label that each scenario expects, by its code; one answer may flag all scenarios without.

    Source:
        Scenario trees, section 6.
    """
    alike = Counter(
        _Stakes(labels.get(row.scenario, ""), row.behaviour, row.severity, row.difficulty, row.weighted)
        for row in rows
    )

    def score(right: _IsRight) -> Fraction | None:
        answered = (found.row(count, right) for found, count in alike.items())
        return run_score(answered, scoring).score

    cases: Counter[str] = Counter()
    for stakes, count in alike.items():
        cases[stakes.label] += count
    given = [label for label, _ in cases.most_common() if label][:_MOST_LABELS] or [""]
    constants = map(score, map(_always, given))
    return ConstantScores(
        flags_everything=max((one for one in constants if one is not None), default=None),
        flags_nothing=score(lambda _, base: base <= 0),
        all_wrong=score(lambda _label, _base: False),
    )


def _always(label: str) -> _IsRight:
    """Return when an answer is right that always gives one label, and flags what has none."""
    return lambda expected, base: base >= 0 if expected in ("", label) else base <= 0


class _Stakes(NamedTuple):
    """The label, behaviour, severity and difficulty that decide how a row counts; many rows share them."""

    label: str
    behaviour: str
    severity: int
    difficulty: int
    weighted: bool

    def row(self, count: int, right: _IsRight) -> Row:
        """Return that many rows as one that weighs as much, answered."""
        planned = Row(
            pillar=self.behaviour.partition("-")[0],
            behaviour=self.behaviour,
            scenario="",
            condition=None,
            user_context=None,
            perturbation="",
            criterion="",
            repetition=1,
            severity=self.severity,
            difficulty=self.difficulty,
            weighted=self.weighted,
            passed=None,
            credit=None,
            weight=Fraction(count),
        )
        passed = right(self.label, planned.base)
        return replace(planned, passed=passed, credit=Fraction(int(passed)))


def _detections(rows: Iterable[_RowBase], group: Callable[[Row], str]) -> tuple[Detection, ...]:
    groups: defaultdict[str, list[_RowBase]] = defaultdict(list)
    for row, base in rows:
        groups[group(row)].append((row, base))
    return tuple(_detection(code, groups[code]) for code in sorted(groups, key=natural_key))


def _detection(code: str, rows: Iterable[_RowBase]) -> Detection:
    judged = [(base, row.passed) for row, base in rows if row.passed is not None]
    return Detection(
        code=code,
        right=_rate([(abs(base), passed) for base, passed in judged]),
        recall=_rate([(base, passed) for base, passed in judged if base > 0]),
        false_escalation=_rate([(-base, not passed) for base, passed in judged if base < 0]),
    )


def _rate(rows: Sequence[tuple[int, bool]]) -> RowShare:
    """Return the share of rows that count, by their severity points and whether they count."""
    points, counted = [stake for stake, _ in rows], [stake for stake, counts in rows if counts]
    return RowShare(len(counted), len(rows), sum(counted), sum(points))


def _joined(*parts: str | None) -> str:
    return "-".join(part for part in parts if part is not None)


def _matrices(rows: Iterable[_RowBase]) -> tuple[Matrix, ...]:
    cells: defaultdict[str, defaultdict[tuple[str | None, str | None], list[_RowBase]]]
    cells = defaultdict(lambda: defaultdict(list))
    for row, base in rows:
        cells[row.scenario][row.condition, row.user_context].append((row, base))
    return tuple(_matrix(scenario, cells[scenario]) for scenario in sorted(cells, key=natural_key))


def _matrix(scenario: str, cells: dict[tuple[str | None, str | None], list[_RowBase]]) -> Matrix:
    conditions = _axis(condition for condition, _ in cells)
    contexts = _axis(context for _, context in cells)
    return Matrix(
        scenario=scenario,
        conditions=conditions,
        user_contexts=contexts,
        cells=tuple(
            tuple(
                _detection(_joined(scenario, condition, context), cells[condition, context])
                if (condition, context) in cells
                else None
                for context in contexts
            )
            for condition in conditions
        ),
    )


def _axis(codes: Iterable[str | None]) -> tuple[str | None, ...]:
    return tuple(sorted(set(codes), key=lambda code: natural_key(code or "")))


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast the replies of a run came; what came from the record has no speed.

    Args:
        cases: Answered by a model in this run.
        median_ms: Of a case's calls, from sending to the last byte, our own waiting apart; None without a case.
        p95_ms: That 95 % of the cases stayed within; likewise.
        tokens_per_second: Tokens of the replies ÷ seconds of their calls, waiting for the first token included; None
            where no case has both.
        in_flight: Most calls at once while they came; None where that is not known.
        run_tokens_per_second: Tokens of the replies ÷ seconds in which a call was out; likewise.
    """

    cases: int = 0
    median_ms: float | None = None
    p95_ms: float | None = None
    tokens_per_second: float | None = None
    in_flight: int | None = None
    run_tokens_per_second: float | None = None


def speed_of(
    cases: Iterable[tuple[float, int | None]], in_flight: int | None = None, busy_s: float | None = None
) -> Speed:
    """Return the speed of some cases.

    Args:
        cases: Milliseconds above 0 and tokens of the reply (None where unknown) of each.
        busy_s: Seconds in which a call was out; None where that is not known.
    """
    known = list(cases)
    if not known:
        return Speed()
    times = sorted(ms for ms, _ in known)
    counted = [(ms, tokens) for ms, tokens in known if tokens is not None]
    seconds = sum(ms for ms, _ in counted) / 1000
    tokens = sum(tokens for _, tokens in counted)
    rate = tokens / seconds if seconds else None
    of_run = tokens / busy_s if counted and busy_s else None
    return Speed(len(known), percentile(times, 0.5), percentile(times, 0.95), rate, in_flight, of_run)


def percentile(ordered: Sequence[float], part: float) -> float:
    """Return the value below which a part of some lies (the nearest of them).

    Args:
        ordered: At least one, ascending.
        part: In [0, 1].
    """
    return ordered[max(0, ceil(part * len(ordered)) - 1)]
