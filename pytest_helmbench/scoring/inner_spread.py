"""The spread of cases inside perturbations: an upper guess, from one run, of what another would change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping

from pytest_helmbench.scoring.rows import Row

__all__ = ["inner_square"]

_Unit = tuple[str, str, str]
_Case = tuple[str | None, str | None]


def inner_square(rows: Iterable[Row], weights: Mapping[str, float]) -> float | None:
    """Return the Σ x² over perturbations that two runs would show, were the cases of each draws of one kind.

    Cases of one perturbation differ for good reasons too (conditions, contexts), hence "upper".

    Args:
        rows: Of one run, all repetitions; those without a verdict are left out.
        weights: Of behaviours; one that is missing weighs 1.

    Returns:
        In squares of the run score (a fraction); None where no perturbation has two judged cases, or none differs.

    Source:
        `docs/statistics.md`, before the run.
    """
    stakes: defaultdict[_Unit, defaultdict[_Case, float]] = defaultdict(lambda: defaultdict(float))
    lost: defaultdict[_Unit, defaultdict[_Case, float]] = defaultdict(lambda: defaultdict(float))
    points: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        if row.credit is None or row.neutral:
            continue
        stake = abs(row.base) * float(row.weight)
        unit, case = (row.behaviour, row.scenario, row.perturbation), (row.condition, row.user_context)
        stakes[unit][case] += stake
        lost[unit][case] += stake * (10 - row.difficulty) / 10 * (1 - float(row.credit))
        points[row.behaviour] += stake
    spreads: dict[_Unit, float] = {}
    deviations = free = 0.0
    for unit, cases in stakes.items():
        shares = [lost[unit][case] / stake for case, stake in cases.items() if stake]
        if len(shares) < 2:
            continue
        mean = sum(shares) / len(shares)
        own = sum((share - mean) ** 2 for share in shares)
        spreads[unit] = own / (len(shares) - 1)
        deviations, free = deviations + own, free + len(shares) - 1
    if not deviations:
        return None
    total = sum(weights.get(behaviour, 1.0) for behaviour, stake in points.items() if stake)
    square = 0.0
    for unit, cases in stakes.items():
        if points[unit[0]]:
            part = weights.get(unit[0], 1.0) / total / points[unit[0]]
            spread = spreads.get(unit, deviations / free)
            square += 2 * part**2 * spread * sum(stake**2 for stake in cases.values())
    return square
