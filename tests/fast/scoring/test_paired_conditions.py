"""Components as paired experiments, and cases over their repetitions."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import pytest
from analysis_rows import row

from pytest_helmbench.reports.paired_tables import lost_sentences, paired_table, repetitions_sentence
from pytest_helmbench.scoring.paired_conditions import paired_conditions
from pytest_helmbench.scoring.repetition_rates import repetition_rates
from pytest_helmbench.scoring.rows import Row


def _tree(credit: Callable[[str | None, int], int]) -> list[Row]:
    """Return 8 perturbations under two conditions, with no user context, U1 and U2."""
    return [
        row(
            part,
            credit(context, part),
            "-".join(filter(None, ("P1-B1-S1", condition, context, f"PT{part}"))),
            difficulty=3 if condition == "C2" else 0,
        )
        for condition in ("C1", "C2")
        for context in (None, "U1", "U2")
        for part in range(1, 9)
    ]


def test_a_context_that_costs_points_is_named_with_what_it_cost() -> None:
    found = {
        one.code: one
        for one in paired_conditions(_tree(lambda context, part: int(context != "U1" or part > 6)))
    }
    harmful, harmless = found["P1-B1-S1-U1"], found["P1-B1-S1-U2"]
    assert (harmful.base, harmful.pairs, harmful.units, harmful.changed) == (None, 16, 8, 6)
    assert (harmful.change, harmful.p) == (Fraction(-12, 16), 1 / 64)
    assert harmful.p_adjusted == 2 / 64  # two contexts
    assert harmful.lost
    assert (harmless.change, harmless.p_adjusted, harmless.lost) == (Fraction(0), 1.0, False)
    assert lost_sentences([harmful, harmless]) == [
        "adding P1-B1-S1-U1 lost 75.0 points on these cases (16 pairs with the same without it, p = 0.031)"
    ]
    assert any("| P1-B1-S1-U1 | without |" in line for line in paired_table(list(found.values()), 10))


def test_without_a_case_that_lacks_it_the_mildest_is_the_base() -> None:
    found = {one.code: one for one in paired_conditions(_tree(lambda context, part: int(part != 5)))}
    assert found["P1-B1-S1-C2"].base == "P1-B1-S1-C1"
    assert "P1-B1-S1-C1" not in found
    assert found["P1-B1-S1-PT5"].base == "P1-B1-S1-PT1"
    assert (found["P1-B1-S1-PT5"].units, found["P1-B1-S1-PT5"].change) == (6, Fraction(-1))
    assert found["P1-B1-S1-PT5"].p == 1 / 64
    assert not found["P1-B1-S1-PT5"].lost  # seven perturbations are compared: Holm
    assert paired_conditions([row(5), row(5, None, "P1-B1-S1-PT2")]) == ()


def test_pass_at_k_pass_hat_k_and_flaky_cases() -> None:
    words = {"a": "+++", "b": "+x+", "c": "xxx", "d": "x+-"}
    credit = {"+": 1, "x": 0, "-": None}
    rows = [
        (name, row(5, credit[letter], repetition=number))
        for name, word in words.items()
        for number, letter in enumerate(word, start=1)
    ]
    found = repetition_rates(rows)
    assert found is not None
    assert [(one.code, one.passed, one.repetitions) for one in found.flaky] == [("b", 2, 3), ("d", 1, 2)]
    # pass@2 of b: 1 − C(1,2)/C(3,2); pass^2: C(2,2)/C(3,2).
    assert found.pass_at == (Fraction(13, 24), Fraction(3, 4), Fraction(2, 3))
    assert found.pass_hat == (Fraction(13, 24), Fraction(1, 3), Fraction(1, 3))
    assert repetitions_sentence(found) == (
        "pass@3 66.7 %, pass^3 33.3 %; 2 of 4 cases are flaky (passed in some repetitions only)"
    )
    assert repetition_rates(rows[:1]) is None


def test_a_reply_passes_by_all_its_criteria() -> None:
    rows = [
        ("a", row(5, credit, criterion=criterion, repetition=repetition))
        for criterion, credits_ in (("CR1", (1, 1)), ("CR2", (1, 0)))
        for repetition, credit in enumerate(credits_, start=1)
    ]
    found = repetition_rates(rows)
    assert found is not None
    assert [(one.passed, one.repetitions) for one in found.flaky] == [(1, 2)]
    assert found.pass_at == pytest.approx((Fraction(1, 2), Fraction(1)))
