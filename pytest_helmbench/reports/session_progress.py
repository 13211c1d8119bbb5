"""The line that says how far a session is."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.reports.tables import cost_text, reasons_text
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.scoring.intervals import rows_interval

_NAMED_IN_FLIGHT = 3


@dataclass(frozen=True, slots=True)
class Progress:
    """A session on its way.

    Args:
        counts: Of all its runs so far.
        planned: Cases in all.
        expected_usd: What it may cost in the end; None where a price is unknown.
        elapsed_s: Since it has begun.
    """

    counts: RunCounts
    planned: int
    expected_usd: float | None
    elapsed_s: float


def progress_text(now: Progress) -> str:
    """Return what is done, the score so far, errors by kind, cost, time left.

    The score is the share of the severity points that was kept, all models and behaviours together: an estimate while
    the session runs. The figure behind ± is half of a 95 % interval for as many cases.
    """
    counts = now.counts
    parts = [f"{counts.results}/{now.planned} done"]
    if counts.points:
        share = max(0.0, min(1.0, 1 - counts.points_lost / counts.points))
        interval = rows_interval(share, counts.verdicts[Verdict.PASSED] + counts.verdicts[Verdict.FAILED])
        parts.append(f"score {100 * share:.1f} % ± {50 * (interval.high - interval.low):.1f}")
    if counts.verdicts[Verdict.ERROR]:
        parts.append(f"errors: {reasons_text(counts.reasons)}")
    about = "" if now.expected_usd is None else f" of about {cost_text(now.expected_usd, 0)}"
    parts.append(f"{cost_text(counts.known_cost_usd, counts.unknown_costs)}{about} USD")
    if counts.results and counts.results < now.planned:
        left_s = now.elapsed_s * (now.planned - counts.results) / counts.results
        parts.append(f"{_span(left_s)} left")
    return f"helmbench: {', '.join(parts)}"


def in_flight_text(calls: Sequence[tuple[str, str, float]]) -> str:
    """Return what is being waited for.

    Args:
        calls: Label, model, age in seconds of what is out, the oldest first.
    """
    named = ", ".join(f"{label} [{model}] {age_s:.0f} s" for label, model, age_s in calls[:_NAMED_IN_FLIGHT])
    more = f", +{len(calls) - _NAMED_IN_FLIGHT}" if len(calls) > _NAMED_IN_FLIGHT else ""
    return f"{len(calls)} in flight: {named}{more}" if calls else "waiting for limits"


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    return f"{round(whole / 60)} min" if whole < 90 * 60 else f"{whole / 3600:.1f} h"
