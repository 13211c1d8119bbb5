"""Speed of replies: median and 95 % time of a case, tokens per second."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Speed", "percentile", "speed_of"]


@dataclass(frozen=True, slots=True)
class Speed:
    """How fast the replies of a run came; what came from the record has no speed.

    Args:
        cases: Answered by a model in this run.
        median_ms: Of a case's calls, from sending to the last byte, our own waiting apart; None without a case.
        p95_ms: That 95 % of the cases stayed within; likewise.
        tokens_per_second: Tokens of the replies ÷ seconds of their calls, waiting for the first token included; None
            where no case has both.
    """

    cases: int = 0
    median_ms: float | None = None
    p95_ms: float | None = None
    tokens_per_second: float | None = None


def speed_of(cases: Iterable[tuple[float, int | None]]) -> Speed:
    """Return the speed of some cases.

    Args:
        cases: Milliseconds above 0 and tokens of the reply (None where unknown) of each.
    """
    known = list(cases)
    if not known:
        return Speed()
    times = sorted(ms for ms, _ in known)
    counted = [(ms, tokens) for ms, tokens in known if tokens is not None]
    seconds = sum(ms for ms, _ in counted) / 1000
    rate = sum(tokens for _, tokens in counted) / seconds if seconds else None
    return Speed(len(known), percentile(times, 0.5), percentile(times, 0.95), rate)


def percentile(ordered: Sequence[float], part: float) -> float:
    """Return the value below which a part of some lies (the nearest of them).

    Args:
        ordered: At least one, ascending.
        part: In [0, 1].
    """
    return ordered[max(0, ceil(part * len(ordered)) - 1)]
