"""Points of the score lost: they add up to 1 − score for every set of rows, and "worst" is one order."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from analysis_rows import any_rows, row
from hypothesis import given
from hypothesis import strategies as st
from page_runs import simulated_report
from properties import examples

from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.results.losses import Losses, losses
from pytest_helmbench.scoring.row_scores import PackVerdict, pack_row, pack_score
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import run_score

_SCORING = Scoring({"P1-B1": 0.5, "P1-B2": 2, "P2-B1": 0}, {"P1": 0.7}, 0.4)


def lost(rows: list[Row], scoring: Scoring | None = None) -> Losses:
    return losses(((one.code, one) for one in rows), run_score(rows, scoring))


@examples(300)
@given(any_rows(), st.sampled_from([None, _SCORING]))
def test_the_points_lost_add_up_to_what_the_score_lacks(rows: list[Row], scoring: Scoring | None) -> None:
    score, found = run_score(rows, scoring), lost(rows, scoring)
    if score.score is None:
        assert found == Losses()
        return
    assert sum(found.cases.values()) == sum(found.behaviours.values()) == 1 - score.score
    assert all(value > 0 for value in found.cases.values())


def test_a_pack_loses_by_family_and_by_group() -> None:
    verdicts = [PackVerdict(f"r{n}", 1, n > 2, ("math", f"subject={'ab'[n % 2]}")) for n in range(1, 9)]
    rows = [(one.row, pack_row(one)) for one in verdicts]
    found = losses(rows, pack_score(verdicts), {one.row: one.groups for one in verdicts})
    eighth = Fraction(1, 8)
    assert found.cases == {("r1", 1): eighth, ("r2", 1): eighth}
    assert (found.behaviours, found.groups) == ({}, {"subject=a": eighth, "subject=b": eighth})
    assert found.worst_parts == [("subject=a", eighth), ("subject=b", eighth)]


def test_the_worst_is_what_costs_the_score_most_and_not_the_most_severe() -> None:
    """A small behaviour weighs as much as a large one, and a hard condition makes a mistake cheap."""
    rows = [row(9, 0, f"P1-B1-S1-PT{n}") for n in range(1, 11)]
    rows += [
        row(2, 0, "P1-B2-S1-PT1"),
        row(2, 1, "P1-B2-S1-PT2"),
        row(10, 0, "P1-B2-S1-C1-PT3", difficulty=10),
    ]
    found = lost(rows)
    some = simulated_report(40).results[0]
    results = [replace(some, code=one.code) for one in reversed(rows)]
    codes = [one.code for one in found.worst_first(results)]
    assert codes[:3] == ["P1-B2-S1-PT1", "P1-B1-S1-PT1", "P1-B1-S1-PT2"]
    assert codes[10] == "P1-B1-S1-PT10"
    assert found.of(replace(some, code="P1-B2-S1-C1-PT3")) == 0
