"""Exact tests of paired yes/no outcomes, and Holm's correction for many of them."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import comb

__all__ = ["holm", "sign_test"]


def sign_test(ups: int, downs: int) -> Fraction:
    """Return the two-sided exact p-value that pairs go up and down equally often.

    With one yes/no outcome on each side of a pair this is McNemar's exact test.

    Args:
        ups: Pairs in which the second is larger; ties count nowhere.
        downs: Pairs in which the first is larger.

    Source:
        Conover, Practical Nonparametric Statistics (1999), sections 3.4 and 3.5.
    """
    pairs = ups + downs
    tail = sum(comb(pairs, hits) for hits in range(min(ups, downs) + 1))
    return min(Fraction(1), Fraction(2 * tail, 2**pairs))


def holm(p_values: Mapping[Fraction, int]) -> dict[Fraction, Fraction]:
    """Return p-values adjusted by Holm: those below α are significant, all together at α.

    Args:
        p_values: Each p-value with the number of tests that gave it.

    Source:
        Holm, A simple sequentially rejective multiple test procedure (1979).
    """
    adjusted: dict[Fraction, Fraction] = {}
    left = sum(p_values.values())
    least = Fraction(0)
    for p_value in sorted(p_values):
        least = max(least, min(Fraction(1), left * p_value))
        adjusted[p_value] = least
        left -= p_values[p_value]
    return adjusted
