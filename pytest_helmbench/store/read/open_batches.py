"""Batches of calls that a session has out at providers, as the record has them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.read.connection import holds_nothing, reading
from pytest_helmbench.store.table_rows import named_rows

_OPEN = "SELECT * FROM batches WHERE session_id = ? AND state != 'read' ORDER BY rowid DESC"
_ANSWERED = """SELECT DISTINCT batch FROM calls JOIN evaluation_runs ON evaluation_runs.id = calls.run_id
    WHERE session_id = ? AND batch IS NOT NULL"""
_SESSION = "SELECT session_id, uuid FROM evaluation_runs WHERE id = ?"


@dataclass(frozen=True, slots=True)
class RecordedBatch:
    """A batch that is not read.

    Args:
        row: Its columns by name, the keys of its calls as a mapping.
        answered: Those keys of which an answer is on record.
    """

    row: Mapping[str, Any]
    answered: frozenset[str]

    @property
    def waiting(self) -> int:
        """How many of its calls have no answer on record."""
        return len(self.row["keys"].keys() - self.answered)


def open_batches(path: Path, session_id: str) -> list[RecordedBatch]:
    """Return the batches of a session that are not read, the newest first.

    Raises:
        StoreError: The file cannot be read.
    """
    if holds_nothing(path):
        return []
    with reading(path) as conn:
        rows: list[dict[str, Any]] = [*named_rows(conn.execute(_OPEN, (session_id,)))]
        answered = (
            [str(name).partition("-") for (name,) in conn.execute(_ANSWERED, (session_id,))] if rows else []
        )
    for row in rows:
        keys = json.loads(row["keys"])
        row["keys"] = keys if isinstance(keys, dict) else {}
    return [
        RecordedBatch(row, frozenset(key for token, _, key in answered if token == row["token"]))
        for row in rows
    ]


def session_and_uuid(path: Path, run_id: int) -> tuple[str, str]:
    """Return the session of a run, and the UUID of the run.

    Raises:
        StoreError: The file cannot be read.
    """
    with reading(path) as conn:
        session_id, uuid = conn.execute(_SESSION, (run_id,)).fetchone()
    return str(session_id), str(uuid)
