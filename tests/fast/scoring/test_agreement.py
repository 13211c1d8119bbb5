"""Agreement of two judges: golden J3, and statsmodels as the oracle of kappa and its standard error."""

from __future__ import annotations

import pytest

from pytest_helmbench.scoring.agreement import agreement


def test_golden_kappa() -> None:
    found = agreement(46, 4, 9, 41)
    assert found is not None
    assert found.kappa == pytest.approx(0.74, abs=5e-7)
    assert (found.share, found.verdicts, found.disagreements) == (0.87, 100, 13)


@pytest.mark.parametrize("cells", [(46, 4, 9, 41), (10, 1, 0, 3), (90, 3, 5, 2), (5, 9, 7, 4), (1, 0, 1, 1)])
def test_kappa_and_its_interval_are_those_of_statsmodels(cells: tuple[int, int, int, int]) -> None:
    from statsmodels.stats.inter_rater import cohens_kappa  # a second, for this test alone

    found = agreement(*cells)
    oracle = cohens_kappa([[cells[0], cells[1]], [cells[2], cells[3]]])
    assert found is not None
    assert found.kappa == pytest.approx(oracle.kappa)
    assert found.kappa_low == pytest.approx(max(-1, oracle.kappa_low))
    assert found.kappa_high == pytest.approx(min(1, oracle.kappa_upp))


def test_what_cannot_be_said_is_none() -> None:
    assert agreement(0, 0, 0, 0) is None
    same = agreement(20, 0, 0, 0)
    assert same is not None
    assert (same.share, same.high, same.kappa, same.kappa_low) == (1.0, 1.0, None, None)
    assert same.low < 0.9  # twenty equal verdicts do not prove that judges always agree
    perfect = agreement(10, 0, 0, 10)
    assert perfect is not None
    assert (perfect.kappa, perfect.kappa_low, perfect.kappa_high) == (1.0, None, None)
