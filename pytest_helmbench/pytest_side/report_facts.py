"""The facts that the report of an item carries beside pytest's own words: its time, and why others skipped it."""

from __future__ import annotations

from datetime import datetime

import pytest

from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.core.scrub import excerpt

_KEY = "helmbench_skip"
_LONGEST = 200


def note_skip(report: pytest.TestReport) -> None:
    """Let the report of a skipped case of which we have no outcome carry why it was skipped."""
    if report.skipped and not hasattr(report, "wasxfail"):
        found = report.longrepr
        text = str(found[2] if isinstance(found, tuple) else found)
        report.__dict__[_KEY] = excerpt(text.removeprefix("Skipped: "), _LONGEST)


def skip_reason(report: pytest.TestReport) -> str | None:
    """Return why others skipped a case of ours; None for any other report."""
    reason: str | None = report.__dict__.get(_KEY)
    return reason


def own_time_s(outcome: Outcome, otherwise: float) -> float:
    """Return how long a case took: its own calls, without the time that it or its item has waited for others."""
    if outcome.latency_ms is not None:
        return outcome.latency_ms / 1000
    if outcome.started_at is None or outcome.completed_at is None:
        return otherwise
    begun, ended = (datetime.fromisoformat(at) for at in (outcome.started_at, outcome.completed_at))
    return max(0.0, (ended - begun).total_seconds())
