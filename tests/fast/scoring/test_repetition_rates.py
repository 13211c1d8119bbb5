"""Cases over their repetitions."""

from __future__ import annotations

from fractions import Fraction

import pytest
from analysis_rows import row

from pytest_helmbench.reports.score_lines import repetitions_sentence
from pytest_helmbench.scoring.reruns import repetition_rates


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
