"""Acceptance by simulation, in its quick form: false alarms, power, and how often intervals hold.

Seeds are fixed, so that a run says the same every time. Bars allow for 2.6 standard errors of so few runs; what the
full form with 1,000 runs each has found stands in docs/statistics.md.
"""

from __future__ import annotations

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from simulated_runs import SimulatedTree, World

from pytest_helmbench.scoring.changes import ALPHA, change_of
from pytest_helmbench.scoring.intervals import tree_interval

_TREE = SimulatedTree.shaped()
_SMALL = SimulatedTree.flat(12, 4)
_PACK = SimulatedTree.flat(300, 1)
_RUNS = 120


def _slack(bar: float) -> float:
    return 2.6 * sqrt(bar * (1 - bar) / _RUNS)


def _regressed(world: World, drop: float, seed: int) -> float:
    """Return the share of imaginary comparisons that are called a regression."""
    rng = np.random.default_rng(seed)
    found = 0
    for before, after in world.pairs(rng, _RUNS, drop):
        verdicts = [(rng.random(len(side)) < side).astype(float) for side in (before, after)]
        changes, shares = world.tree.changes(verdicts[0], verdicts[1])
        found += change_of(changes, shares, Fraction(0)).p <= ALPHA
    return found / _RUNS


@pytest.mark.parametrize(
    ("world", "seed"),
    [
        (World(_TREE, 0.8), 1),
        (World(_TREE, 0.8, churn=0.25), 2),
        (World(_TREE, 0.95, churn=0.25, sharpness=12), 3),
        (World(_SMALL, 0.8, churn=0.25), 4),
        (World(_PACK, 0.8, churn=0.25), 5),
    ],
    ids=["same model", "churn", "rare flips", "12 perturbations", "pack"],
)
def test_what_is_no_regression_is_seldom_called_one(world: World, seed: int) -> None:
    assert _regressed(world, 0.0, seed) <= 0.05 + _slack(0.05)


@pytest.mark.parametrize(
    ("world", "drop", "least", "seed"),
    [(World(_TREE, 0.8), 0.1, 0.9, 6), (World(_PACK, 0.8), 0.05, 0.55, 7)],
    ids=["ten points", "pack"],
)
def test_a_real_drop_is_found(world: World, drop: float, least: float, seed: int) -> None:
    assert _regressed(world, drop, seed) >= least - _slack(least)


@pytest.mark.parametrize(
    ("world", "least", "most", "seed"),
    [
        (World(_TREE, 0.5), 0.93, 0.98, 8),
        (World(_TREE, 0.8), 0.93, 0.98, 9),
        (World(_TREE, 0.99), 0.95, 1.0, 10),
        (World(_SMALL, 0.8), 0.92, 0.99, 11),
        (World(SimulatedTree.flat(3, 8), 0.8), 0.92, 1.0, 12),
    ],
    ids=["50 %", "80 %", "99 %", "12 perturbations", "3 perturbations"],
)
def test_the_interval_holds_the_expected_score(world: World, least: float, most: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    held = 0
    for rates, _ in world.pairs(rng, _RUNS):
        found = tree_interval(world.tree.strata((rng.random(len(rates)) < rates).astype(float)))
        assert found is not None
        held += found.low <= world.level <= found.high
    assert least - _slack(least) <= held / _RUNS <= most + _slack(most)


@pytest.mark.parametrize("level", [0.5, 0.9])
def test_the_interval_of_a_sample_holds_the_expected_score_and_that_of_all_cases(level: float) -> None:
    """One of five perturbations is asked: the score is that of all on average, and the interval counts the rest."""
    world = World(_TREE, level)
    rng = np.random.default_rng(13)
    held = held_whole = 0
    errors = []
    for seed, (rates, _) in enumerate(world.pairs(rng, _RUNS)):
        passed = (rng.random(len(rates)) < rates).astype(float)
        found = world.tree.sampled_score(passed, "0.2", seed)
        assert found.score is not None
        assert found.total.interval is not None
        low, high = found.total.interval.low, found.total.interval.high
        whole = float(passed @ world.tree.share)
        held += low <= level <= high
        held_whole += low <= whole <= high
        errors.append(float(found.score) - whole)
    assert held / _RUNS >= 0.93 - _slack(0.93)
    assert held_whole / _RUNS >= 0.95 - _slack(0.95)
    assert abs(np.mean(errors)) <= 2.6 * np.std(errors) / sqrt(_RUNS)
