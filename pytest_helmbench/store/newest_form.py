"""The newest form of a results file: which migrations make it, and the file of SQL by which a new one gets it at once.

`newest_form.sql` is made of the migrations in `schema.py`, which only files of older versions need.
"""

from __future__ import annotations

import functools
import sqlite3
from pathlib import Path

__all__ = ["applied_migrations", "create_newest", "migration_names"]

_FILE = Path(__file__).with_name("newest_form.sql")
_MIGRATION = "-- migration: "
_BETWEEN = ";\n\n"
_KEEP_NAME = """INSERT INTO _sqlite_migrations (migration_set, name, applied_at)
    VALUES ('helmbench', ?, strftime('%Y-%m-%d %H:%M:%f000+00:00', 'now'))"""
_APPLIED = "SELECT name FROM _sqlite_migrations WHERE migration_set = 'helmbench' ORDER BY rowid"


def migration_names() -> tuple[str, ...]:
    """Return the names of all migrations that this version has, in order."""
    return tuple(
        line.removeprefix(_MIGRATION) for line in _text().splitlines() if line.startswith(_MIGRATION)
    )


def applied_migrations(conn: sqlite3.Connection) -> tuple[str, ...] | None:
    """Return the names of the migrations that made a file, in order; None where it holds nothing at all."""
    tables = {name for (name,) in conn.execute("SELECT name FROM sqlite_master")}
    if not tables:
        return None
    if "_sqlite_migrations" not in tables:
        return ()
    return tuple(name for (name,) in conn.execute(_APPLIED))


def create_newest(conn: sqlite3.Connection) -> None:
    """Make all tables, indexes and views in an empty file; inside the caller's transaction."""
    # Statement by statement: `executescript` would end that transaction.
    for statement in _text().split(_BETWEEN):
        conn.execute(statement)
    conn.executemany(_KEEP_NAME, [(name,) for name in migration_names()])


@functools.cache
def _text() -> str:
    return _FILE.read_text(encoding="utf-8")
