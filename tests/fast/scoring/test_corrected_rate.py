"""The pass rate corrected by labels: the numbers that were worked out by hand."""

from __future__ import annotations

import pytest

from pytest_helmbench.scoring.judge_agreement import corrected_rate


@pytest.mark.parametrize(
    ("counts", "corrected", "low", "high", "raw"),
    [
        ((560, 660, 50, 46, 50, 9), 0.807879, 0.712894, 0.857635, 0.848485),
        ((630, 660, 40, 40, 10, 0), 0.954545, 0.86941, 0.974835, 0.954545),
    ],
)
def test_known_labels(
    counts: tuple[int, int, int, int, int, int], corrected: float, low: float, high: float, raw: float
) -> None:
    found = corrected_rate(*counts)
    assert found is not None
    assert (found.corrected, found.low, found.high, found.raw) == pytest.approx(
        (corrected, low, high, raw), abs=6e-7
    )
