"""Several runs over the same cases, two by two: who is shown to be better, corrected for asking so often."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TypeVar

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.changes import ALPHA, LEAST_CHANGED
from pytest_helmbench.scoring.sign_flip import sign_flip

__all__ = ["PairDifference", "better_one", "pair_difference", "rank_bounds"]

_Name = TypeVar("_Name", bound=Hashable)


@dataclass(frozen=True, slots=True)
class PairDifference:
    """The score of one run minus that of another, on the cases that both have judged.

    Args:
        difference: In [−1, 1].
        p: Two-sided, of the hypothesis that neither is better.
        units: What was signed: perturbations, clusters or rows.
        changed: Of them.
    """

    difference: Fraction
    p: float
    units: int
    changed: int

    @property
    def cannot_tell(self) -> bool:
        """Whether so few units differ that no difference of theirs could be shown, even of a single pair."""
        return self.changed <= LEAST_CHANGED


def pair_difference(changes: Sequence[Fraction]) -> PairDifference:
    """Return what the differences of some units say: the exact sign-flip test, to both sides.

    Args:
        changes: Of every unit, first run minus second, in points of the score.

    Source:
        `docs/statistics.md`, the test and leaderboards.
    """
    smaller = min(sign_flip(changes), sign_flip(-change for change in changes))
    changed = sum(bool(change) for change in changes)
    return PairDifference(sum(changes, Fraction(0)), min(1.0, 2 * smaller), len(changes), changed)


def better_one(difference: Fraction, p_adjusted: float) -> int:
    """Return which of two runs is shown to be better: 1 for the first, −1 for the second, 0 where none is."""
    if p_adjusted > ALPHA or not difference:
        return 0
    return 1 if difference > 0 else -1


def rank_bounds(
    names: Iterable[_Name], better: Iterable[tuple[_Name, _Name]]
) -> Mapping[_Name, tuple[int, int]]:
    """Return the best and the worst place that each run may have; all of them together are right at 95 %.

    A run has the better places of those that are shown to be better before it, and behind it those that it is shown
    to be better than; with all others it may change places.

    Args:
        names: Of the runs.
        better: Winner and loser of every pair that is told apart, tests corrected by Holm.

    Source:
        Mogstad, Romano, Shaikh and Wilhelm, Inference for Ranks (2024), by pairs of two-sided tests.
    """
    known, pairs = list(names), list(better)
    return {
        name: (
            1 + sum(loser == name for _, loser in pairs),
            len(known) - sum(winner == name for winner, _ in pairs),
        )
        for name in known
    }
