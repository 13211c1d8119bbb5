"""Repetitions with an early stop: what each look decides, how often it is wrong, and what it saves."""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from simulated_runs import SimulatedTree, World

from pytest_helmbench.scoring.changes import change_of
from pytest_helmbench.scoring.looks import LAST_ALPHA, Decision, decision

_TREE = SimulatedTree.shaped()
_RUNS = 120
_REPETITIONS = 3


def test_the_first_look_may_show_a_regression_and_every_look_may_end_the_asking() -> None:
    decided = {
        (p, repetition): decision(p, repetition) for p in (0.01, 0.011, 0.3, 0.301) for repetition in (1, 2)
    }
    assert decided == {
        (0.01, 1): Decision.REGRESSED,
        (0.01, 2): Decision.GO_ON,
        (0.011, 1): Decision.GO_ON,
        (0.011, 2): Decision.GO_ON,
        (0.3, 1): Decision.GO_ON,
        (0.3, 2): Decision.GO_ON,
        (0.301, 1): Decision.HOPELESS,
        (0.301, 2): Decision.HOPELESS,
    }


@pytest.mark.parametrize(
    ("churn", "drop", "least", "most", "asked"),
    [(0.0, 0.0, 0.0, 0.05, 1.7), (0.25, 0.0, 0.0, 0.05, 1.8), (0.0, 0.05, 0.85, 1.0, 2.2)],
    ids=["same model", "churn", "a drop of 5 points"],
)
def test_an_early_stop_calls_no_more_regressions_and_asks_about_half(
    churn: float, drop: float, least: float, most: float, asked: float
) -> None:
    rng = np.random.default_rng(17)
    found = repetitions = 0
    for before, after in World(_TREE, 0.8, churn=churn).pairs(rng, _RUNS, drop):
        baseline, candidate = (
            (rng.random((_REPETITIONS, len(side))) < side).astype(float) for side in (before, after)
        )
        for number in range(1, _REPETITIONS + 1):
            changes, shares = _TREE.changes(baseline.mean(0), candidate[:number].mean(0))
            p = change_of(changes, shares, Fraction(0), alpha=LAST_ALPHA).p
            if number == _REPETITIONS or decision(p, number) is not Decision.GO_ON:
                break
        found += p <= LAST_ALPHA
        repetitions += number
    slack = 2.6 / sqrt(_RUNS)
    assert (
        least - slack * sqrt(least * (1 - least)) <= found / _RUNS <= most + slack * sqrt(most * (1 - most))
    )
    assert repetitions / _RUNS <= asked + 0.1
