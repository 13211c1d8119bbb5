"""The values of a merged file held to the types of their columns: SQLite lets anything stand anywhere."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pytest_helmbench.store.fault import StoreError

__all__ = ["check_values"]

_FITTING = {
    "INTEGER": "'integer', 'null'",
    "REAL": "'real', 'integer', 'null'",
    "TEXT": "'text', 'null'",
    "BLOB": "'blob', 'text', 'null'",
}
_LARGEST_ID = 2**53  # behind it there is no room for what a session adds
_MOST = {
    **dict.fromkeys(("cost_usd", "reserved_usd", "latency_ms"), 10**12),
    **dict.fromkeys((f"{of}_tokens" for of in ("prompt", "completion", "cached", "reasoning")), 10**12),
}
"""The most that one row may say of what was used, by column; never less than nothing: it would be spent again."""
_KNOWN = (
    ("results", "outcome IN ('passed', 'failed', 'error', 'skipped')"),
    (
        "results",
        "repetition > 0 AND neutral IN (0, 1) AND abs(severity) < 1e6 AND difficulty BETWEEN 0 AND 1e6",
    ),
    ("evaluations", "passed IN (0, 1) AND credit BETWEEN 0 AND 1"),
    ("evaluations", "parse IS NULL OR parse IN ('strict', 'recovered', 'guessed')"),
    ("calls", "from_cache IN (0, 1) AND unanswered IN (0, 1) AND estimated IN (0, 1)"),
    ("scenarios", "json_valid(evaluation)"),
)


def check_values(conn: sqlite3.Connection, path: Path) -> None:
    """See that every value is of its column's type, and one of those that the column may hold.

    Raises:
        StoreError: One is not: a shard's file was made by something else.
    """
    tables = [
        name
        for (name,) in conn.execute(
            "SELECT name FROM main.sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\'"
        )
    ]
    for table in tables:
        columns = conn.execute("SELECT name, type FROM pragma_table_info(?, 'main')", (table,)).fetchall()
        odd = " OR ".join(f"typeof({name}) NOT IN ({_FITTING[kind]})" for name, kind in columns)
        odd += "".join(f" OR abs({name}) = 9e999" for name, kind in columns if kind == "REAL")
        odd += "".join(f" OR {name} < 0 OR {name} > {_MOST[name]}" for name, _ in columns if name in _MOST)
        if ("id", "INTEGER") in columns:
            odd += f" OR id NOT BETWEEN 1 AND {_LARGEST_ID}"
        _refuse(conn, table, odd, path)
    for table, fits in _KNOWN:
        _refuse(conn, table, f"NOT ({fits})", path)


def _refuse(conn: sqlite3.Connection, table: str, odd: str, path: Path) -> None:
    if conn.execute(f"SELECT 1 FROM main.{table} WHERE {odd} LIMIT 1").fetchone() is not None:
        raise StoreError(
            path,
            f"the shards hold values that {table} cannot have",
            "merge them one by one to find out which file it is; it was not written by pytest-helmbench",
        )
