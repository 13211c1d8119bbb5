"""Gates: what holds, what does not and why, what the interval leaves open."""

from __future__ import annotations

from fractions import Fraction

import pytest
from analysis_rows import row, verdict

from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.scoring.intervals import Interval
from pytest_helmbench.scoring.run_score import run_score
from pytest_helmbench.scoring.thresholds import (
    GateVerdict,
    Threshold,
    ThresholdError,
    gate,
    gate_figures,
    parse_thresholds,
)

SCORE = run_score(verdict((1, 3, 5, 7, 8, 9, 10), (7, 8, 9, 10)))


def threshold(text: str) -> Threshold:
    (only,) = parse_thresholds(text)
    return only


def test_a_score_at_its_threshold_holds_exactly() -> None:
    score = run_score([row(7, 1), row(3, 0, "P1-B1-S1-PT2")])
    assert gate(score, threshold("0.7")).holds
    assert not gate(score, threshold("0.70000001")).holds


def test_a_score_below_its_threshold_does_not_hold_and_says_so() -> None:
    verdict_ = gate(SCORE, threshold("P1-B1=0.3"))
    assert verdict_ == GateVerdict(
        threshold=Threshold("P1-B1", Fraction(3, 10)),
        score=Fraction(9, 43),
        interval=SCORE.behaviours[0].interval,
        holds=False,
        inconclusive=True,
        reason="P1-B1 score 20.9 %, below the threshold of 30.0 %",
    )
    assert gate(SCORE, threshold("0.2")).reason == ""
    assert gate(SCORE, threshold("0.2094")).reason == "score 20.93 %, below the threshold of 20.94 %"


@pytest.mark.parametrize(
    ("value", "least", "shown"),
    [
        ("49/120", "0.408333", ("40.83333 %", "40.83330 %")),
        ("49/120", "0.40834", ("40.833 %", "40.834 %")),
        ("49/120", "0.4", ("40.8 %", "40.0 %")),
        ("1/2", "0.5", ("50.0 %", "50.0 %")),
        ("0.125", "0.125", ("12.5 %", "12.5 %")),
    ],
)
def test_score_and_threshold_are_shown_alike_and_in_their_order(
    value: str, least: str, shown: tuple[str, str]
) -> None:
    assert gate_figures(Fraction(value), Fraction(least)) == shown


def test_what_was_never_judged_does_not_hold() -> None:
    undefined = run_score([row(5, None)])
    found = gate(undefined, threshold("0"), Fraction(0))
    assert (found.holds, found.score, found.interval, found.inconclusive) == (False, None, None, False)
    assert found.reason == "the score of the run is undefined: nothing that counts was judged"
    unknown = gate(SCORE, threshold("P9=0"))
    assert (unknown.holds, unknown.reason) == (False, "P9 is not part of the run")


def test_coverage_below_the_least_does_not_hold_whatever_the_score() -> None:
    score = run_score([row(7, 1), row(3, None, "P1-B1-S1-PT2"), row(10, 1, "P2-B1-S1-PT1")])
    found = gate(score, threshold("0.5"))
    reason = "coverage of the run 85.0 %, wanted 100 %"
    assert (found.holds, found.score, found.reason) == (False, Fraction(1), reason)
    assert gate(score, threshold("0.5"), Fraction(17, 20)).holds
    assert gate(score, threshold("P1=0.5"), Fraction(4, 5)).reason == "coverage of P1 70.0 %, wanted 80 %"
    assert gate(score, threshold("P2=0.5")).reason == reason


@pytest.mark.parametrize(
    ("floors", "asked", "reason"),
    [
        ({"P1": 0.71, "P2": 1}, "P2=1", "P1 70.0 < 71"),
        ({"P1": 0.9, "P3": 0.5}, "0.9", "P1 70.0 < 90, P3 40.0 < 50"),
        ({"P1": 0.7, "P3": 0.4, "P9": 1}, "0", ""),  # one that is just reached, one that did not run
    ],
)
@pytest.mark.parametrize("cap", [None, 0.3])
def test_no_threshold_holds_where_a_floor_is_breached(
    floors: dict[str, float], asked: str, reason: str, cap: float | None
) -> None:
    rows = [row(7, 1), row(3, 0, "P1-B1-S1-PT2"), row(10, 1, "P2-B1-S1-PT1")]
    rows += [row(4, 1, "P3-B1-S1-PT1"), row(6, 0, "P3-B1-S1-PT2")]
    found = gate(run_score(rows, Scoring({}, floors, cap)), threshold(asked))
    verdict = "floor breached" if cap is None else "capped to 30.0"
    assert (found.reason, found.holds) == (reason and f"{verdict}: {reason}", not reason)


@pytest.mark.parametrize(
    ("least", "splits"), [("0.39", False), ("0.4", False), ("0.41", True), ("0.6", True), ("0.61", False)]
)
def test_a_threshold_inside_the_interval_is_inconclusive(least: str, splits: bool) -> None:
    assert Interval(0.4, 0.6, 90, None, 90, 90, 90).splits(Fraction(least)) is splits
    assert not Interval(0.7, 0.7, 90, None, 90, 90, 90).splits(Fraction(7, 10))


def test_thresholds_are_read_as_exact_numbers() -> None:
    assert parse_thresholds("0.7") == (Threshold("", Fraction(7, 10)),)
    assert parse_thresholds(" P1 = 1, P1-B2=.85 ,0.5") == (
        Threshold("P1", Fraction(1)),
        Threshold("P1-B2", Fraction(17, 20)),
        Threshold("", Fraction(1, 2)),
    )


@pytest.mark.parametrize(
    "text", ["70", "70%", "", "-0.1", "1.01", "nan", "7/10", "1e-1", "P1=", "0.7,", "P1=x", "٠"]
)
def test_a_threshold_outside_0_to_1_names_the_value(text: str) -> None:
    value = text.rpartition(",")[2].rpartition("=")[2]
    with pytest.raises(ThresholdError) as caught:
        parse_thresholds(text)
    assert str(caught.value) == (
        f"--helmbench-min-score: {value!r} is not a number from 0 to 1\n"
        "  hint: scores and coverage are fractions, 0.7 for 70 %"
    )


@pytest.mark.parametrize("code", ["P1-B1-S1", "p1", "B1", ""])
def test_a_threshold_for_something_else_names_the_code(code: str) -> None:
    with pytest.raises(ThresholdError) as caught:
        parse_thresholds(f"{code}=0.5")
    assert str(caught.value) == (
        f"--helmbench-min-score: {code!r} in '{code}=0.5' is not a pillar or behaviour\n"
        "  hint: for example 0.7 or P1=0.7,P1-B2=0.9"
    )
