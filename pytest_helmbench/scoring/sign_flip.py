"""The exact one-sided sign-flip test: had a change helped and hurt alike, how often would so little gain turn up?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import floor, lcm, sqrt
from statistics import NormalDist

__all__ = ["sign_flip"]

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
