"""Looks at a comparison between repetitions: when there is enough to say, and when more would hardly say more.

Each look is a valid test by itself, so its two limits together bound how often a change that is none is called a
regression, however much the looks depend on each other.
"""

from __future__ import annotations

from enum import StrEnum

__all__ = ["LAST_ALPHA", "Decision", "decision"]

LAST_ALPHA = 0.04
"""At the last look a regression is called at this p."""

_FIRST_ALPHA = 0.01
_GO_ON_UP_TO = 0.3


class Decision(StrEnum):
    """What becomes of the repetitions that are left."""

    REGRESSED = "a regression is shown"
    HOPELESS = "more repetitions would hardly show a regression"
    GO_ON = "go on"


def decision(p: float, repetition: int) -> Decision:
    """Return whether to ask on after a repetition that is not the last.

    Args:
        p: Of the comparison of all that was judged so far with the baseline.
        repetition: That has just come to its end.

    Source:
        `docs/statistics.md`, repetitions with an early stop.
    """
    if repetition == 1 and p <= _FIRST_ALPHA:
        return Decision.REGRESSED
    return Decision.HOPELESS if p > _GO_ON_UP_TO else Decision.GO_ON
