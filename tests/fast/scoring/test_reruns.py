"""The variation of a run that is repeated, from the repetitions of one run."""

from __future__ import annotations

from fractions import Fraction

import pytest
from analysis_rows import row

from pytest_helmbench.reports.score_lines import rerun_text
from pytest_helmbench.scoring.reruns import Rerun
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import run_score
from pytest_helmbench.scoring.thresholds import Threshold, gate


def repeated(*verdicts: str, severity: int = 5) -> list[Row]:
    """Return one case per word, one repetition per letter; `-` is unjudged."""
    credit = {"+": 1, "x": 0, "-": None}
    return [
        row(severity, credit[letter], f"P1-B1-S1-PT{case}", repetition=number)
        for case, word in enumerate(verdicts)
        for number, letter in enumerate(word, start=1)
    ]


def rerun_of(rows: list[Row]) -> Rerun:
    found = run_score(rows).total.rerun
    assert found is not None
    return found


def test_the_spread_of_known_repetitions() -> None:
    found = rerun_of(repeated("+++", "+x+", "xx+", "+++"))
    assert (found.sd, found.df, found.expected, found.again) == pytest.approx(
        (0.117851, 4.0, 0.327106, 0.462597), abs=1e-6
    )
    assert (found.repetitions, found.flip_rate) == (3, Fraction(1, 3))
    assert rerun_text(found) == (
        "re-run variation: ± 46.3 points (95 %; 3 repetitions; identical calls disagree in 33.3 % of pairs)"
    )
    assert rerun_text(found.of_one_repetition(11)) == (
        "re-run variation: ± 80.1 points (95 %; from run 11; identical calls disagree in 33.3 % of pairs)"
    )


def test_criteria_of_one_reply_are_one_unit_and_rows_of_a_pillar_its_own() -> None:
    rows = [
        row(5, credit, f"{behaviour}-S1-PT1", criterion=criterion, repetition=repetition)
        for behaviour in ("P1-B1", "P2-B1")
        for criterion in ("CR1", "CR2")
        for repetition, credit in enumerate((1, 0 if behaviour == "P1-B1" else 1), start=1)
    ]
    score = run_score(rows)
    assert score.total.rerun is not None
    assert score.total.rerun.sd == pytest.approx(0.25)  # all of P1, half of the run, moves by 1: sd .5 of two
    first, second = (pillar.rerun for pillar in score.pillars)
    assert first is not None
    assert second is not None
    assert first.sd == pytest.approx(0.5)
    assert second.sd == 0
    assert rerun_text(second) == "no verdict changed in 2 repetitions"


@pytest.mark.parametrize(("points_below", "unstable"), [(1, True), (20, False)])
def test_a_gate_says_when_the_same_cases_asked_again_might_not_hold(
    points_below: int, *, unstable: bool
) -> None:
    score = run_score(repeated("+++", "+x+", "xx+", *["+++"] * 31))
    assert score.total.rerun is not None
    assert 0.01 < score.total.rerun.again < 0.2
    least = (score.score or Fraction(0)) - Fraction(points_below, 100)
    assert gate(score, Threshold("", least)).unstable is unstable
