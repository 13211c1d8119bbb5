"""Agreement of two judges: golden J3; `test_oracles.py` holds kappa and its interval to statsmodels."""

from __future__ import annotations

import pytest

from pytest_helmbench.scoring.judge_agreement import agreement


def test_golden_kappa() -> None:
    found = agreement(46, 4, 9, 41)
    assert found is not None
    assert found.kappa == pytest.approx(0.74, abs=5e-7)
    assert (found.share, found.verdicts, found.disagreements) == (0.87, 100, 13)


def test_what_cannot_be_said_is_none() -> None:
    assert agreement(0, 0, 0, 0) is None
    same = agreement(20, 0, 0, 0)
    assert same is not None
    assert (same.share, same.high, same.kappa, same.kappa_low) == (1.0, 1.0, None, None)
    assert same.low < 0.9  # twenty equal verdicts do not prove that judges always agree
    perfect = agreement(10, 0, 0, 10)
    assert perfect is not None
    assert (perfect.kappa, perfect.kappa_low, perfect.kappa_high) == (1.0, None, None)
