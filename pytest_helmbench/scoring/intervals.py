"""95 % intervals: the seeded bootstrap over perturbations for trees, Wilson's for rows.

How an interval is computed is known here alone; so are the only random numbers of the room.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from operator import mul
from statistics import NormalDist
from typing import Protocol

from pytest_helmbench.scoring.ledger import Ledger

__all__ = [
    "FEW_CLUSTERS",
    "INTERVAL",
    "Interval",
    "Weighing",
    "behaviour_replicates",
    "mean_replicates",
    "percentile_interval",
    "tree_intervals",
    "wilson_interval",
]

FEW_CLUSTERS = 10
"""With fewer clusters an interval is too narrow to lean on, and that is said."""

INTERVAL = "95 % interval"
"""What an interval is called wherever people read one."""

_TAIL = 0.025
_Z = NormalDist().inv_cdf(1 - _TAIL)
_DIGITS = 12
"""Digits of an end that are no rounding noise: an end of 7/10 must equal a threshold of 0.7."""
_ROUNDING = 1e-12
"""A pillar at its floor must not fall below it by rounding."""
_DRAWS_PER_BIT_STEP = 3
"""One step of `_binomial` takes about as long as drawing three clusters (measured)."""


@dataclass(frozen=True, slots=True)
class Interval:
    """A 95 % interval; both ends are in [0, 1]."""

    low: float
    high: float

    def splits(self, threshold: Fraction) -> bool:
        """Return whether values on either side of the threshold (that it holds for, or not) lie inside."""
        return self.low < float(threshold) <= self.high


class Weighing(Protocol):
    """How behaviours add up to pillars and a run."""

    @property
    def weights(self) -> Mapping[str, Fraction]:
        """Of every behaviour that was planned."""

    @property
    def members(self) -> Mapping[str, Sequence[Ledger]]:
        """Pillar to its planned behaviours."""

    @property
    def floors(self) -> Mapping[str, Fraction]:
        """Pillar to its least score."""

    @property
    def cap(self) -> Fraction | None:
        """Most that a run with a breached floor scores; None for no cap."""


def tree_intervals(
    ledgers: Sequence[Ledger], weighing: Weighing, replicates: int, seed: int
) -> dict[str, Interval | None]:
    """Return the intervals of behaviours, pillars and run (an empty code), all from the same replicates.

    Args:
        ledgers: Of every planned behaviour.
        weighing: How they add up.
        replicates: Of the bootstrap; 0 for no intervals.
        seed: The same rows and seed give the same intervals.
    """
    columns = {ledger.code: behaviour_replicates(ledger, replicates, seed) for ledger in ledgers}

    def mean(members: Iterable[Ledger]) -> list[float]:
        return mean_replicates((weighing.weights[ledger.code], columns[ledger.code]) for ledger in members)

    pillars = {pillar: mean(members) for pillar, members in weighing.members.items()}
    run = _capped_replicates(mean(ledgers), pillars, weighing)
    return {code: percentile_interval(values) for code, values in {**columns, **pillars, "": run}.items()}


def wilson_interval(share: float, trials: int) -> Interval:
    """Return the 95 % score interval of a share.

    Args:
        share: In [0, 1].
        trials: At least 1.

    Source:
        Wilson, Probable Inference, the Law of Succession, and Statistical Inference (1927).
    """
    spread = _Z**2 / trials
    centre = (share + spread / 2) / (1 + spread)
    half = _Z / (1 + spread) * sqrt(share * (1 - share) / trials + spread / (4 * trials))
    # An end of 0 or 1 must be just that.
    return Interval(round(max(0.0, centre - half), _DIGITS), round(min(1.0, centre + half), _DIGITS))


def behaviour_replicates(ledger: Ledger, replicates: int, seed: int) -> list[float]:
    """Return the behaviour's score in each replicate; empty when it is undefined.

    The perturbations (with all their judged rows) are drawn with replacement. A behaviour has its own stream
    of random numbers, so its replicates do not depend on what else has run.

    Source:
        Scenario trees, section 6.
    """
    if not ledger.points:
        return []
    # Cost and points travel in one integer: one draw and one sum serve both.
    shift = (len(ledger.clusters) * max(points for _, points in ledger.clusters)).bit_length()
    mask = (1 << shift) - 1
    draw = _drawer([cost << shift | points for cost, points in ledger.clusters])
    rng = random.Random(f"{seed}:{ledger.code}")
    totals = (draw(rng) for _ in range(replicates))
    return [1 - (total >> shift) / (ledger.unit * (total & mask)) for total in totals]


def mean_replicates(columns: Iterable[tuple[Fraction, Sequence[float]]]) -> list[float]:
    """Return the weighted mean in each replicate; empty when it is undefined.

    Args:
        columns: Weight and replicates of each behaviour; undefined ones (no replicates) are left out.
    """
    used = [(weight, values) for weight, values in columns if values]
    total = sum(weight for weight, _ in used)
    if not total:
        return []
    shares = [float(weight / total) for weight, _ in used]
    return [sum(map(mul, shares, row)) for row in zip(*(values for _, values in used), strict=True)]


def percentile_interval(replicates: Sequence[float]) -> Interval | None:
    """Return the 95 % percentile interval; None without replicates.

    Source:
        Efron and Tibshirani, An Introduction to the Bootstrap (1993), chapter 13.
    """
    if not replicates:
        return None
    ordered = sorted(replicates)
    cut = int(len(ordered) * _TAIL)
    return Interval(round(ordered[cut], _DIGITS), round(ordered[-1 - cut], _DIGITS))


def _capped_replicates(
    raw: Sequence[float], pillars: Mapping[str, Sequence[float]], weighing: Weighing
) -> Sequence[float]:
    """Return the run's replicates with the cap where a floor is breached in the same replicate."""
    if weighing.cap is None:
        return raw
    cap = float(weighing.cap)
    floors = weighing.floors.items()
    watched = [(float(least) - _ROUNDING, pillars[code]) for code, least in floors if pillars.get(code)]
    return [
        min(value, cap) if any(column[index] < least for least, column in watched) else value
        for index, value in enumerate(raw)
    ]


def _drawer(clusters: list[int]) -> Callable[[random.Random], int]:
    """Return what draws as many clusters as there are, with replacement, and sums them."""
    size = len(clusters)
    kinds = sorted(Counter(clusters).items())
    if len(kinds) * size.bit_length() * _DRAWS_PER_BIT_STEP >= size:
        return lambda rng: sum(rng.choices(clusters, k=size))
    # Many clusters of few kinds (one row per perturbation): how often each kind is drawn is multinomial.
    return lambda rng: _multinomial_sum(rng, kinds, size)


def _multinomial_sum(rng: random.Random, kinds: Sequence[tuple[int, int]], size: int) -> int:
    total = 0
    draws = pool = size
    for value, count in kinds:
        hits = draws if count == pool else _binomial(rng, draws, count, pool)
        total += hits * value
        draws -= hits
        pool -= count
    return total


def _binomial(rng: random.Random, trials: int, part: int, whole: int) -> int:
    """Return how many of `trials` uniform numbers are below part/whole, without rounding.

    All numbers are compared with part/whole at once, one binary digit per step: those whose digit differs are
    decided, the others go on.
    """
    below = 0
    rest = part
    while trials:
        rest *= 2
        ones = rng.getrandbits(trials).bit_count()
        if rest >= whole:
            rest -= whole
            below += trials - ones
            trials = ones
        else:
            trials -= ones
    return below
