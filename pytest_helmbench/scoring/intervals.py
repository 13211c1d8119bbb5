"""95 % intervals: Wilson's, with as many trials as the perturbations (or rows) are worth.

How an interval is computed is known here alone. Nothing in it is random.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import pi, sqrt, tan
from statistics import NormalDist

from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.light_dataclass import dataclass

FEW_CLUSTERS = 10
"""With fewer clusters an interval is said to rest on few."""

INTERVAL = "95 % interval"
"""Name of an interval in everything that people read."""

OTHER_PERTURBATIONS = "other perturbations"
"""Target of an interval: another set of perturbations of the same kind."""

OTHER_ROWS = "other rows"
"""Target of an interval: another set of rows of the same kind."""

_UPPER = 0.975
_Z = NormalDist().inv_cdf(_UPPER)
_DIGITS = 12
"""Digits of an end that are not rounding noise: an end of 7/10 must equal a threshold of 0.7."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval and what it rests on.

    Args:
        low: In [0, 1].
        high: In [0, 1].
        trials: Independent yes/no draws that would be as uncertain (`n`).
        df: Degrees of freedom of the variance; None where it is not an estimate.
        units: Perturbations (rows of a pack) that were judged.
        effective_units: What they are worth, were all of the same weight.
        effective_cases: The same of the cases; no interval claims to know more.
        target: What a repeat would draw: `OTHER_PERTURBATIONS` or `OTHER_ROWS`.
    """

    low: float
    high: float
    trials: float
    df: float | None
    units: int
    effective_units: float
    effective_cases: float
    target: str = OTHER_PERTURBATIONS

    def splits(self, threshold: Fraction) -> bool:
        """Return whether values on either side of the threshold (that it holds for, or not) lie inside."""
        return self.low < float(threshold) <= self.high


@dataclass(frozen=True, slots=True)
class Stratum:
    """Judged rows of one behaviour, as its perturbations earned them; all in whole units of any size.

    Args:
        weight: Of the behaviour.
        clusters: At stake and earned, of each perturbation; 0 ≤ earned ≤ at stake, at stake above 0.
        case_squares: Σ (at stake in a case)² over its cases.
        sampled: Perturbations of it may have been left out: a single one then tells nothing of how others differ.
    """

    weight: Fraction
    clusters: Sequence[tuple[int, int]]
    case_squares: int
    sampled: bool = False

    @property
    def score(self) -> Fraction:
        """Share of what is at stake that was earned."""
        return Fraction(
            sum(earned for _, earned in self.clusters), sum(points for points, _ in self.clusters)
        )


def tree_interval(strata: Iterable[Stratum]) -> Interval | None:
    """Return the interval of a weighted mean of behaviours; None without one that weighs.

    The variance is that over perturbations within behaviours (CR2), its degrees of freedom are Satterthwaite's. It
    becomes the trials of Wilson's interval: no fewer than the perturbations are worth, since each is at worst
    all or nothing, and no more than the cases are. In a sample, a behaviour with one perturbation is taken to differ
    from others of its kind as much as a yes/no draw at the score of the whole.

    Source:
        `docs/statistics.md`, interval of a score.
    """
    used = [stratum for stratum in strata if stratum.clusters and stratum.weight]
    total = sum(stratum.weight for stratum in used)
    if not total:
        return None
    score = sum((stratum.weight / total * stratum.score for stratum in used), Fraction(0))
    variance = doubt = units_square = cases_square = 0.0
    for stratum in used:
        square = float(stratum.weight / total) ** 2
        stake = sum(points for points, _ in stratum.clusters)
        alone = stratum.sampled and len(stratum.clusters) == 1
        own = square * (float(score * (1 - score)) if alone else _behaviour_variance(stratum.clusters))
        variance += own
        if len(stratum.clusters) > 1:
            doubt += own**2 / (len(stratum.clusters) - 1)
        units_square += square * (sum(points * points for points, _ in stratum.clusters) / stake**2)
        cases_square += square * (stratum.case_squares / stake**2)
    df = variance**2 / doubt if doubt else None
    trials = units = 1 / units_square
    if variance:
        t = _Z if df is None else t_quantile(_UPPER, df)
        trials = max(units, float(score * (1 - score)) / variance * (_Z / t) ** 2)
    cases = 1 / cases_square
    trials = min(trials, cases)
    low, high = wilson(float(score), trials)
    count = sum(len(stratum.clusters) for stratum in used)
    return Interval(low, high, trials, df, count, units, cases)


def rows_interval(share: float, rows: int, worth: float | None = None) -> Interval:
    """Return the interval of a share of independent rows.

    Args:
        share: In [0, 1].
        rows: At least 1.
        worth: What they are worth, were all of the same weight: at most `rows`; None for that.
    """
    trials = rows if worth is None else min(rows, round(worth, _DIGITS - 3))
    low, high = wilson(share, trials)
    return Interval(low, high, trials, None, rows, trials, trials, OTHER_ROWS)


def wilson(share: float, trials: float) -> tuple[float, float]:
    """Return the 95 % score interval of a share.

    Args:
        share: In [0, 1].
        trials: Above 0; may be a fraction.

    Source:
        Wilson, Probable Inference, the Law of Succession, and Statistical Inference (1927).
    """
    spread = _Z**2 / trials
    centre = (share + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    # An end of 0 or 1 must be just that.
    return round(max(0.0, centre - half), _DIGITS), round(min(1.0, centre + half), _DIGITS)


def t_quantile(probability: float, df: float) -> float:
    """Return a quantile of Student's t; its relative error is below 0.13 % from 3 degrees of freedom on.

    Below 3 it is the exact one of 2, below 2 that of 1: never too small.

    Args:
        probability: Above 0.5 and below 1.
        df: Degrees of freedom, at least 1.

    Source:
        Abramowitz and Stegun, Handbook of Mathematical Functions, 26.7.5.
    """
    if df < 2:
        return tan(pi * (probability - 0.5))
    if df < 3:
        return (2 * probability - 1) / sqrt(2 * probability * (1 - probability))
    x = NormalDist().inv_cdf(probability)
    return (
        x
        + (x**3 + x) / (4 * df)
        + (5 * x**5 + 16 * x**3 + 3 * x) / (96 * df**2)
        + (3 * x**7 + 19 * x**5 + 17 * x**3 - 15 * x) / (384 * df**3)
        + (79 * x**9 + 776 * x**7 + 1482 * x**5 - 1920 * x**3 - 945 * x) / (92160 * df**4)
    )


def _behaviour_variance(clusters: Sequence[tuple[int, int]]) -> float:
    """Return the variance of a behaviour's score over its perturbations; exactly 0 where all have the same share.

    One perturbation is taken for one yes/no draw: a bound, not an estimate.
    """
    stake = sum(points for points, _ in clusters)
    earned = sum(part for _, part in clusters)
    if len(clusters) == 1:
        return float(Fraction(earned * (stake - earned), stake**2))
    # Σ h² (y − S)² / (1 − h) with h = points / stake, y = part / points, S = earned / stake, in whole numbers.
    return sum(
        (part * stake - earned * points) ** 2 / (stake**3 * (stake - points)) for points, part in clusters
    )


@dataclass(frozen=True, slots=True)
class CaseStake:
    """The weight of a case.

    Args:
        behaviour: `P1-B2`.
        weight: Of the behaviour.
        unit: Its perturbation, with which it stands or falls.
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
