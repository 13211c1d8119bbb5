"""The line that says how far a session is."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.reports.tables import cost_text, display_width, reasons_text
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.scoring.intervals import rows_interval

_OLD_S = 5.0
_DROPPED_FIRST = ("oldest", "in flight", "errors", "cost")


@dataclass(frozen=True, slots=True)
class Progress:
    """A session on its way.

    Args:
        counts: Of all its runs so far.
        planned: Cases in all.
        expected_usd: What it may cost in the end; None where a price is unknown.
        elapsed_s: Since it has begun.
        in_flight: Label, model and age in seconds of the calls that are out, the oldest first.
        waits_for_limits: A call waits for a rate limit or a pause.
    """

    counts: RunCounts
    planned: int
    expected_usd: float | None
    elapsed_s: float
    in_flight: Sequence[tuple[str, str, float]] = ()
    waits_for_limits: bool = False


def progress_text(now: Progress) -> str:
    """Return the line of a log: what is done, the score so far, errors by kind, cost, time left."""
    parts = _parts(now)
    if now.expected_usd is not None:
        parts["cost"] = parts["cost"].replace(" USD", f" of about {cost_text(now.expected_usd, 0)} USD")
    named = (parts.get(name) for name in ("done", "score", "errors", "cost", "left"))
    return f"helmbench: {', '.join(part for part in named if part is not None)}"


def live_text(now: Progress, columns: int) -> str:
    """Return the line of a terminal: as progress_text, with the calls in flight, and no wider than there is room."""
    parts = _parts(now)
    parts["in flight"] = f"{len(now.in_flight)} in flight"
    if now.waits_for_limits:
        parts["in flight"] += ", waiting for limits"
    if "left" in parts:
        parts["left"] = parts.pop("left")  # behind the calls
    if now.in_flight and now.in_flight[0][2] >= _OLD_S:
        label, model, age_s = now.in_flight[0]
        parts["oldest"] = f"{label} [{model}] since {age_s:.0f} s"
    for name in _DROPPED_FIRST:
        if display_width(" · ".join(parts.values())) <= columns:
            break
        parts.pop(name, None)
    return " · ".join(parts.values())[:columns]


def _parts(now: Progress) -> dict[str, str]:
    """Return what there is to tell, by name.

    The score is the share of the severity points that was kept, all models and behaviours together: an estimate while
    the session runs. The figure behind ± is half of a 95 % interval for as many cases.
    """
    counts = now.counts
    parts = {"done": f"{counts.results}/{now.planned} done"}
    if counts.points:
        share = max(0.0, min(1.0, 1 - counts.points_lost / counts.points))
        interval = rows_interval(share, counts.judged)
        parts["score"] = f"score {100 * share:.1f} % ± {50 * (interval.high - interval.low):.1f}"
    parts["cost"] = f"{cost_text(counts.known_cost_usd, counts.unknown_costs)} USD"
    if counts.verdicts[Verdict.ERROR]:
        parts["errors"] = f"errors: {reasons_text(counts.reasons)}"
    if counts.results and counts.results < now.planned:
        left_s = now.elapsed_s * (now.planned - counts.results) / counts.results
        parts["left"] = f"{_span(left_s)} left"
    return parts


def _span(seconds: float) -> str:
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    return f"{round(whole / 60)} min" if whole < 90 * 60 else f"{whole / 3600:.1f} h"
