"""The values of a merged file held to what their columns may hold: SQLite lets anything stand anywhere."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pytest_helmbench.store.damaged_values import demands
from pytest_helmbench.store.fault import StoreError

__all__ = ["check_values"]

_LARGEST_ID = 2**53  # behind it there is no room for what a session adds


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
        odd = [f"NOT ({demand})" for column in columns for demand, _ in demands(table, *column)]
        if ("id", "INTEGER") in columns:
            odd.append(f"id NOT BETWEEN 1 AND {_LARGEST_ID}")
        if (
            conn.execute(f"SELECT 1 FROM main.{table} WHERE {' OR '.join(odd)} LIMIT 1").fetchone()
            is not None
        ):
            raise StoreError(
                path,
                f"the shards hold values that {table} cannot have",
                "merge them one by one to find out which file it is; it was not written by pytest-helmbench",
            )
