"""Severity points of a behaviour's rows, summed in integers; the formula of the score stands here alone."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import lcm

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.intervals import Stratum
from pytest_helmbench.scoring.reruns import Repeats, repeats_of
from pytest_helmbench.scoring.rows import Row


@dataclass(frozen=True, slots=True)
class Ledger:
    """Sums over the rows of one behaviour, neutral rows left out.

    Args:
        code: Of the behaviour: `P1-B2`.
        pillar: Of the behaviour: `P1`.
        unweighted: No case of the behaviour has a severity: each row counts 1.
        unit: Costs are whole multiples of 1/unit severity points.
        cost: Lost by judged rows, in units.
        points: At stake in judged rows (Σ |base|); of a sample, times whole numbers in proportion to their weights.
        open_cost: What the unjudged rows would lose if all were wrong, in units.
        open_points: At stake in unjudged rows.
        clusters: Cost (in units) and points of the judged rows of each perturbation, in order of their codes.
        case_squares: Σ (points of its judged rows)² over the cases, all repetitions of a case together.
        repeats: Of the cases with two judged repetitions or more.
        planned_rows: Judged or not.
        judged_rows: Those with a verdict.
        passed_rows: Those judged right.
        neutral_rows: Rows left out of everything above.
        sampled: Cases were left out of it.
    """

    code: str
    pillar: str
    unweighted: bool
    unit: int
    cost: int
    points: int
    open_cost: int
    open_points: int
    clusters: tuple[tuple[int, int], ...]
    case_squares: int
    repeats: tuple[Repeats, ...]
    planned_rows: int
    judged_rows: int
    passed_rows: int
    neutral_rows: int
    sampled: bool = False

    @property
    def score(self) -> Fraction | None:
        """One minus the share of severity points lost; None without a judged row.

        Source:
            Scenario trees, section 6.
        """
        return self._share_kept(self.cost, self.points)

    @property
    def low(self) -> Fraction | None:
        """The score if every unjudged row were wrong; None when nothing is at stake."""
        return self._share_kept(self.cost + self.open_cost, self.points + self.open_points)

    @property
    def high(self) -> Fraction | None:
        """The score if every unjudged row were right; None when nothing is at stake."""
        return self._share_kept(self.cost, self.points + self.open_points)

    @property
    def coverage(self) -> Fraction | None:
        """Share of the planned points that were judged; None when nothing is at stake."""
        planned = self.points + self.open_points
        return Fraction(self.points, planned) if planned else None

    def stratum(self, weight: Fraction) -> Stratum:
        """Return the judged rows as intervals take them, given the behaviour's weight."""
        unit = self.unit
        return Stratum(
            weight,
            tuple((unit * points, unit * points - cost) for cost, points in self.clusters),
            self.case_squares * unit**2,
            self.sampled,
        )

    def _share_kept(self, cost: int, points: int) -> Fraction | None:
        return 1 - Fraction(cost, self.unit * points) if points else None


def behaviour_ledgers(rows: Iterable[Row]) -> tuple[Ledger, ...]:
    """Return one ledger per behaviour, in natural order of the codes, whatever the order of the rows."""
    by_behaviour: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_behaviour[row.behaviour].append(row)
    return tuple(_ledger(code, by_behaviour[code]) for code in sorted(by_behaviour, key=natural_key))


def _ledger(code: str, rows: Sequence[Row]) -> Ledger:
    scale = lcm(*{row.credit.denominator for row in rows if row.credit is not None})
    scored = [row for row in rows if not row.neutral]
    whole = lcm(*{row.weight.denominator for row in scored})
    cost = points = open_cost = open_points = passed = 0
    judged: list[tuple[Row, int]] = []
    clusters: defaultdict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    cases: Counter[tuple[str, str, str | None, str | None]] = Counter()
    for row in scored:
        stake = abs(row.base) * row.weight.numerator * (whole // row.weight.denominator)
        at_risk = stake * (10 - row.difficulty)
        if row.credit is None:
            open_points += stake
            open_cost += at_risk * scale
            continue
        lost = at_risk * (scale - row.credit.numerator * (scale // row.credit.denominator))
        points += stake
        cost += lost
        judged.append((row, lost))
        passed += bool(row.passed)
        cluster = clusters[row.scenario, row.perturbation]
        cluster[0] += lost
        cluster[1] += stake
        cases[row.scenario, row.perturbation, row.condition, row.user_context] += stake
    return Ledger(
        code=code,
        pillar=rows[0].pillar,
        unweighted=not rows[0].weighted,
        unit=10 * scale,
        cost=cost,
        points=points,
        open_cost=open_cost,
        open_points=open_points,
        clusters=tuple((clusters[key][0], clusters[key][1]) for key in sorted(clusters)),
        case_squares=sum(stake * stake for stake in cases.values()),
        repeats=repeats_of(judged) if any(row.repetition > 1 for row in scored) else (),
        planned_rows=len(scored),
        judged_rows=len(judged),
        passed_rows=passed,
        neutral_rows=len(rows) - len(scored),
        sampled=any(row.weight != 1 for row in scored),
    )
