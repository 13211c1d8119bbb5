"""The status of a run, by its process: one that was killed cannot say that it has been interrupted."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping

from pytest_helmbench.store.reading import has_table
from pytest_helmbench.store.run_rows import is_dead

__all__ = ["leases_of", "true_status"]

_Leases = Mapping[int, tuple[object, str]]


def leases_of(conn: sqlite3.Connection) -> _Leases:
    """Return who writes each run, and when it has said so last; a resumed run is written by another process."""
    if not has_table(conn, "leases"):
        return {}
    rows = conn.execute("SELECT run_id, process, renewed_at FROM leases")
    return {run_id: (json.loads(process), at) for run_id, process, at in rows}


def true_status(
    run_id: int, status: str, settings: str, heartbeat: str | None, leases: _Leases, now_s: float
) -> str:
    """Return the status of a run: as stored, but `interrupted` where its process is gone and nobody has said so.

    Args:
        run_id: Of the run.
        status: As stored.
        settings: JSON, with the process that opened it.
        heartbeat: When that was heard last, in a file from before leases.
        leases: Of the file.
        now_s: Seconds since the epoch.
    """
    if status != "running":
        return status
    process, heard = leases.get(run_id, (json.loads(settings).get("process"), heartbeat))
    return "interrupted" if is_dead(process, heard, now_s, 0.0) else status
