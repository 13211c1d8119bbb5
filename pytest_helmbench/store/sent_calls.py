"""Calls that are out and reserve a part of a budget: on disk before they go, so that a killed session's are counted."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from pathlib import Path

from pytest_helmbench.store.batch import Returned, Sent
from pytest_helmbench.store.reading import reading

_LEFT_OUT = """
    SELECT count(*), total(reserved_usd) FROM sent_calls
    WHERE run_id IN (SELECT id FROM evaluation_runs WHERE session_id = ?)
"""


def write_sent(
    conn: sqlite3.Connection, owner: str, sent: Iterable[Sent], returned: Iterable[Returned]
) -> None:
    """Write which calls go, and take out those that have returned.

    Args:
        conn: Inside a write transaction.
        owner: Of the runs, see `Leases`.
        sent: Calls that go when this is on disk.
        returned: Calls whose cost is on record, or that were not made.
    """
    conn.executemany(
        "INSERT INTO sent_calls (owner, number, run_id, code, reserved_usd) VALUES (?, ?, ?, ?, ?)",
        [(owner, call.number, call.run_id, call.code, call.reserved_usd) for call in sent],
    )
    conn.executemany(
        "DELETE FROM sent_calls WHERE owner = ? AND number = ?", [(owner, call.number) for call in returned]
    )


def calls_left_out(path: Path, session_id: str) -> tuple[int, float]:
    """Return how many calls of a session never returned, since their process was killed, and what they may have cost.

    Raises:
        StoreError: The file is no results file.
    """
    with reading(path) as conn:
        calls, usd = conn.execute(_LEFT_OUT, (session_id,)).fetchone()
    return int(calls), float(usd)
