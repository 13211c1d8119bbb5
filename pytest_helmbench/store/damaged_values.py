"""Values of a results file that pytest-helmbench has never written there: what a hand or another program has left.

SQLite keeps any text in a column of numbers. To look at each value when it is read would cost every command more than
its work, so the file is searched when something in it could not be used.
"""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.store.fault import StoreError

__all__ = ["RESUMED", "RUNS", "UNUSABLE", "damage_in"]

RESUMED = ("evaluation_runs", "leases", "results", "scenarios")
"""The tables that a session reads before it goes on."""
RUNS = ("evaluation_runs",)
"""The table of which a new session reads what others have left."""

UNUSABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
"""What a stored value raises that is not what it should be."""

_MOST = 10
_FITTING = {
    "INTEGER": ("integer", "null"),
    "REAL": ("real", "integer", "null"),
    "TEXT": ("text", "null"),
    "BLOB": ("blob", "null"),
}
_JSON = {
    ("comparisons", "behaviours"): "array",
    ("evaluation_runs", "settings"): "object",
    ("evaluation_runs", "shard"): "object",
    ("events", "payload"): "object",
    ("leases", "process"): "object",
    ("pack_scores", "categories"): "array",
    ("requests", "body"): "object",
    ("scenarios", "evaluation"): "object",
}
_TIMES = "started_at", "completed_at", "received_at"
_KNOWN = {("results", "outcome"): tuple(Verdict)}


def damage_in(conn: sqlite3.Connection, path: Path, tables: Collection[str] = ()) -> StoreError | None:
    """Return what is wrong with the values of a results file, the first ten by row and column; None for a sound one.

    Args:
        conn: To the file.
        path: Of the file.
        tables: Where to look; all of them when empty.
    """
    found = list(itertools.islice(_wrong_values(conn, tables), _MOST + 1))
    if not found:
        return None
    more = "; and more" if len(found) > _MOST else ""
    return StoreError(
        path,
        f"it holds what pytest-helmbench has not written: {'; '.join(found[:_MOST])}{more}",
        "take back what has changed the file by hand, or use a copy from before",
    )


def _wrong_values(conn: sqlite3.Connection, tables: Collection[str]) -> Iterator[str]:
    named = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    for table in [name for (name,) in conn.execute(named) if not tables or name in tables]:
        for _, column, declared, *_ in conn.execute(
            "SELECT * FROM pragma_table_info(?)", (table,)
        ).fetchall():
            for where, what in _demands(table, column, declared):
                # Names come from the file, so they are quoted.
                statement = 'SELECT rowid FROM "{}" WHERE NOT ({}) LIMIT {}'
                name = table.replace('"', '""')
                for (row,) in conn.execute(statement.format(name, where, _MOST + 1)):
                    yield f"{table}.{column} of row {row} is no {what}"


def _demands(table: str, column: str, declared: str) -> Iterator[tuple[str, str]]:
    """Yield what holds for each value of a column, in SQL and in words; an unknown column may hold anything."""
    value = '"{}"'.format(column.replace('"', '""'))
    fitting = _FITTING.get(declared)
    if fitting is not None:
        yield f"typeof({value}) IN ({_listed(fitting)})", fitting[0]
    if (table, column) in _JSON:
        text, wanted = f"CAST({value} AS TEXT)", _JSON[table, column]
        is_wanted = f"CASE WHEN json_valid({text}) THEN json_type({text}) = '{wanted}' ELSE 0 END"
        yield f"{value} IS NULL OR {is_wanted}", f"JSON {wanted}"
    if column in _TIMES:
        yield f"{value} IS NULL OR (datetime({value}) IS NOT NULL AND {value} LIKE '____-__-__%')", "time"
    if (table, column) in _KNOWN:
        yield f"{value} IN ({_listed(_KNOWN[table, column])})", "known outcome"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(f"'{word}'" for word in words)
