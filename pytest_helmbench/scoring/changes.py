"""The change of a score from one run to another: its size, how sure it is, and what could have been found."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from fractions import Fraction
from math import floor, lcm, sqrt
from statistics import NormalDist

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.intervals import t_quantile
from pytest_helmbench.scoring.rows import Row

_UNITS = 2**18
"""The sum of all changes is cut into so many units where it has no small common denominator."""
_MANY = 100
"""With more changes of unequal size only the largest are signed one by one."""
_LARGEST = 12
_MOST_EQUAL = 10_000


def sign_flip(changes: Iterable[Fraction]) -> float:
    """Return the share of all ways to sign the changes in which the gains are as small as they are, or smaller.

    Exact, but for rounding that never makes it smaller and makes it larger by less than 0.001. Over 100 changes
    of unequal size the sum of all but the 12 largest is taken as normal (error below 0.002).

    Args:
        changes: Gains above 0, losses below; those of 0 say nothing.

    Source:
        `docs/statistics.md`, the test.
    """
    known = [change for change in changes if change]
    if not known:
        return 1.0
    if len(known) <= _MOST_EQUAL and len({abs(change) for change in known}) == 1:
        return _binomial_tail(sum(change > 0 for change in known), len(known))
    if len(known) > _MANY:
        return _nearly_normal(sorted((float(change) for change in known), key=abs))
    units, slack = _whole_units(known)
    return _subset_share(units, sum(unit for unit in units if unit > 0) + slack)


def _whole_units(changes: Sequence[Fraction]) -> tuple[list[int], int]:
    """Return the changes in whole units, and how many units rounding may have cost the gains."""
    total = sum((abs(change) for change in changes), Fraction(0))
    common = lcm(*(change.denominator for change in changes))
    if total * common <= _UNITS:
        return [int(change * common) for change in changes], 0
    return [_nearest(change * _UNITS / total) for change in changes], len(changes) // 2


def _subset_share(units: Sequence[int], most: int) -> float:
    """Return the share of the subsets whose sizes add up to `most` or less.

    The generating function Π (1 + X^unit) is one integer, whose coefficients have `width` bits each.
    """
    width = len(units) + 2
    ways = 1
    for unit in units:
        ways += ways << (abs(unit) * width)
    low = ways & ((1 << ((most + 1) * width)) - 1)
    return float(Fraction(low % ((1 << width) - 1), 2 ** len(units)))  # the sum of its coefficients


def _binomial_tail(gains: int, count: int) -> float:
    """Return the probability that a fair coin falls heads up at most `gains` of `count` times."""
    ways = total = 1
    for number in range(gains):
        ways = ways * (count - number) // (number + 1)
        total += ways
    return float(Fraction(total, 2**count))


def _nearly_normal(changes: Sequence[float]) -> float:
    """Sign the largest changes in every way, and take the sum of the others as normal."""
    rest = NormalDist(0, sqrt(sum(change * change for change in changes[:-_LARGEST])))
    sums = [0.0]
    for change in changes[-_LARGEST:]:
        sums = [known + signed for known in sums for signed in (change, -change)]
    total = sum(changes)
    return sum(rest.cdf(total - known) for known in sums) / len(sums)


def _nearest(value: Fraction) -> int:
    size = floor(abs(value) + Fraction(1, 2))
    return size if value >= 0 else -size


ALPHA = 0.05
"""How often a run that has not changed may be called a regression."""

LEAST_CHANGED = 5
"""With fewer changed units p is 1/16 or more: nothing can be shown."""

_POWER = 0.8
_HETEROGENEITY = 1.3
"""A real drop is not the same everywhere, and so enters its own noise. Measured by simulation."""


class Conclusion(StrEnum):
    """The conclusion of a comparison; the worst comes first."""

    WORSE = "worse"
    COLLAPSED = "collapsed"
    CASES_GONE = "cases gone"
    NOT_COUNTED = "cases no longer counted"
    NOT_COMPARABLE = "not comparable"
    INCONCLUSIVE = "inconclusive"
    NOT_WORSE = "not worse"
    NO_CHANGE = "no change"

    @property
    def fails(self) -> bool:
        """Whether a gate with this conclusion does not hold."""
        return self not in (Conclusion.INCONCLUSIVE, Conclusion.NOT_WORSE, Conclusion.NO_CHANGE)


@dataclass(frozen=True, slots=True)
class Change:
    """Candidate minus baseline.

    Args:
        change: Of the score, in [−1, 1].
        low: End of the 90 % interval; None for one unit, or where nothing changed. `high` likewise.
        p: Of the hypothesis that the drop is the margin or less.
        units: Number of the perturbations, rows or replies that the test signs.
        changed: Of them, `down` and `up` together.
        least_p: The least p that so many changes can give.
        verdict: Worse, not worse, no change or inconclusive.
    """

    change: Fraction
    low: float | None
    high: float | None
    p: float
    units: int
    changed: int
    down: int
    up: int
    least_p: float
    verdict: Conclusion


def flip_p(changes: Sequence[Fraction], shares: Sequence[Fraction], margin: Fraction) -> float:
    """Return the p-value of the hypothesis that the score has dropped by the margin or less.

    Args:
        changes: Of every unit, candidate minus baseline, in points of the score.
        shares: What each unit weighs in the score; their sum is 1.
        margin: In [0, 1].
    """
    return sign_flip(change + margin * share for change, share in zip(changes, shares, strict=True))


def change_of(
    changes: Sequence[Fraction],
    shares: Sequence[Fraction],
    margin: Fraction,
    p: float | None = None,
) -> Change:
    """Return the change of the score with its test and its interval; the interval never contradicts the test.

    Args:
        margin: Drop that is allowed.
        p: Where it was adjusted for other tests; None to compute it.

    Source:
        `docs/statistics.md`, the test and the size of a change.
    """
    if p is None:
        p = flip_p(changes, shares, margin)
    total = sum(changes, Fraction(0))
    down, up = sum(change < 0 for change in changes), sum(change > 0 for change in changes)
    low, high = change_interval(changes, shares, total, ALPHA) if down or up else (None, None)
    least = -float(margin)
    if high is not None:
        high = max(high, least) if p > ALPHA else min(high, least)
    if p <= ALPHA:
        verdict = Conclusion.WORSE
    elif low is not None and low >= least:
        verdict = Conclusion.NOT_WORSE
    else:
        verdict = Conclusion.INCONCLUSIVE if down or up else Conclusion.NO_CHANGE
    tested = sum(bool(change + margin * share) for change, share in zip(changes, shares, strict=True))
    return Change(total, low, high, p, len(changes), down + up, down, up, 0.5**tested, verdict)


def change_interval(
    changes: Sequence[Fraction], shares: Sequence[Fraction], total: Fraction, tail: float
) -> tuple[float | None, float | None]:
    """Return the interval of the sum of the changes by its CR2 standard error, cut to what a score can do.

    Args:
        total: Sum of the changes.
        tail: Share that lies beyond each end: 0.05 for a 90 % interval.
    """
    if len(changes) < 2 or any(share == 1 for share in shares):
        return None, None
    squares = (
        float(change - share * total) ** 2 / float(1 - share)
        for change, share in zip(changes, shares, strict=True)
    )
    units = 1 / sum(float(share) ** 2 for share in shares)
    half = t_quantile(1 - tail, max(units - 1, 1)) * sqrt(sum(squares))
    return max(float(total) - half, -1.0), min(float(total) + half, 1.0)


def detectable_drop(mean_square: float) -> float:
    """Return the drop that is found four times of five; a rough guide.

    Args:
        mean_square: Σ over units of the squared change between two runs, as a mean over earlier pairs of runs.
    """
    normal = NormalDist()
    return _HETEROGENEITY * (normal.inv_cdf(1 - ALPHA) + normal.inv_cdf(_POWER)) * sqrt(mean_square)


def about(drop: float) -> str:
    """Return `about 6 points`; it is a rough number."""
    shown = 100 * drop
    return f"about {shown:.0f} points" if shown >= 2 else f"about {shown:.1f} points"


def holm_adjusted(p_values: Iterable[float]) -> list[float]:
    """Return p-values adjusted by Holm, in the order they came in: those up to α hold all together at α.

    Source:
        Holm, A simple sequentially rejective multiple test procedure (1979).
    """
    known = list(p_values)
    adjusted = [0.0] * len(known)
    least = 0.0
    for place, index in enumerate(sorted(range(len(known)), key=known.__getitem__)):
        adjusted[index] = least = max(least, min(1.0, (len(known) - place) * known[index]))
    return adjusted


_UnitKey = tuple[str, str, str]
_CaseKey = tuple[str | None, str | None]


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
    stakes: defaultdict[_UnitKey, defaultdict[_CaseKey, float]] = defaultdict(lambda: defaultdict(float))
    lost: defaultdict[_UnitKey, defaultdict[_CaseKey, float]] = defaultdict(lambda: defaultdict(float))
    points: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        if row.credit is None or row.neutral:
            continue
        stake = abs(row.base) * float(row.weight)
        unit, case = (row.behaviour, row.scenario, row.perturbation), (row.condition, row.user_context)
        stakes[unit][case] += stake
        lost[unit][case] += stake * (10 - row.difficulty) / 10 * (1 - float(row.credit))
        points[row.behaviour] += stake
    spreads: dict[_UnitKey, float] = {}
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
