"""The change of a score: the numbers that were worked out by hand, by simulation and by other libraries."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from pytest_helmbench.scoring.changes import (
    Change,
    Conclusion,
    change_of,
    detectable_drop,
    holm_adjusted,
    sign_flip,
)
from pytest_helmbench.scoring.comparison import behaviours_fallen

MIXED = [Fraction(x, 1000) for x in (-30, -20, -15, -12, -10, -6, 5, 4, -3, 0)]


def equal(changes: Sequence[Fraction | int], margin: Fraction | int = 0) -> Change:
    """Return the change of units of equal weight."""
    share = Fraction(1, len(changes))
    return change_of([Fraction(x) for x in changes], [share] * len(changes), Fraction(margin))


_C = Fraction(1, 300)
_LARGE = Fraction(1, 2000)


@pytest.mark.parametrize(
    ("found", "known"),
    [
        (equal([0] * 10), (0.0, None, None, 1.0, 0, 1.0, "no change")),
        (
            equal([Fraction(-2, 100)] * 4 + [Fraction(0)] * 6),
            (-0.08, -0.139869, 0.0, 0.0625, 4, 0.0625, "inconclusive"),
        ),
        (
            equal([Fraction(-2, 100)] * 5 + [Fraction(0)] * 5),
            (-0.1, -0.161104, -0.038896, 0.03125, 5, 0.03125, "worse"),
        ),
        (equal(MIXED), (-0.087, -0.151031, -0.022969, 0.017578, 9, 0.001953, "worse")),
        (equal(MIXED, Fraction(2, 100)), (-0.087, -0.151031, -0.022969, 0.045898, 9, 0.000977, "worse")),
        (equal(MIXED, Fraction(2, 10)), (-0.087, -0.151031, -0.022969, 0.994141, 9, 0.001953, "not worse")),
        (
            equal([Fraction(1, 100)] * 6 + [Fraction(0)] * 4),
            (0.06, 0.030065, 0.089935, 1.0, 6, 0.015625, "not worse"),
        ),
        (
            equal([-_C] * 14 + [_C] * 4 + [Fraction(0)] * 282),
            (-0.033333, -0.056489, -0.010178, 0.015442, 18, 4e-06, "worse"),
        ),
        (
            equal([-_LARGE] * 250 + [_LARGE] * 200 + [Fraction(0)] * 1550),
            (-0.025, -0.042434, -0.007566, 0.010396, 450, 0.0, "worse"),
        ),
        (equal([Fraction(-1, 2)]), (-0.5, None, None, 0.5, 1, 0.5, "inconclusive")),
        (
            change_of(
                [Fraction(-3, 78)] * 4 + [Fraction(0)] * 44,
                [Fraction(3, 78)] * 4 + [Fraction(66, 78 * 44)] * 44,
                Fraction(0),
            ),
            (-0.153846, -0.270236, 0.0, 0.0625, 4, 0.0625, "inconclusive"),
        ),
    ],
    ids=["none", "four", "five", "mixed", "margin", "far", "gains", "rows", "many rows", "one", "behaviour"],
)
def test_known_changes(
    found: Change, known: tuple[float, float | None, float | None, float, int, float, str]
) -> None:
    change, low, high, p, changed, least_p, verdict = known
    assert (found.changed, found.down + found.up, found.verdict) == (changed, changed, Conclusion(verdict))
    assert (float(found.change), found.p, found.least_p) == pytest.approx((change, p, least_p), abs=6e-7)
    assert (found.low is None, found.high is None) == (low is None, high is None)
    if found.low is not None and found.high is not None:
        assert (found.low, found.high) == pytest.approx((low, high), abs=6e-7)


def test_changes_with_and_without_a_small_common_denominator() -> None:
    few = [
        Fraction(-3, 7),
        Fraction(-2, 7),
        Fraction(1, 11),
        Fraction(-1, 11),
        Fraction(-4, 7),
        Fraction(-5, 11),
    ]
    assert sign_flip(few) == 0.046875
    tops = (31, 29, 23, 19, 17, 13, 11, 7, 5, 3)
    bottoms = (101, 103, 107, 109, 113, 127, 131, 137, 139, 149)
    odd = [Fraction(-top, 10007 * bottom) for top, bottom in zip(tops, bottoms, strict=True)]
    odd += [Fraction(2, 10007 * 151), Fraction(37, 10007 * 157)]
    assert sign_flip(odd) == pytest.approx(0.021484, abs=6e-7)
    many = [Fraction(-(i % 7 + 1), 10**5) for i in range(270)] + [
        Fraction(i % 7 + 1, 10**5) for i in range(230)
    ]
    assert sign_flip(many) == pytest.approx(0.057488, abs=6e-7)


def test_the_test_counts_all_ways_to_sign() -> None:
    rng = random.Random(4)
    for _ in range(60):
        changes = [Fraction(rng.randint(-9, 9), rng.choice((1, 3, 7))) for _ in range(rng.randint(1, 9))]
        known = [change for change in changes if change]
        gains = sum((change for change in known if change > 0), Fraction(0))
        ways = [
            sum((abs(change) for change, plus in zip(known, signs, strict=True) if plus), Fraction(0))
            <= gains
            for signs in itertools.product((False, True), repeat=len(known))
        ]
        assert sign_flip(changes) == sum(ways) / len(ways)


def test_behaviours_that_fell_and_one_that_collapsed() -> None:
    zero = [Fraction(0)] * 20
    found = behaviours_fallen(
        [
            (Fraction(-1), [Fraction(-12, 78 * 60)] * 60),
            (Fraction(-1, 2), [Fraction(-1)] * 5 + [Fraction(1), *zero]),
            (Fraction(-1, 4), [Fraction(-1)] * 2),
        ]
    )
    assert [word for _, _, word in found] == ["collapsed", "", ""]
    assert [adjusted for _, adjusted, _ in found] == pytest.approx([0, 0.21875, 0.25], abs=6e-7)
    found = behaviours_fallen(
        [
            (Fraction(-12, 100), [Fraction(-1)] * 9 + [Fraction(1), *zero]),
            (Fraction(0), zero),
            (Fraction(1, 50), [Fraction(1)] * 3 + [Fraction(-1)] * 2),
        ]
    )
    assert [word for _, _, word in found] == ["fell", "", ""]
    assert [adjusted for _, adjusted, _ in found] == pytest.approx([0.032227, 1, 1], abs=6e-7)


def test_what_could_have_been_found_and_holms_correction() -> None:
    assert detectable_drop(sum(float(x) ** 2 for x in MIXED)) == pytest.approx(0.139219, abs=6e-7)
    assert holm_adjusted([0.001, 0.01, 0.02, 0.04, 0.2]) == pytest.approx([0.005, 0.04, 0.06, 0.08, 0.2])
    assert holm_adjusted([0.2, 0.001]) == pytest.approx([0.2, 0.002])


_CHANGES = st.lists(st.integers(-40, 40).map(lambda x: Fraction(x, 400)), min_size=1, max_size=24)


@examples(150)
@given(_CHANGES, st.integers(0, 20))
def test_the_interval_never_contradicts_the_test(changes: list[Fraction], percent: int) -> None:
    margin = Fraction(percent, 100)
    found = equal(changes, margin)
    if found.high is not None and found.low is not None:
        assert (found.high <= -float(margin)) if found.p <= 0.05 else (found.high >= -float(margin))
        assert -1 <= found.low <= found.high <= 1
    if found.changed < 5 and not margin:
        assert found.p > 0.05
        assert found.verdict is not Conclusion.WORSE


@examples(150)
@given(_CHANGES, st.integers(0, 20), st.integers(0, 20), st.randoms(use_true_random=False))
def test_p_falls_with_the_drop_beyond_the_margin_and_order_does_not_matter(
    changes: list[Fraction], percent: int, other: int, order: random.Random
) -> None:
    less, more = sorted((Fraction(percent, 100), Fraction(other, 100)))
    assert equal(changes, more).p >= equal(changes, less).p - 0.001
    mixed = list(changes)
    order.shuffle(mixed)
    assert equal(mixed, less).p == equal(changes, less).p
    turned = equal([-change for change in changes])
    assert turned.change == -equal(changes).change
    assert (turned.down, turned.up) == (equal(changes).up, equal(changes).down)


@examples(100)
@given(_CHANGES)
def test_a_perturbation_without_change_alters_neither_p_nor_the_change(changes: list[Fraction]) -> None:
    found, more = sign_flip(changes), sign_flip([*changes, Fraction(0)])
    assert found == more
