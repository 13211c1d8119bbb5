"""The precision of a benchmark before any run: what its perturbations and cases are worth."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["CaseStake", "Precision", "precision"]


@dataclass(frozen=True, slots=True)
class CaseStake:
    """What a case weighs.

    Args:
        behaviour: `P1-B2`.
        weight: Of the behaviour.
        unit: What it stands or falls with: its perturbation.
        stake: Severity points of all its criteria, above 0.
    """

    behaviour: str
    weight: Fraction
    unit: str
    stake: int


@dataclass(frozen=True, slots=True)
class Precision:
    """Numbers of perturbations and cases, and what they are worth, were all of the same weight.

    Args:
        units: Perturbations.
        effective_units: At most that; the interval of the score rests on it.
        cases: Those that carry points.
        effective_cases: At most that.
        best: Behaviour in which one more perturbation would raise the effective number most.
        then: That number then.
    """

    units: int
    effective_units: float
    cases: int
    effective_cases: float
    best: str
    then: float


def precision(cases: Iterable[CaseStake]) -> Precision | None:
    """Return what the cases of a benchmark are worth; None without one that weighs."""
    units: defaultdict[str, Counter[str]] = defaultdict(Counter)
    squares: Counter[str] = Counter()
    weights: dict[str, Fraction] = {}
    count = 0
    for case in cases:
        count += 1
        units[case.behaviour][case.unit] += case.stake
        squares[case.behaviour] += case.stake**2
        weights[case.behaviour] = case.weight
    total = sum(weights.values())
    if not total:
        return None
    share = {code: float(weights[code] / total) ** 2 for code in units}
    stakes = {code: sum(own.values()) for code, own in units.items()}
    parts = {
        code: share[code] * sum(points**2 for points in own.values()) / stakes[code] ** 2
        for code, own in units.items()
    }
    whole = sum(parts.values())
    after = {
        code: whole - parts[code] + share[code] * _with_one_more(own.values()) for code, own in units.items()
    }
    best = min(sorted(after, key=natural_key), key=lambda code: after[code])
    return Precision(
        units=sum(map(len, units.values())),
        effective_units=1 / whole,
        cases=count,
        effective_cases=1 / sum(share[code] * squares[code] / stakes[code] ** 2 for code in units),
        best=best,
        then=1 / after[best],
    )


def _with_one_more(stakes: Iterable[int]) -> float:
    """Return Σ h² over the perturbations of a behaviour and one more of the mean size."""
    known = list(stakes)
    mean = sum(known) / len(known)
    return (sum(points**2 for points in known) + mean**2) / (sum(known) + mean) ** 2
