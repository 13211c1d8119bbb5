"""The results of a recorded run with what its kind says of them: the value that exports are written from."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.kind_words import OwnColumns
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.result_queries import ResultRow, results
from pytest_helmbench.store.run_queries import RunDetail

__all__ = ["RecordedRun", "recorded_results", "recorded_run"]


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """A run with its results.

    Args:
        detail: The run.
        results: In natural order; with texts where they were asked for.
        columns: What exports say of each result beside what they say of all kinds.
    """

    detail: RunDetail
    results: tuple[ResultRow, ...]
    columns: OwnColumns


def recorded_run(path: Path, detail: RunDetail, *, with_text: bool = False) -> RecordedRun:
    """Return a run with its results; see `recorded_results`."""
    rows = recorded_results(path, detail, with_text=with_text)
    return RecordedRun(detail, rows, record_of(detail.kind).columns)


def recorded_results(
    path: Path,
    detail: RunDetail,
    code: str | None = None,
    *,
    outcome: str | None = None,
    with_text: bool = False,
) -> tuple[ResultRow, ...]:
    """Return the results of a run, or of one of its cases, with the words of its kind.

    Args:
        path: Results file.
        detail: The run.
        code: Only this case.
        outcome: Only those that came out so.
        with_text: Also requests, replies and what may quote them.

    Raises:
        StoreError: The file is missing or no results file.
    """
    run_id = detail.summary.id
    rows = results(path, run_id, code, outcome=outcome, with_text=with_text)
    words = record_of(detail.kind).results(path, run_id, code, with_text=with_text)
    return tuple(replace(row, words=words[row.id]) if row.id in words else row for row in rows)
