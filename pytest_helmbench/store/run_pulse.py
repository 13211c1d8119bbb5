"""Progress of the runs of a results file, in numbers that are cheap to ask for while a session writes it."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.database_file import FilePlace
from pytest_helmbench.store.fault import store_error
from pytest_helmbench.store.leases import leases_of, true_status
from pytest_helmbench.store.reading import opened

_OUTCOMES = ("passed", "failed", "error", "skipped")


@dataclass(frozen=True, slots=True)
class Pulse:
    """How far a run is.

    Args:
        run_id: Of the run.
        status: As stored, but `interrupted` where its process is gone and nobody has said so yet.
        planned: Cases times repetitions.
        passed: Results so far; likewise the other outcomes.
        stamp: Changes with every result that comes or is replaced, and with the status.
    """

    run_id: int
    status: str
    planned: int
    passed: int
    failed: int
    error: int
    skipped: int
    stamp: str

    @property
    def done(self) -> int:
        """Results so far."""
        return self.passed + self.failed + self.error + self.skipped


_RUNS = """
    SELECT id, status, total_tests, passed_tests, failed_tests, error_tests, skipped_tests, completed_at,
        session_id FROM evaluation_runs ORDER BY id
"""
_RESULTS = """
    SELECT outcome, count(*), max(rowid), max(completed_at) FROM results WHERE run_id = ?
    GROUP BY outcome ORDER BY outcome
"""


class PulseReader:
    """One connection that is asked again and again; asking costs microseconds while nothing is written.

    Args:
        path: Results file.

    Raises:
        StoreError: The file is missing or no results file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._conn = opened(path)
        self._place = FilePlace(path)
        self._seen = -1

    @property
    def is_kept(self) -> bool:
        """Whether the file that is read still stands at its place."""
        return self._place.is_kept

    def has_changed(self) -> bool:
        """Return whether anybody has written since this was last asked.

        Raises:
            StoreError: The file cannot be read.
        """
        try:
            (version,) = self._conn.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error
        seen, self._seen = self._seen, int(version)
        return seen != self._seen

    def pulses(self) -> Mapping[int, Pulse]:
        """Return how far every run is, by its number.

        Raises:
            StoreError: The file cannot be read.
        """
        try:
            return {pulse.run_id: pulse for pulse in _pulses(self._conn, time.time())}
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error

    def close(self) -> None:
        """Close the connection."""
        self._conn.close()


def pulses(path: Path) -> Mapping[int, Pulse]:
    """Return how far every run of a file is now.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with contextlib.closing(PulseReader(path)) as reader:
        return reader.pulses()


def _pulses(conn: sqlite3.Connection, now_s: float) -> Iterator[Pulse]:
    leases = leases_of(conn)
    for run_id, status, planned, *counts, ended, session_id in conn.execute(_RUNS).fetchall():
        if status == "running":
            now = true_status(status, leases.get(session_id), now_s)
            yield _counted(conn, run_id, now, planned)
        elif None in counts:
            yield _counted(conn, run_id, status, planned)
        else:
            yield Pulse(run_id, status, planned, *_four(counts), f"{status} {counts} {ended}")


def _counted(conn: sqlite3.Connection, run_id: int, status: str, planned: int) -> Pulse:
    rows = conn.execute(_RESULTS, (run_id,)).fetchall()
    found = {outcome: count for outcome, count, _, _ in rows}
    counts = _four([found.get(outcome, 0) for outcome in _OUTCOMES])
    return Pulse(run_id, status, planned, *counts, f"{status} {rows}")


def _four(counts: Sequence[int]) -> tuple[int, int, int, int]:
    passed, failed, error, skipped = counts
    return passed, failed, error, skipped
