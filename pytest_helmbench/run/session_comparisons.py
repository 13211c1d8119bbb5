"""The comparisons of a session with its baselines: made when its runs are closed, and kept with them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path

from pytest_helmbench.results.baselines import Baselines
from pytest_helmbench.results.comparing import ComparedRun, RunComparison, RunRef
from pytest_helmbench.results.comparison_records import comparison_records
from pytest_helmbench.run.run_book import RunBook
from pytest_helmbench.store.comparison_rows import write_comparisons
from pytest_helmbench.store.leases import iso_time
from pytest_helmbench.store.run_queries import run_detail


def compared_with(baselines: Baselines, book: RunBook) -> dict[int, RunComparison]:
    """Return how the closed runs of a session stand to their baselines, by run.

    Raises:
        StoreError: A file cannot be read.
    """
    found = {}
    for key, run_id in book.run_ids().items():
        scored = book.scored.get(run_id)
        detail = None if scored is None else run_detail(book.db, run_id)
        if scored is None or detail is None:
            continue
        candidate = ComparedRun.stored(RunRef.of(book.db, detail.summary, book.db))
        if candidate is not None:
            found[run_id] = baselines.compared(key, scored.facts, candidate)
    return found


def keep_comparisons(book: RunBook, comparisons: Mapping[int, RunComparison]) -> None:
    """Write the comparisons of a session whose store is closed.

    Raises:
        StoreError: They cannot be written.
    """
    if book.store is not None and book.store.fault is None:
        keep_stored(book.db, comparisons)


def keep_stored(path: Path, comparisons: Mapping[int, RunComparison]) -> None:
    """Write the comparisons of closed runs of a results file.

    Raises:
        StoreError: They cannot be written.
    """
    if not comparisons:
        return
    at = iso_time(time.time())
    rows = [
        {
            **record,
            "session_id": found.candidate.session_id if found.candidate is not None else "",
            "run_id": run_id,
            "at": at,
        }
        for run_id, found in comparisons.items()
        for record in comparison_records(found)
    ]
    write_comparisons(path, rows)
