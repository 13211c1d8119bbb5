"""The seeded bootstrap over perturbations; the only random numbers of the room."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from operator import mul

from pytest_helmbench.scoring.ledger import Ledger

__all__ = ["Interval", "behaviour_replicates", "mean_replicates", "percentile_interval"]

_TAIL = 0.025
_DIGITS = 12
"""Digits of an end that are no rounding noise: an end of 7/10 must equal a threshold of 0.7."""
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
