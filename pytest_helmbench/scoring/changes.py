"""The change of a score from one run to another: its size, how sure it is, and what could have been found."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from fractions import Fraction
from math import sqrt
from statistics import NormalDist

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.scoring.intervals import t_quantile
from pytest_helmbench.scoring.sign_flip import sign_flip

ALPHA = 0.05
"""How often a change that is none may be called a regression."""

LEAST_CHANGED = 5
"""With fewer changed units p is 1/16 or more: nothing can be shown."""

_POWER = 0.8
_HETEROGENEITY = 1.3
"""A real drop is not the same everywhere, and so enters its own noise. Measured by simulation."""


class Verdict(StrEnum):
    """What a comparison says."""

    REGRESSED = "regressed"
    COLLAPSED = "collapsed"
    NOT_WORSE = "not worse"
    NO_CHANGE = "no change"
    INCONCLUSIVE = "inconclusive"
    NOT_COMPARABLE = "not comparable"


@dataclass(frozen=True, slots=True)
class Change:
    """Candidate minus baseline.

    Args:
        change: Of the score, in [−1, 1].
        low: End of the 90 % interval; None for one unit, or where nothing changed. `high` likewise.
        p: Of the hypothesis that the drop is the margin or less.
        units: What was signed: perturbations, rows or replies.
        changed: Of them, `down` and `up` together.
        least_p: The least p that so many changes can give.
        verdict: Regressed, not worse, no change or inconclusive.
    """

    change: Fraction
    low: float | None
    high: float | None
    p: float
    units: int
    changed: int
    down: int
    up: int
    least_p: float
    verdict: Verdict


def flip_p(changes: Sequence[Fraction], shares: Sequence[Fraction], margin: Fraction) -> float:
    """Return the p-value of the hypothesis that the score has dropped by the margin or less.

    Args:
        changes: Of every unit, candidate minus baseline, in points of the score.
        shares: What each unit weighs in the score; their sum is 1.
        margin: In [0, 1].
    """
    return sign_flip(change + margin * share for change, share in zip(changes, shares, strict=True))


def change_of(
    changes: Sequence[Fraction],
    shares: Sequence[Fraction],
    margin: Fraction,
    p: float | None = None,
) -> Change:
    """Return what some changes say of the score; the interval never contradicts the test.

    Args:
        changes: See `flip_p`.
        shares: See `flip_p`.
        margin: Drop that is allowed.
        p: Where it was adjusted for other tests; None to compute it.

    Source:
        `docs/statistics.md`, the test and the size of a change.
    """
    if p is None:
        p = flip_p(changes, shares, margin)
    total = sum(changes, Fraction(0))
    down, up = sum(change < 0 for change in changes), sum(change > 0 for change in changes)
    low, high = _interval(changes, shares, total) if down or up else (None, None)
    least = -float(margin)
    if high is not None:
        high = max(high, least) if p > ALPHA else min(high, least)
    if p <= ALPHA:
        verdict = Verdict.REGRESSED
    elif low is not None and low >= least:
        verdict = Verdict.NOT_WORSE
    else:
        verdict = Verdict.INCONCLUSIVE if down or up else Verdict.NO_CHANGE
    tested = sum(bool(change + margin * share) for change, share in zip(changes, shares, strict=True))
    return Change(total, low, high, p, len(changes), down + up, down, up, 0.5**tested, verdict)


def _interval(
    changes: Sequence[Fraction], shares: Sequence[Fraction], total: Fraction
) -> tuple[float | None, float | None]:
    """Return the 90 % interval of the sum of the changes by its CR2 standard error, cut to what a score can do."""
    if len(changes) < 2 or any(share == 1 for share in shares):
        return None, None
    squares = (
        float(change - share * total) ** 2 / float(1 - share)
        for change, share in zip(changes, shares, strict=True)
    )
    units = 1 / sum(float(share) ** 2 for share in shares)
    half = t_quantile(1 - ALPHA, max(units - 1, 1)) * sqrt(sum(squares))
    return max(float(total) - half, -1.0), min(float(total) + half, 1.0)


def detectable_drop(mean_square: float) -> float:
    """Return the drop that is found four times of five; a rough guide.

    Args:
        mean_square: Σ over units of the squared change between two runs, as a mean over earlier pairs of runs.
    """
    normal = NormalDist()
    return _HETEROGENEITY * (normal.inv_cdf(1 - ALPHA) + normal.inv_cdf(_POWER)) * sqrt(mean_square)


def about(drop: float) -> str:
    """Return `about 6 points`; it is a rough number."""
    shown = 100 * drop
    return f"about {shown:.0f} points" if shown >= 2 else f"about {shown:.1f} points"


def holm_adjusted(p_values: Iterable[float]) -> list[float]:
    """Return p-values adjusted by Holm, in the order they came in: those up to α hold all together at α.

    Source:
        Holm, A simple sequentially rejective multiple test procedure (1979).
    """
    known = list(p_values)
    adjusted = [0.0] * len(known)
    least = 0.0
    for place, index in enumerate(sorted(range(len(known)), key=known.__getitem__)):
        adjusted[index] = least = max(least, min(1.0, (len(known) - place) * known[index]))
    return adjusted
