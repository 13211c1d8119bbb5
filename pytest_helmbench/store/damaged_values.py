"""Values of a results file that pytest-helmbench has never written there: what a hand or another program has left.

SQLite keeps any text in a column of numbers. To look at each value when it is read would cost every command more than
its work, so the file is searched when something in it could not be used.
"""

from __future__ import annotations

import itertools
import sqlite3
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path

from pytest_helmbench.store.fault import StoreError

__all__ = ["MALFORMED", "RESUMED", "RUNS", "damage_in", "demands"]

RESUMED = ("evaluation_runs", "leases", "results", "scenarios")
"""The tables that a session reads before it goes on."""
RUNS = ("evaluation_runs",)
"""The table of which a new session reads what others have left."""

MALFORMED = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
    zlib.error,
)
"""What comes of values that no version of ours has written."""

_SHOWN = 10
_FITTING = {
    "INTEGER": ("integer", "null"),
    "REAL": ("real", "integer", "null"),
    "TEXT": ("text", "null"),
    "BLOB": ("blob", "text", "null"),
}
_MOST_USED = 10**12
"""The most that one row may say of what was used; never less than nothing: it would be spent again."""
_USED = (
    *("cost_usd", "reserved_usd", "latency_ms"),
    *(f"{of}_tokens" for of in ("prompt", "completion", "cached", "reasoning")),
)
_TIMES = ("started_at", "completed_at", "received_at")
_JSON = {
    ("comparisons", "behaviours"): "array",
    ("evaluation_runs", "settings"): "object",
    ("evaluation_runs", "shard"): "object",
    ("events", "payload"): "",  # a pack's own: of any kind
    ("leases", "process"): "object",
    ("pack_scores", "categories"): "array",
    ("requests", "body"): "object",
    ("scenarios", "evaluation"): "object",
}
_TRUTH = "IN (0, 1)"
_KNOWN = {
    ("results", "outcome"): "IN ('passed', 'failed', 'error', 'skipped')",
    ("results", "repetition"): "> 0",
    ("results", "neutral"): _TRUTH,
    ("results", "severity"): "BETWEEN -1e6 AND 1e6",
    ("results", "difficulty"): "BETWEEN 0 AND 1e6",
    ("evaluations", "passed"): _TRUTH,
    ("evaluations", "credit"): "BETWEEN 0 AND 1",
    ("evaluations", "parse"): "IN ('strict', 'recovered')",
    **dict.fromkeys((("calls", name) for name in ("from_cache", "unanswered", "estimated")), _TRUTH),
}


def damage_in(conn: sqlite3.Connection, path: Path, tables: Collection[str] = ()) -> StoreError | None:
    """Return what is wrong with the values of a results file, the first ten by row and column; None for a sound one.

    Args:
        conn: To the file.
        path: Of the file.
        tables: Where to look; all of them when empty.
    """
    found = list(itertools.islice(_wrong_values(conn, tables), _SHOWN + 1))
    if not found:
        return None
    more = "; and more" if len(found) > _SHOWN else ""
    return StoreError(
        path,
        f"it holds what pytest-helmbench has not written: {'; '.join(found[:_SHOWN])}{more}",
        "take back what has changed the file by hand, or use a copy from before",
    )


def _wrong_values(conn: sqlite3.Connection, tables: Collection[str]) -> Iterator[str]:
    named = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name"
    for table in [name for (name,) in conn.execute(named) if not tables or name in tables]:
        columns = conn.execute("SELECT name, type FROM pragma_table_info(?)", (table,)).fetchall()
        for column, kind in columns:
            for demand, what in demands(table, column, kind):
                rows = f"SELECT rowid FROM {_quoted(table)} WHERE NOT ({demand}) LIMIT {_SHOWN + 1}"
                for (row,) in conn.execute(rows):
                    yield f"{table}.{column} of row {row} is no {what}"


def demands(table: str, column: str, kind: str) -> Iterator[tuple[str, str]]:
    """Yield what holds for each value of a column, in SQL and in words; an unknown column may hold anything.

    Args:
        table: Its table.
        column: Its name; names may come from a file of somebody else's.
        kind: Its type, as declared.
    """
    value = _quoted(column)
    fitting = _FITTING.get(kind)
    if fitting is not None:
        yield f"typeof({value}) IN ({', '.join(map(repr, fitting))})", fitting[0]
    if kind == "REAL":
        yield f"abs({value}) <> 9e999", "finite number"
    if column in _USED:
        yield f"{value} BETWEEN 0 AND {_MOST_USED}", "amount"
    if column in _TIMES:
        yield f"{value} IS NULL OR (datetime({value}) IS NOT NULL AND {value} LIKE '____-__-__%')", "time"
    if (table, column) in _JSON:
        text, wanted = f"CAST({value} AS TEXT)", _JSON[table, column]
        is_wanted = f"json_type({text}) = '{wanted}'" if wanted else "1"
        sound = f"CASE WHEN json_valid({text}) THEN {is_wanted} ELSE 0 END"
        yield f"{value} IS NULL OR {sound}", f"JSON {wanted}".rstrip()
    if (table, column) in _KNOWN:
        yield f"{value} {_KNOWN[table, column]}", f"known {column}"


def _quoted(name: str) -> str:
    doubled = name.replace('"', '""')
    return f'"{doubled}"'
