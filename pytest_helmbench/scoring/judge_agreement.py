"""Two judges over the same replies: how far they agree; and a judge's error, by a labelled sample."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.intervals import wilson

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


@dataclass(frozen=True, slots=True)
class CorrectedRate:
    """A pass rate with what labels make of it.

    Args:
        raw: As judged.
        corrected: With the judge's errors taken out; in [0, 1].
        low: Lower end of its 95 % interval, in [0, 1].
        high: Upper end.
        right_passes: Share of the labelled passes that were right.
        right_fails: Share of the labelled fails that were right.
        labels: How many there are.
    """

    raw: float
    corrected: float
    low: float
    high: float
    right_passes: float
    right_fails: float
    labels: int


def corrected_rate(
    passes: int,
    judged: int,
    labelled_passes: int,
    of_them_right: int,
    labelled_fails: int,
    passed_in_truth: int,
    rows: float | None = None,
) -> CorrectedRate | None:
    """Return the corrected pass rate; None where labels of one verdict are missing.

    Args:
        passes: Rows that were judged to pass; for a severity score, their points.
        judged: Rows that were judged; for a severity score, their points.
        labelled_passes: Drawn at random from the passes.
        of_them_right: Those that a person lets pass too.
        labelled_fails: Drawn at random from the fails.
        passed_in_truth: Those that a person lets pass all the same.
        rows: How many rows of equal points `judged` is worth; None where each row is one.

    Labels of a severity score were drawn with a probability in proportion to points, and count as often as drawn.

    Source:
        `docs/statistics.md`, the judge as an instrument: by verdict, Wilson per verdict, MOVER.
    """
    if not labelled_passes or not labelled_fails or not judged:
        return None
    share = passes / judged
    kept, missed = of_them_right / labelled_passes, passed_in_truth / labelled_fails
    (low_kept, high_kept), (low_missed, high_missed) = (
        wilson(kept, labelled_passes),
        wilson(missed, labelled_fails),
    )
    corrected = share * kept + (1 - share) * missed
    sampled = _Z**2 * (kept - missed) ** 2 * share * (1 - share) / (rows or judged)
    below = sqrt((share * (kept - low_kept)) ** 2 + ((1 - share) * (missed - low_missed)) ** 2 + sampled)
    above = sqrt((share * (high_kept - kept)) ** 2 + ((1 - share) * (high_missed - missed)) ** 2 + sampled)
    return CorrectedRate(
        raw=share,
        corrected=corrected,
        low=max(0.0, corrected - below),
        high=min(1.0, corrected + above),
        right_passes=kept,
        right_fails=1 - missed,
        labels=labelled_passes + labelled_fails,
    )
