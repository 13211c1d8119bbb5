"""The cases of two runs beside each other: which of them can be compared, and what share of the points they are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import field
from fractions import Fraction

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.results.compared_runs import ComparedRun
from pytest_helmbench.results.stored_scores import one_row_each
from pytest_helmbench.scoring.comparison import ComparedCase
from pytest_helmbench.scoring.rows import Row, exact
from pytest_helmbench.store.judged_replies import JudgedCase
from pytest_helmbench.store.plans import RunFacts

__all__ = [
    "PairedCases",
    "PlannedCase",
    "behaviour_weights",
    "common_share",
    "pair_cases",
    "planned_cases",
    "unit_of",
]


@dataclass(frozen=True, slots=True)
class PlannedCase:
    """A case that a run has planned, and that carries points.

    Args:
        code: Of the case.
        pillar: `P1`.
        behaviour: `P1-B2`.
        unit: What it stands or falls with: its perturbation, its cluster, or itself.
        stake: |base| of each criterion, times the weight of the case in its sample.
        difficulty: Of its condition.
        criteria: How many.
    """

    code: str
    pillar: str
    behaviour: str
    unit: str
    stake: int | Fraction
    difficulty: int
    criteria: int


@dataclass(slots=True)
class PairedCases:
    """What two runs have in common.

    Args:
        cases: That both have judged.
        left_out: Planned cases that are not among them.
        changed: Of those, the ones whose content differs.
        other_rules: Case × criterion judged by other rules.
        recorded: Replies of the candidate that came from the record.
        compared: Points by behaviour.
    """

    cases: list[ComparedCase] = field(default_factory=list)
    left_out: int = 0
    changed: int = 0
    other_rules: int = 0
    recorded: int = 0
    compared: defaultdict[str, int | Fraction] = field(default_factory=lambda: defaultdict(int))


def planned_cases(facts: RunFacts) -> Sequence[PlannedCase]:
    """Return every case with points that a run has planned."""
    found: dict[str, list[Row]] = {}
    for code, row in one_row_each(facts):
        if not row.neutral:
            found.setdefault(code, []).append(row)
    return [_planned(code, rows, is_flat=facts.rows is not None) for code, rows in found.items()]


def _planned(code: str, rows: Sequence[Row], *, is_flat: bool) -> PlannedCase:
    first = rows[0]
    stake = abs(first.base) if first.weight == 1 else abs(first.base) * first.weight
    unit = first.perturbation if is_flat else f"{first.scenario}-{first.perturbation}"
    return PlannedCase(code, first.pillar, first.behaviour, unit, stake, first.difficulty, len(rows))


def unit_of(facts: RunFacts) -> str:
    """Return what stands or falls together in a benchmark: `perturbation`, `cluster` or `row`."""
    if facts.rows is None:
        return "perturbation"
    return "cluster" if any(row.cluster is not None for row in facts.rows.values()) else "row"


def behaviour_weights(facts: RunFacts, planned: Sequence[PlannedCase]) -> dict[str, Fraction]:
    """Return what the planned behaviours weigh in the score."""
    given = {} if facts.scoring is None else facts.scoring.weights
    return {code: exact(given.get(code, 1)) for code in dict.fromkeys(case.behaviour for case in planned)}


def common_share(
    planned: Sequence[PlannedCase], paired: PairedCases, weights: Mapping[str, Fraction]
) -> Fraction | None:
    """Return the share of the planned points that was compared, as coverage weighs them; None without points.

    Args:
        planned: By one of the two runs.
        paired: What both have.
        weights: Of the behaviours in its benchmark.
    """
    total = sum(weights.values())
    if not total:
        return None
    points: defaultdict[str, int | Fraction] = defaultdict(int)
    for case in planned:
        points[case.behaviour] += case.stake * case.criteria
    shares = (
        weight * min(Fraction(1), Fraction(paired.compared.get(code, 0), points[code]))
        for code, weight in weights.items()
    )
    return sum(shares, Fraction(0)) / total


def pair_cases(
    planned: Sequence[PlannedCase],
    candidate: ComparedRun,
    baseline: ComparedRun,
    *,
    despite_changes: bool = False,
) -> PairedCases:
    """Return what of the planned cases two runs have judged by the same rules.

    Args:
        planned: By the candidate.
        candidate: What it was judged.
        baseline: What the other run was judged.
        despite_changes: Pair as well what was asked in other words or judged by other rules.
    """
    paired = PairedCases()
    any_content = despite_changes or candidate.benchmark_hash == baseline.benchmark_hash
    for case in planned:
        after, before = candidate.cases.get(case.code), baseline.cases.get(case.code)
        if after is None or before is None:
            paired.left_out += 1
            continue
        if not any_content and (after.content is None or after.content != before.content):
            paired.left_out += 1
            paired.changed += 1
            continue
        names = [name for name in before.rules if name in after.rules]
        if not despite_changes:
            alike = [name for name in names if after.rules[name] == before.rules[name] is not None]
            paired.other_rules += len(names) - len(alike)
            names = alike
        earlier, later = (tuple(_credits(judged, names)) for judged in (before, after))
        if not names or not earlier or not later:
            paired.left_out += 1
            continue
        paired.compared[case.behaviour] += case.stake * len(names)
        paired.recorded += min(after.recorded, len(after.replies))
        paired.cases.append(
            ComparedCase(case.pillar, case.behaviour, case.unit, case.stake, case.difficulty, earlier, later)
        )
    return paired


def _credits(case: JudgedCase, names: Sequence[str]) -> Iterator[tuple[Fraction, ...]]:
    for reply in case.replies:
        if all(name in reply for name in names):
            yield tuple(exact(reply[name]) for name in names)
