"""Runs whose truth is known: a tree of perturbations of unequal difficulty, and verdicts drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from pytest_helmbench.core.outline import Scoring
from pytest_helmbench.scoring.drawing import SampledCase, draw
from pytest_helmbench.scoring.intervals import Stratum
from pytest_helmbench.scoring.rows import Row
from pytest_helmbench.scoring.run_score import RunScore, run_score

__all__ = ["SimulatedTree", "World"]

Floats = np.ndarray[Any, np.dtype[np.float64]]

# Of each behaviour: its weight, its perturbations, and the cases of each perturbation. Few cases of much weight stand
# beside many of little, as in real benchmarks.
_SHAPE = ((12, 4, 15), (10, 6, 15), (10, 7, 15), (8, 7, 20), (10, 4, 12), (5, 7, 8), (15, 3, 2), (8, 4, 1))


@dataclass(frozen=True, slots=True)
class SimulatedTree:
    """Cases as arrays, one entry each.

    Args:
        behaviour: Number of the behaviour.
        unit: Number of the perturbation.
        stake: Severity points.
        weight: Of each behaviour.
        lift: Fixed part of how easy a case is, in logits.
    """

    behaviour: Any
    unit: Any
    stake: Any
    weight: Any
    lift: Floats

    @classmethod
    def shaped(cls) -> SimulatedTree:
        """Return a tree of 42 perturbations and some 450 cases."""
        rng = np.random.default_rng(11)
        behaviour, unit, stake, lift = [], [], [], []
        number = 0
        for place, (_, perturbations, cases) in enumerate(_SHAPE):
            for severity in np.sort(rng.integers(2, 11, perturbations)):
                behaviour += [place] * cases
                unit += [number] * cases
                own = severity + rng.integers(0, 8, cases)
                stake += own.tolist()
                lift += (0.08 * own + rng.normal(0, 0.4, cases)).tolist()
                number += 1
        weight = np.array([weight for weight, _, _ in _SHAPE])
        return cls(np.array(behaviour), np.array(unit), np.array(stake), weight, np.array(lift))

    @classmethod
    def flat(cls, units: int, cases: int) -> SimulatedTree:
        """Return one behaviour of equal perturbations."""
        unit = np.repeat(np.arange(units), cases)
        size = len(unit)
        ones = np.ones(size, dtype=int)
        return cls(np.zeros(size, dtype=int), unit, ones, np.ones(1, dtype=int), np.zeros(size))

    @property
    def share(self) -> Floats:
        """What each case weighs in the score."""
        points = np.bincount(self.behaviour, self.stake)
        return np.asarray(
            (self.weight / self.weight.sum())[self.behaviour] * self.stake / points[self.behaviour]
        )

    def strata(self, passed: Floats) -> Iterator[Stratum]:
        """Yield the behaviours of a run as intervals take them."""
        for number, weight in enumerate(self.weight.tolist()):
            own = self.behaviour == number
            units = np.unique(self.unit[own])
            clusters = [
                (int(self.stake[self.unit == one].sum()), int((self.stake * passed)[self.unit == one].sum()))
                for one in units
            ]
            yield Stratum(Fraction(weight), clusters, int((self.stake[own] ** 2).sum()))

    def sampled_score(self, passed: Floats, rule: str, seed: int) -> RunScore:
        """Return the score of a run that asked a sample of the tree."""
        cases = [
            SampledCase(str(place), f"P1-B{behaviour}", f"PT{unit}", int(stake))
            for place, (behaviour, unit, stake) in enumerate(
                zip(self.behaviour, self.unit, self.stake, strict=True)
            )
        ]
        drawn = draw(cases, rule, seed).weights
        rows = (
            Row(
                pillar="P1",
                behaviour=case.stratum,
                scenario=f"{case.stratum}-S1",
                condition=f"C{case.code}",
                user_context=None,
                perturbation=case.unit,
                criterion="",
                repetition=1,
                severity=case.severity,
                difficulty=0,
                weighted=True,
                passed=bool(passed[int(case.code)]),
                credit=Fraction(int(passed[int(case.code)])),
                weight=drawn[case.code],
            )
            for case in cases
            if case.code in drawn
        )
        weights = {f"P1-B{number}": float(weight) for number, weight in enumerate(self.weight)}
        return run_score(rows, Scoring(weights, {}))

    def changes(self, before: Floats, after: Floats) -> tuple[list[Fraction], list[Fraction]]:
        """Return the change of each perturbation, and what it weighs."""
        share = self.share
        change = np.bincount(self.unit, share * (after - before))
        return [_exact(value) for value in change], [_exact(value) for value in np.bincount(self.unit, share)]


def _exact(value: float) -> Fraction:
    return Fraction(round(float(value) * 10**9), 10**9)


@dataclass(frozen=True, slots=True)
class World:
    """How perturbations and cases differ, and how often a model flips.

    Args:
        tree: Its cases.
        level: Score that is expected over all benchmarks of the kind.
        churn: SD of what another configuration does to a perturbation and to a case, in logits.
        sharpness: Of a case; the larger, the rarer a verdict flips.
    """

    tree: SimulatedTree
    level: float
    churn: float = 0.0
    sharpness: float = 4.0

    def expected(self, base: float) -> float:
        """Return the score that a base is worth over all benchmarks."""
        points, weights = np.polynomial.hermite_e.hermegauss(41)
        spread = np.sqrt(1 + 0.5**2 + 2 * self.churn**2)
        eased = self.tree.lift[:, None] + base + spread * points
        rates = _logistic(self.sharpness * eased) @ (weights / weights.sum())
        return float(rates @ self.tree.share)

    def pairs(
        self, rng: np.random.Generator, count: int, drop: float = 0.0
    ) -> Iterator[tuple[Floats, Floats]]:
        """Yield pass probabilities of baseline and candidate of imaginary benchmarks."""
        high, low = _solved(self.expected, self.level), _solved(self.expected, self.level - drop)
        units = int(self.tree.unit.max()) + 1
        for _ in range(count):
            core = (
                self.tree.lift
                + rng.normal(0, 1, units)[self.tree.unit]
                + rng.normal(0, 0.5, len(self.tree.unit))
            )
            sides = []
            for base in (high, low):
                own = rng.normal(0, self.churn, units)[self.tree.unit] if self.churn else 0.0
                case = rng.normal(0, self.churn, len(self.tree.unit)) if self.churn else 0.0
                sides.append(_logistic(self.sharpness * (core + base + own + case)))
            yield sides[0], sides[1]


def _logistic(value: Floats) -> Floats:
    return np.asarray(0.5 * (1 + np.tanh(0.5 * value)))


def _solved(function: Callable[[float], float], wanted: float) -> float:
    low, high = -12.0, 12.0
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < wanted else (low, middle)
    return (low + high) / 2
