"""Recall and false escalation by every axis, and of constant answers."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from analysis_rows import any_rows, row
from hypothesis import given
from properties import examples

from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.scoring.breakdown import ConstantScores, Detection, RowShare, breakdown, constant_scores
from pytest_helmbench.scoring.rows import Row


def plain(detections: tuple[Detection, ...]) -> list[tuple[str, Fraction | None, Fraction | None]]:
    return [(d.code, d.recall.plain, d.false_escalation.plain) for d in detections]


def test_recall_and_false_escalation_stand_beside_each_other_plain_and_by_severity() -> None:
    rows = [
        row(9, 1, "P1-B1-S1-PT1"),
        row(1, 0, "P1-B1-S1-PT2"),
        row(-4, 0, "P1-B1-S1-PT3"),
        row(-2, 1, "P1-B1-S1-PT4"),
        row(-2, None, "P1-B1-S1-PT5"),
        row(0, 0, "P1-B1-S1-PT6"),
    ]
    overall = breakdown(rows).overall
    assert overall == Detection("", RowShare(2, 4, 11, 16), RowShare(1, 2, 9, 10), RowShare(1, 2, 4, 6))
    assert (overall.recall.plain, overall.recall.weighted) == (Fraction(1, 2), Fraction(9, 10))
    assert (overall.false_escalation.plain, overall.false_escalation.weighted) == (
        Fraction(1, 2),
        Fraction(2, 3),
    )


def test_partial_credit_is_not_right_unless_the_verdict_passed() -> None:
    half = row(5, Fraction(1, 2))
    assert breakdown([half]).overall.recall.plain == 0
    assert breakdown([replace(half, passed=True)]).overall.recall.plain == 1


def test_groups_are_named_by_full_codes_in_natural_order() -> None:
    rows = [
        row(2, 1, "P2-B1-S1-C1-U1-PT1"),
        row(5, 0, "P1-B1-S10-PT1"),
        row(8, 1, "P1-B1-S2-C2-PT1"),
        row(-12, 0, "P1-B1-S2-C1-U1-PT1"),
    ]
    found = breakdown(rows)
    one, none = Fraction(1), None
    assert plain(found.by_pillar) == [("P1", Fraction(1, 2), one), ("P2", one, none)]
    assert plain(found.by_scenario) == [
        ("P1-B1-S2", one, one),
        ("P1-B1-S10", Fraction(0), none),
        ("P2-B1-S1", one, none),
    ]
    assert [d.code for d in found.by_condition] == ["P1-B1-S2-C1", "P1-B1-S2-C2", "P1-B1-S10", "P2-B1-S1-C1"]
    assert [d.code for d in found.by_user_context] == ["P1-B1-S2", "P1-B1-S2-U1", "P1-B1-S10", "P2-B1-S1-U1"]
    assert plain(found.by_band) == [
        ("1–3", one, none),
        ("4–6", Fraction(0), none),
        ("7–9", one, none),
        ("10+", none, one),
    ]


def test_the_matrix_shows_condition_by_context_and_leaves_unplanned_cells_out() -> None:
    rows = [row(5, 1, "P1-B1-S1-C2-U1-PT1"), row(5, 0, "P1-B1-S1-C10-U1-PT1"), row(5, 0, "P1-B1-S1-C2-PT1")]
    (matrix,) = breakdown(rows).matrices
    assert (matrix.scenario, matrix.conditions, matrix.user_contexts) == (
        "P1-B1-S1",
        ("C2", "C10"),
        (None, "U1"),
    )
    cells = [[cell and (cell.code, cell.recall.plain) for cell in line] for line in matrix.cells]
    assert cells == [[("P1-B1-S1-C2", 0), ("P1-B1-S1-C2-U1", 1)], [None, ("P1-B1-S1-C10-U1", 0)]]


@examples(150)
@given(any_rows())
def test_every_axis_adds_up_to_the_whole(rows: list[Row]) -> None:
    found = breakdown(rows)
    cells = tuple(cell for matrix in found.matrices for line in matrix.cells for cell in line if cell)
    axes = (
        found.by_pillar,
        found.by_scenario,
        found.by_condition,
        found.by_user_context,
        found.by_band,
        cells,
    )
    for axis in axes:
        for name in ("right", "recall", "false_escalation"):
            rates = [getattr(detection, name) for detection in axis]
            whole = getattr(found.overall, name)
            assert sum(rate.rows for rate in rates) == whole.rows
            assert sum(rate.of_points for rate in rates) == whole.of_points


def test_constant_answers_score_what_their_side_of_the_tree_is_worth() -> None:
    rows = [row(6, None, "P1-B1-S1-PT1"), row(-2, 0, "P1-B1-S1-PT2"), row(0, 0, "P1-B1-S1-PT3")]
    nothing = Fraction(0)
    assert constant_scores(rows) == ConstantScores(Fraction(3, 4), Fraction(1, 4), nothing)
    assert constant_scores(rows).flagging == (
        ("flagging everything", Fraction(3, 4)),
        ("flagging nothing", Fraction(1, 4)),
    )
    capped = constant_scores(rows, Scoring({}, {"P1": 0.8}, cap=0.4))
    assert capped == ConstantScores(Fraction(3, 4), Fraction(1, 4), nothing)
    hard = constant_scores([row(4, 1, difficulty=3)])
    assert (hard, hard.flagging) == (ConstantScores(Fraction(1), Fraction(3, 10), Fraction(3, 10)), ())
    assert constant_scores([row(0, 1, weighted=False)]) == ConstantScores(Fraction(1), nothing, nothing)
    assert constant_scores([]) == ConstantScores(None, None)


def test_an_answer_that_flags_everything_gives_one_label_and_flags_what_expects_none() -> None:
    """With labels A and B, A is right in S1 and on the calm case of S2; without labels it flags all."""
    rows = [row(6, None, "P1-B1-S1-PT1"), row(-2, None, "P1-B1-S1-PT2")]
    rows += [row(5, None, "P1-B1-S2-PT1"), row(-3, None, "P1-B1-S2-PT2"), row(4, None, "P1-B1-S3-PT1")]
    labels = {"P1-B1-S1": "A", "P1-B1-S2": "B"}
    assert constant_scores(rows).flags_everything == Fraction(15, 20)
    assert constant_scores(rows, labels=labels).flags_everything == Fraction(6 + 3 + 4, 20)
    assert constant_scores(rows, labels=labels).flags_nothing == Fraction(5, 20)
    assert constant_scores(rows, labels={**labels, "P1-B1-S2": "A"}).flags_everything == Fraction(15, 20)
