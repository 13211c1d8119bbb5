"""Scores: the published examples to the digit, and what holds for every set of rows."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import pytest
from analysis_rows import any_rows, row, verdict
from hypothesis import given
from hypothesis import strategies as st
from properties import examples

from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.scoring.ledger import behaviour_ledgers
from pytest_helmbench.scoring.rows import Row, exact
from pytest_helmbench.scoring.run_score import (
    Bounds,
    Floor,
    FloorState,
    RunScore,
    Score,
    run_score,
)

SEVERITIES = (1, 3, 5, 7, 8, 9, 10)


def behaviour_score(rows: list[Row]) -> Fraction | None:
    return next((ledger.score for ledger in behaviour_ledgers(rows)), None)


def scored(rows: list[Row], scoring: Scoring | None = None) -> RunScore:
    return run_score(rows, scoring)


def values(score: RunScore) -> list[tuple[str, Fraction | None]]:
    return [(part.code, part.score) for part in (score.total, *score.pillars, *score.behaviours)]


@pytest.mark.parametrize(
    ("missed", "expected"),
    [
        ((), Fraction(1)),
        ((1, 3, 5), Fraction(34, 43)),
        ((7, 8, 9, 10), Fraction(9, 43)),
        (SEVERITIES, Fraction(0)),
    ],
)
def test_a_behaviour_loses_the_severity_points_it_misses(missed: tuple[int, ...], expected: Fraction) -> None:
    rows = verdict(SEVERITIES, missed)
    assert behaviour_score(rows) == expected
    assert scored(rows).score == expected


@pytest.mark.parametrize(("difficulty", "cost"), [(0, 10), (3, 7), (7, 3), (10, 0)])
def test_a_miss_of_10_costs_less_under_a_harder_condition(difficulty: int, cost: int) -> None:
    assert behaviour_score([row(10, 0, difficulty=difficulty)]) == 1 - Fraction(cost, 10)


def test_two_criteria_are_two_rows_of_the_same_severity() -> None:
    assert behaviour_score([row(9, 1, criterion="CR1"), row(9, 0, criterion="CR2")]) == Fraction(1, 2)


def test_partial_credit_lowers_the_cost_and_the_sign_of_a_severity_does_not_matter() -> None:
    assert behaviour_score([row(-4, Fraction(1, 3)), row(2, 1)]) == 1 - Fraction(4 * 2, 3 * 6)


def test_weights_make_pillars_and_the_run() -> None:
    rows = [row(5, 1, "P1-B1-S1-PT1"), row(5, 0, "P1-B2-S1-PT1"), row(5, 0, "P2-B1-S1-PT1")]
    score = scored(rows, Scoring({"P1-B1": 12, "P1-B2": 8, "P2-B1": 0.5}, {}))
    assert values(score) == [
        ("", Fraction(24, 41)),
        ("P1", Fraction(3, 5)),
        ("P2", Fraction(0)),
        ("P1-B1", Fraction(1)),
        ("P1-B2", Fraction(0)),
        ("P2-B1", Fraction(0)),
    ]
    assert [part.weight for part in score.behaviours] == [12, 8, Fraction(1, 2)]
    assert score.warnings == ()


def test_a_behaviour_without_a_weight_weighs_1_and_is_named() -> None:
    rows = [row(5, 1, "P1-B1-S1-PT1"), row(5, 0, "P1-B2-S1-PT1")]
    score = scored(rows, Scoring({"P1-B1": 3}, {}))
    assert score.score == Fraction(3, 4)
    assert score.warnings == (
        "scoring.yaml: P1-B2 has no weight, so it weighs 1\n  hint: add 'P1-B2: …' to weights",
    )
    assert scored(rows).warnings == scored(rows, Scoring({}, {"P1": 0.5})).warnings == ()


def test_a_run_without_a_judged_row_is_undefined_and_could_still_be_anything() -> None:
    score = run_score([row(5, None), row(3, None, "P1-B1-S1-PT2")])
    assert (score.score, score.total.interval, score.total.pass_rate) == (None, None, None)
    assert score.total.coverage == 0
    assert score.total.bounds == Bounds(Fraction(0), Fraction(1))
    assert (score.total.judged_rows, score.total.planned_rows) == (0, 2)
    assert behaviour_score([row(5, None)]) is None


def test_no_rows_and_only_neutral_rows_have_no_score_no_bounds_no_coverage() -> None:
    for rows in ([], [row(0, 0)]):
        total = run_score(rows).total
        nothing = (total.score, total.bounds, total.coverage, total.interval, total.pass_rate)
        assert nothing == (None, None, None, None, None)
        assert total.planned_rows == total.clusters == 0
    assert behaviour_score([]) is behaviour_score([row(0, 0)]) is None


def test_coverage_counts_planned_severity_points_by_weight() -> None:
    rows = [row(9, 1), row(1, None, "P1-B1-S1-PT2"), row(5, None, "P2-B1-S1-PT1")]
    score = scored(rows, Scoring({"P1-B1": 3, "P2-B1": 1}, {}))
    assert score.total.coverage == Fraction(27, 40)
    assert [part.coverage for part in score.pillars] == [Fraction(9, 10), 0]
    assert (score.total.judged_rows, score.total.planned_rows) == (1, 3)


def test_bounds_take_the_unjudged_rows_as_all_wrong_and_all_right() -> None:
    rows = [row(6, 1), row(2, 0, "P1-B1-S1-PT2"), row(2, None, "P1-B1-S1-PT3", difficulty=5)]
    score = scored(rows)
    assert score.score == Fraction(3, 4)
    assert score.total.bounds == Bounds(Fraction(7, 10), Fraction(8, 10))


def test_a_breached_floor_caps_the_run_beside_its_score() -> None:
    rows = [row(10, 1, "P1-B1-S1-PT1"), row(4, 0, "P2-B1-S1-PT1"), row(6, 1, "P2-B1-S1-PT2")]
    scoring = Scoring({}, {"P10": 0.5, "P2": 0.7, "P1": 1.0}, cap=0.4)
    score = scored(rows, scoring)
    assert (score.score, score.capped) == (Fraction(4, 5), Fraction(2, 5))
    assert score.floors == (
        Floor("P1", Fraction(1), Fraction(1)),
        Floor("P2", Fraction(7, 10), Fraction(3, 5)),
        Floor("P10", Fraction(1, 2), None),
    )
    assert [floor.state for floor in score.floors] == [
        FloorState.HELD,
        FloorState.BREACHED,
        FloorState.NOT_EVALUATED,
    ]
    assert score.breached == (score.floors[1],)


def test_a_floor_is_held_at_the_exact_score_and_a_breach_without_a_cap_only_flags() -> None:
    rows = [row(7, 1), row(3, 0, "P1-B1-S1-PT2")]
    held = run_score(rows, Scoring({}, {"P1": 0.7}, cap=0.4))
    assert (held.breached, held.capped) == ((), None)
    flagged = scored(rows, Scoring({}, {"P1": 0.8}))
    assert (len(flagged.breached), flagged.score, flagged.capped) == (1, Fraction(7, 10), None)
    low = scored(verdict(SEVERITIES, (7, 8, 9, 10)), Scoring({}, {"P1": 0.8}, cap=0.4))
    assert (low.score, low.capped) == (Fraction(9, 43), None)


def test_numbers_from_files_become_what_was_meant() -> None:
    assert [exact(0.7), exact(1 - 0.7), exact(1 / 3), exact(12)] == [
        Fraction(7, 10),
        Fraction(3, 10),
        Fraction(1, 3),
        Fraction(12),
    ]


@examples(150)
@given(any_rows(), st.randoms(use_true_random=False))
def test_the_order_of_rows_never_matters(rows: list[Row], order: object) -> None:
    before = run_score(rows)
    order.shuffle(rows)  # type: ignore[attr-defined]
    assert run_score(rows) == before


@examples(150)
@given(any_rows())
def test_the_score_is_1_when_all_is_right_and_coverage_is_full_when_all_is_judged(rows: list[Row]) -> None:
    score = run_score([replace(known, passed=True, credit=Fraction(1)) for known in rows])
    for part in (score.total, *score.pillars, *score.behaviours):
        assert part.score in (1, None)
        assert part.coverage in (1, None)
        if part.score is not None:
            assert part.bounds == Bounds(Fraction(1), Fraction(1))
            assert part.interval is not None
            assert part.interval.low < part.interval.high == 1


@examples(150)
@given(any_rows(), st.data())
def test_however_the_unjudged_rows_come_out_the_score_ends_within_the_bounds(
    rows: list[Row], data: st.DataObject
) -> None:
    bounds = {part.code: part.bounds for part in parts(scored(rows))}
    credits_ = st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)])
    finished = [
        replace(known, passed=False, credit=data.draw(credits_)) if known.credit is None else known
        for known in rows
    ]
    for part in parts(scored(finished)):
        limits = bounds[part.code]
        assert (limits is None) == (part.score is None)
        if limits is not None and part.score is not None:
            assert limits.low <= part.score <= limits.high


def parts(score: RunScore) -> tuple[Score, ...]:
    return (score.total, *score.pillars, *score.behaviours)


@examples(150)
@given(any_rows())
def test_neutral_rows_never_matter(rows: list[Row]) -> None:
    with_score = run_score(rows)
    kept = [known for known in rows if not known.neutral]
    without = run_score(kept)
    assert numbers(with_score.total) == numbers(without.total)
    assert with_score.neutral_rows == len(rows) - len(kept)
    known_parts = {part.code: part for part in parts(without)}
    for part in parts(with_score):
        if part.planned_rows:
            assert numbers(part) == numbers(known_parts[part.code])


def numbers(part: Score) -> Score:
    """Leave out what tells of the behaviours that were planned, not of their rows."""
    return replace(part, weight=Fraction(0), unweighted=False)


@examples(150)
@given(any_rows(hardest=0))
def test_an_unweighted_behaviour_scores_its_plain_pass_rate(rows: list[Row]) -> None:
    whole = [
        replace(known, credit=Fraction(known.passed)) if known.passed is not None else known for known in rows
    ]
    for behaviour in scored(whole).behaviours:
        if behaviour.unweighted:
            assert behaviour.score == behaviour.pass_rate
