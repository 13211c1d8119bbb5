"""Texts of `contains`, `not_contains` and `equals`: quotes and accents are compared in one form."""

from __future__ import annotations

import pytest

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.contains import Contains
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.equals import Equals
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.not_contains import NotContains


@pytest.mark.parametrize(
    ("reply", "expected", "ignore_case"),
    [
        ("I’m sorry, I can’t.", "I'm sorry", False),
        ("I'm sorry, I can't.", "I’m sorry", False),
        ("She said “no” to it.", '"no"', False),
        ("A cafe\u0301 in town", "caf\u00e9", False),
        ("A CAFE\u0301 in town", "caf\u00e9", True),
        ("10\u00a0kg", "10 kg", False),
    ],
)
def test_quotes_and_accents_are_compared_in_one_form(reply: str, expected: str, ignore_case: bool) -> None:
    assert Contains(None, False, (expected,), ignore_case).holds(reply)
    assert not NotContains(None, False, (expected,), ignore_case).holds(reply)
    assert not Contains(None, False, (f"{expected}x",), ignore_case).holds(reply)


def test_a_text_equals_another_with_other_quotes() -> None:
    assert Equals(None, False, ("It's",)).holds(" It’s ")
    assert not Equals(None, False, ("Its",)).holds("It’s")


@pytest.mark.parametrize(
    ("expected", "value", "is_equal"),
    [("5", 5.0, True), ("5.0", 5, True), ("1e1", 10, True), ("5", 5.5, False), ("5.0", "5", False)],
)
def test_the_number_in_a_field_is_compared_by_value(
    expected: str, value: float | str, is_equal: bool
) -> None:
    assert Equals("n", False, (expected,)).seen_value(value).passed is is_equal
