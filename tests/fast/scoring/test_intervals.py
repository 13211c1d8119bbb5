"""Intervals: the numbers that were worked out by hand and by simulation, and what holds whatever the rows are."""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from analysis_rows import any_rows, row, verdict
from growth import grows_in_proportion
from hypothesis import given
from properties import examples

from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.scoring.intervals import Interval, Stratum, t_quantile, tree_interval, wilson
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import run_score

Points = list[tuple[int, int]]

SEVEN: Points = [(1, 0), (3, 0), (5, 0), (7, 7), (8, 8), (9, 9), (10, 10)]
THREE_TO_ONE: list[tuple[int, Points]] = [
    (3, [(10, 10), (10, 5), (20, 15), (10, 10)]),
    (1, [(6, 6), (4, 0), (10, 10)]),
]


def stratum(weight: int, points: Points, cases: int = 0) -> Stratum:
    """Return a behaviour; its perturbations are of so many cases of equal points, or of many."""
    stake = sum(at_stake for at_stake, _ in points)
    return Stratum(Fraction(weight), points, stake * stake // cases if cases else 1)


@pytest.mark.parametrize(
    ("strata", "low", "high", "trials", "df", "units"),
    [
        ([stratum(1, SEVEN)], 0.387852, 0.957492, 5.620061, 6.0, 5.620061),
        ([stratum(1, [(m, m) for m, _ in SEVEN])], 0.593991, 1.0, 5.620061, None, 5.620061),
        ([stratum(*one) for one in THREE_TO_ONE], 0.499814, 0.941218, 10.657489, 4.998235, 5.517241),
        ([stratum(1, [(10, 5)])], 0.054621, 0.945379, 1.0, None, 1.0),
        ([stratum(1, [(9, 6)] * 3 + [(9, 7), (9, 6)], 15)], 0.437823, 0.862933, 15.0, 4.0, 5.0),
        (
            [stratum(2, [(10, 10), (10, 5), (5, 5)]), stratum(1, [(8, 6)])],
            *(0.310952, 0.966627, 3.688525, 10.382296, 3.688525),
        ),
    ],
    ids=[
        "three missed",
        "all right",
        "two weights",
        "one half right",
        "as many as cases",
        "one beside three",
    ],
)
def test_the_interval_of_known_points(
    strata: list[Stratum], low: float, high: float, trials: float, df: float | None, units: float
) -> None:
    found = tree_interval(strata)
    assert found is not None
    assert (found.low, found.high, found.trials, found.effective_units) == pytest.approx(
        (low, high, trials, units), abs=1e-6
    )
    assert found.df == (None if df is None else pytest.approx(df, abs=1e-6))


def test_quantiles_and_wilsons_interval_of_known_numbers() -> None:
    found = [t_quantile(0.975, df) for df in (1, 2, 2.9, 3, 10, 30)]
    assert found == pytest.approx([12.706205, 4.302653, 4.302653, 3.178617, 2.228131, 2.042272], abs=1e-6)
    assert wilson(5 / 8, 8) == pytest.approx((0.305742, 0.863156), abs=1e-6)


def test_forty_eight_perturbations_without_a_mistake_leave_eleven_points() -> None:
    found = interval_of([row(5, 1, f"P1-B1-S1-C{c}-PT{p}") for p in range(31) for c in range(3)])
    assert found.low == pytest.approx(0.89, abs=0.002)
    assert found.high == 1


def interval_of(rows: list[Row], scoring: Scoring | None = None) -> Interval:
    interval = run_score(rows, scoring).total.interval
    assert interval is not None
    return interval


def test_rows_become_what_their_perturbations_earned() -> None:
    rows = verdict((1, 3, 5, 7, 8, 9, 10), (1, 3, 5))
    again = [row(known.severity, known.credit, known.code, repetition=2) for known in rows]
    for found in (interval_of(rows), interval_of(rows + again)):
        assert (found.low, found.high) == pytest.approx((0.387852, 0.957492), abs=1e-6)
        assert (found.units, found.target) == (7, "other perturbations")
        assert found.effective_cases == pytest.approx(5.620061, abs=1e-6)


def clustered(rng: random.Random, behaviour: str, clusters: int, size: int) -> list[Row]:
    """Rows whose perturbations are right throughout or wrong throughout, right seven times in ten."""
    rows = []
    for number in range(clusters):
        right = int(rng.random() < 0.7)
        rows += [row(5, right, f"{behaviour}-S1-C{place}-PT{number}") for place in range(size)]
    return rows


@pytest.mark.parametrize(
    ("missed", "floor", "may_be_capped"),
    [
        (range(4, 11), 0.9, False),  # wholly below
        ((1, 2, 4), 0.9, True),
        ((1, 2, 4), 0.3, False),
    ],
)
def test_a_cap_may_be_chance_where_the_floor_lies_inside_the_interval_and_cuts_no_interval(
    missed: list[int], floor: float, *, may_be_capped: bool
) -> None:
    rows = verdict(range(1, 11), missed)
    assert run_score(rows, Scoring({}, {"P1": floor}, cap=0.4)).may_be_capped == may_be_capped
    assert not run_score(rows, Scoring({}, {"P1": floor})).may_be_capped
    assert interval_of(rows, Scoring({}, {"P1": floor}, cap=0.4)) == interval_of(rows)


@examples(200)
@given(any_rows())
def test_an_interval_holds_its_score_and_always_has_a_width(rows: list[Row]) -> None:
    score = run_score(rows)
    for part in (score.total, *score.pillars, *score.behaviours):
        assert (part.interval is None) == (part.score is None)
        if part.interval is not None and part.score is not None:
            assert 0 <= part.interval.low < part.interval.high <= 1
            assert part.interval.low <= part.score + Fraction(1, 10**9)
            assert part.score - Fraction(1, 10**9) <= part.interval.high
            assert part.interval.effective_units <= part.interval.trials * (1 + 1e-9)
            assert part.interval.trials <= part.interval.effective_cases * (1 + 1e-9)


def test_a_behaviour_that_weighs_nothing_does_not_widen_the_interval() -> None:
    rows = verdict(range(1, 20), range(1, 8))
    other = [row(9, 0, "P2-B1-S1-PT1")]
    found = interval_of(rows + other, Scoring({"P1-B1": 1, "P2-B1": 0}, {}))
    assert (found.low, found.high) == (interval_of(rows).low, interval_of(rows).high)


def test_many_rows_take_no_pass_over_all_pairs() -> None:
    rng = random.Random(5)

    def made(count: int) -> list[Row]:
        return [
            row(rng.randint(1, 10), int(rng.random() < 0.7), f"P1-B{b}-S1-C{c}-PT{p}")
            for b in range(1, 6)
            for c in range(5)
            for p in range(count // 25)
        ]

    assert grows_in_proportion(run_score, made, 16_000)  # half a second; 250 million pairs would be minutes


def test_a_single_perturbation_of_a_sample_is_a_draw_among_others() -> None:
    """The points that it lost say nothing of the spread of the cases that were left out."""
    whole = [Stratum(Fraction(1), [(10, 9)], 10), Stratum(Fraction(1), [(10, 1)], 10)]
    found = tree_interval(whole)
    sampled = tree_interval(replace(stratum, sampled=True) for stratum in whole)
    assert found is not None
    assert sampled is not None
    assert (round(found.trials, 6), round(sampled.trials, 6)) == (5.555556, 2.0)
    assert (sampled.low, sampled.high) == wilson(0.5, 2)
