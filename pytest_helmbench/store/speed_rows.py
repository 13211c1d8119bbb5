"""Times of the cases of a run with their tokens, read from a results file."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.store.reading import reading

_TIMED = """
    SELECT latency_ms, completion_tokens FROM results
    WHERE run_id = :run_id AND latency_ms > 0 AND (code, repetition) NOT IN (
        SELECT code, repetition FROM calls WHERE run_id = :run_id AND from_cache = 1 AND purpose <> 'judge'
    )
    ORDER BY rowid
"""


def timed_cases(path: Path, run_id: int) -> tuple[tuple[float, int | None], ...]:
    """Return milliseconds and reply tokens of every case that was answered in a run.

    Cases with a reply from the record are left out: its time is not this run's.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        return tuple(conn.execute(_TIMED, {"run_id": run_id}).fetchall())
