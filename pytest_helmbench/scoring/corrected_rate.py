"""The pass rate of a run, corrected by a sample of its verdicts that a person has labelled."""

from __future__ import annotations

from math import sqrt
from statistics import NormalDist

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.intervals import wilson

__all__ = ["CorrectedRate", "corrected_rate"]

_Z = NormalDist().inv_cdf(0.975)


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
