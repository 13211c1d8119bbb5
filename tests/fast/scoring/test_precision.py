"""The precision of a benchmark: what its perturbations are worth, and where one more would buy most."""

from __future__ import annotations

from fractions import Fraction

import pytest

from pytest_helmbench.scoring.intervals import CaseStake, precision


def test_a_few_heavy_rows_are_worth_little() -> None:
    light = [CaseStake("P1-B1", Fraction(1), f"PT{part}", 3) for part in range(10) for _ in range(5)]
    heavy = [CaseStake("P1-B2", Fraction(1), f"PT{part}", 9) for part in range(2)]
    found = precision([*light, *heavy])
    assert found is not None
    assert (found.units, found.cases, found.best) == (12, 52, "P1-B2")
    # A quarter of 1/10 and a quarter of 1/2, for half of the weight each; then a third instead of a half.
    assert found.effective_units == pytest.approx(1 / (0.25 / 10 + 0.25 / 2))
    assert found.effective_cases == pytest.approx(1 / (0.25 / 50 + 0.25 / 2))
    assert found.then == pytest.approx(1 / (0.25 / 10 + 0.25 / 3))
    assert precision([]) is None
