"""Cases of a run whose files are broken: planned and never judged, so that coverage counts them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.store.cells import safe_text
from pytest_helmbench.store.reading import has_table

__all__ = ["CREATE_BROKEN_CASES", "read_broken", "write_broken"]

CREATE_BROKEN_CASES = """CREATE TABLE broken_cases (
    id INTEGER PRIMARY KEY,
    run_id INTEGER NOT NULL REFERENCES evaluation_runs (id),
    code TEXT NOT NULL,
    severity INTEGER NOT NULL,
    difficulty INTEGER NOT NULL,
    evaluations INTEGER NOT NULL
)"""


def write_broken(conn: sqlite3.Connection, run_id: int, cases: Iterable[BrokenCase]) -> None:
    """Keep what is broken now in the benchmark of a run, in place of what was broken when it began."""
    conn.execute("DELETE FROM broken_cases WHERE run_id = ?", (run_id,))
    conn.executemany(
        "INSERT INTO broken_cases (run_id, code, severity, difficulty, evaluations) VALUES (?, ?, ?, ?, ?)",
        [(run_id, safe_text(case.code), case.severity, case.difficulty, case.evaluations) for case in cases],
    )


def read_broken(conn: sqlite3.Connection, run_id: int) -> tuple[BrokenCase, ...]:
    """Return the broken cases of a run, in order; none for a file from before they were kept."""
    if not has_table(conn, "broken_cases"):
        return ()
    found = conn.execute(
        "SELECT code, severity, difficulty, evaluations FROM broken_cases WHERE run_id = ? ORDER BY id",
        (run_id,),
    )
    return tuple(BrokenCase(*row) for row in found)
