"""The agreement of two judges: the share of equal verdicts, and Cohen's kappa, each with its interval."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.intervals import wilson

__all__ = ["Agreement", "agreement"]

_Z = NormalDist().inv_cdf(0.975)


@dataclass(frozen=True, slots=True)
class Agreement:
    """Two judges over the same replies. Shares lie in [0, 1], kappa in [-1, 1]; intervals are of 95 %.

    Args:
        both_pass: Verdicts on which both say pass.
        first_only: The first alone says pass.
        second_only: The second alone says pass.
        both_fail: Both say fail.
        share: Of equal verdicts.
        low: Lower end, Wilson.
        high: Upper end.
        kappa: Agreement beyond chance; None where one verdict is all that either judge gives.
        kappa_low: Lower end; None where kappa is, or where no verdict differs.
        kappa_high: Upper end, likewise.
    """

    both_pass: int
    first_only: int
    second_only: int
    both_fail: int
    share: float
    low: float
    high: float
    kappa: float | None
    kappa_low: float | None
    kappa_high: float | None

    @property
    def verdicts(self) -> int:
        """How many both have given."""
        return self.both_pass + self.first_only + self.second_only + self.both_fail

    @property
    def disagreements(self) -> int:
        """How many differ."""
        return self.first_only + self.second_only


def agreement(both_pass: int, first_only: int, second_only: int, both_fail: int) -> Agreement | None:
    """Return how far two judges agree; None without a verdict of both.

    Source:
        Cohen, A coefficient of agreement for nominal scales (1960); its standard error by Fleiss, Cohen and
        Everitt, Large sample standard errors of kappa and weighted kappa (1969).
    """
    n = both_pass + first_only + second_only + both_fail
    if n == 0:
        return None
    equal = (both_pass + both_fail) / n
    low, high = wilson(equal, n)
    first, second = (both_pass + first_only) / n, (both_pass + second_only) / n
    chance = first * second + (1 - first) * (1 - second)
    kappa = ends = None
    if chance < 1:
        kappa = (equal - chance) / (1 - chance)
        ends = _kappa_ends((both_pass / n, first_only / n, second_only / n, both_fail / n), kappa, chance, n)
    return Agreement(
        both_pass,
        first_only,
        second_only,
        both_fail,
        share=equal,
        low=low,
        high=high,
        kappa=kappa,
        kappa_low=None if ends is None else ends[0],
        kappa_high=None if ends is None else ends[1],
    )


def _kappa_ends(
    cells: tuple[float, float, float, float], kappa: float, chance: float, n: int
) -> tuple[float, float] | None:
    """Return the ends of kappa's interval; None where its standard error is 0, which says nothing."""
    both, one, other, none = cells
    rows, columns = (both + one, other + none), (both + other, one + none)
    same = sum(cell * (1 - (rows[i] + columns[i]) * (1 - kappa)) ** 2 for i, cell in ((0, both), (1, none)))
    apart = (1 - kappa) ** 2 * (one * (columns[0] + rows[1]) ** 2 + other * (columns[1] + rows[0]) ** 2)
    variance = same + apart - (kappa - chance * (1 - kappa)) ** 2
    if variance <= 1e-15:
        return None
    half = _Z * sqrt(variance / n) / (1 - chance)
    return max(-1.0, kappa - half), min(1.0, kappa + half)
