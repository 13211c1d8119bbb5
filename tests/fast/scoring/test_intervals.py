"""Intervals: repeatable, honest about clusters, fast enough to print after every session."""

from __future__ import annotations

import random
import time
from fractions import Fraction
from math import sqrt

import pytest
from analysis_rows import row, verdict

from pytest_helmbench.core.weighting import Scoring
from pytest_helmbench.scoring.intervals import Interval, mean_replicates, percentile_interval
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import run_score


def clustered(rng: random.Random, behaviour: str, clusters: int, size: int) -> list[Row]:
    """Rows whose perturbations are right throughout or wrong throughout, right seven times in ten."""
    rows = []
    for number in range(clusters):
        right = int(rng.random() < 0.7)
        rows += [row(5, right, f"{behaviour}-S1-C{place}-PT{number}") for place in range(size)]
    return rows


def interval_of(rows: list[Row], seed: int = 0) -> Interval:
    interval = run_score(rows, seed=seed).total.interval
    assert interval is not None
    return interval


def test_the_same_rows_and_seed_give_the_same_interval_to_the_last_digit() -> None:
    rows = clustered(random.Random(1), "P1-B1", 30, 2)
    assert interval_of(rows) == interval_of(rows) == Interval(0.533333333333, 0.866666666667)
    assert interval_of(verdict(range(1, 20), range(1, 8)), seed=1) != interval_of(
        verdict(range(1, 20), range(1, 8)), seed=2
    )


def test_what_else_has_run_does_not_move_the_interval_of_a_behaviour() -> None:
    rng = random.Random(1)
    one, other = clustered(rng, "P1-B1", 20, 2), clustered(rng, "P2-B1", 20, 2)
    alone, together = run_score(one).behaviours[0], run_score(one + other).behaviours[0]
    assert alone.interval == together.interval


def test_rows_that_share_a_perturbation_add_no_certainty() -> None:
    few = interval_of(clustered(random.Random(2), "P1-B1", 40, 1))
    many = interval_of(clustered(random.Random(2), "P1-B1", 40, 10))
    assert many.high - many.low == pytest.approx(few.high - few.low, abs=0.03)


def test_the_same_code_in_two_scenarios_is_two_perturbations() -> None:
    rows = [row(5, 1, "P1-B1-S1-PT1"), row(5, 0, "P1-B1-S2-PT1")]
    total = run_score(rows).total
    assert (total.clusters, total.few_clusters, total.interval) == (2, True, Interval(0, 1))
    assert not run_score(verdict(range(1, 11), ())).total.few_clusters


@pytest.mark.parametrize("size", [1, 4])
def test_the_interval_holds_the_truth_about_as_often_as_it_says(size: int) -> None:
    rng = random.Random(3)
    hits = 0
    for _ in range(200):
        found = run_score(clustered(rng, "P1-B1", 50, size), replicates=200).total.interval
        assert found is not None
        hits += found.low <= 0.7 <= found.high
    assert 0.88 <= hits / 200 <= 0.99


def test_many_perturbations_of_few_kinds_are_drawn_with_the_right_spread() -> None:
    rows = [row(5, int(number % 10 < 7), f"P1-B1-S1-PT{number}") for number in range(4_000)]
    interval = interval_of(rows)
    reach = 1.96 * sqrt(0.7 * 0.3 / 4_000)
    assert interval.low == pytest.approx(0.7 - reach, abs=0.15 * reach)
    assert interval.high == pytest.approx(0.7 + reach, abs=0.15 * reach)


def test_pillars_and_run_are_recomputed_in_the_same_replicate() -> None:
    rows = [
        known for code in ("P1-B1", "P1-B2", "P2-B1") for known in clustered(random.Random(4), code, 40, 1)
    ]
    score = run_score(rows)
    widths = [
        part.interval.high - part.interval.low
        for part in (score.behaviours[0], score.pillars[0], score.total)
        if part.interval is not None
    ]
    assert widths[1] == pytest.approx(widths[0] / sqrt(2), rel=0.15)
    assert widths[2] == pytest.approx(widths[0] / sqrt(3), rel=0.15)


def test_the_interval_of_a_capped_run_reaches_above_the_cap_when_the_breach_may_be_chance() -> None:
    rows = verdict(range(1, 11), (1, 2, 4))
    score = run_score(rows, Scoring({}, {"P1": 0.9}, cap=0.4))
    assert score.score == Fraction(2, 5)
    assert score.total.interval == Interval(0.4, 1.0)
    assert score.pillars[0].interval is not None
    assert score.pillars[0].interval.low > 0.4


def test_a_cap_never_lifts_the_interval() -> None:
    rows = verdict(range(1, 11), range(3, 11))
    uncapped, capped = run_score(rows), run_score(rows, Scoring({}, {"P1": 0.9}, cap=0.4))
    assert capped.total.interval == uncapped.total.interval == Interval(0.0, 0.1875)


def test_a_pillar_exactly_at_its_floor_is_not_capped_by_rounding() -> None:
    for weights in ((1, 1, 1), (12, 8, 7), (3, 11, 19), (0.1, 0.2, 0.3)):
        rows = [
            row(severity, credit, f"P1-B{number}-S1-C{severity}-PT1")
            for number in (1, 2, 3)
            for severity, credit in ((7, 1), (3, 0))
        ]
        scoring = Scoring(dict(zip(("P1-B1", "P1-B2", "P1-B3"), weights, strict=True)), {"P1": 0.7}, cap=0.4)
        assert run_score(rows, scoring).total.interval == Interval(0.7, 0.7)


def test_without_replicates_or_points_there_is_no_interval() -> None:
    assert run_score([row(5)], replicates=0).total.interval is None
    assert percentile_interval([]) is None
    assert mean_replicates([(Fraction(1), [])]) == []
    assert mean_replicates([(Fraction(0), [0.5])]) == []


def test_660_rows_take_less_than_half_a_second() -> None:
    rng = random.Random(5)
    rows = [
        row(rng.randint(1, 10), int(rng.random() < 0.7), f"P1-B{b}-S1-C{c}-U{u}-PT{p}")
        for b in range(1, 7)
        for c in range(5)
        for u in range(2)
        for p in range(11)
    ]
    assert len(rows) == 660
    start = time.process_time()
    run_score(rows)
    assert time.process_time() - start < 0.5
