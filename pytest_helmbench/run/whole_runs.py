"""Counts of the runs of a session that went on, from the record: all its parts together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.results.run_counts import RunCounts
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.store.cost_queries import costs
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.run_queries import RunSummary, run_summary

__all__ = ["whole_runs"]


def whole_runs(coordinator: Coordinator) -> Mapping[str, RunCounts] | None:
    """Return the counts of all parts of a session by model; None where nothing went on, or they cannot be read.

    Args:
        coordinator: Of the session, closed.
    """
    book = coordinator.book
    if book.resumption is None:
        return None
    found: dict[str, list[RunCounts]] = {}
    try:
        for run in run_summary(book.db, book.resumption.session_id):
            if run.id in book.tallies:
                found.setdefault(run.model, []).append(_counts(book.db, run))
    except StoreError:
        return None
    return {model: RunCounts.sum(parts) for model, parts in found.items()}


def _counts(path: Path, run: RunSummary) -> RunCounts:
    outcomes = {
        Verdict.PASSED: run.passed_tests,
        Verdict.FAILED: run.failed_tests,
        Verdict.ERROR: run.error_tests,
        Verdict.SKIPPED: run.skipped_tests,
    }
    counts = RunCounts(Counter({verdict: number or 0 for verdict, number in outcomes.items()}))
    for cost in costs(path, run.id):
        counts.add_costs(cost)
    return counts
