"""The guess of a drop that can be found from one run alone: the spread of cases inside perturbations."""

from __future__ import annotations

import pytest
from analysis_rows import row

from pytest_helmbench.scoring.changes import inner_square


def test_it_is_the_variance_inside_perturbations_worked_out_by_hand() -> None:
    rows = [
        row(5, credit, f"P1-B1-S1-C{condition}-PT{number}")
        for number, earned in ((1, (1, 1, 0, 0)), (2, (1, 1, 1, 1)))
        for condition, credit in enumerate(earned, start=1)
    ]
    # PT1: spread 1/3; each case is 1/8 of the score, so Σ x² = 2 · 1/3 · 4 / 64.
    assert inner_square(rows, {}) == pytest.approx(2 / 3 * 4 / 64)
    # A second behaviour of equal weight halves every share; its only perturbation has one case: the pooled spread.
    other = [*rows, row(3, 0, "P1-B2-S1-C1-PT1")]
    pooled = 1 / 6  # deviations of 1 over 6 degrees of freedom
    assert inner_square(other, {}) == pytest.approx(2 / 4 * (1 / 3 * 4 / 64 + pooled))
    assert inner_square(other, {"P1-B2": 0.0}) == pytest.approx(inner_square(rows, {}))
