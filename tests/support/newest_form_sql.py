"""`store/newest_form.sql`, made of the migrations.

`python tests/support/newest_form_sql.py` writes it; `tests/fast/store/test_newest_form.py` holds it to the migrations.
"""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from pytest_helmbench.store import newest_form
from pytest_helmbench.store.newest_form import applied_migrations
from pytest_helmbench.store.schema import migrate

__all__ = ["FILE", "make_older", "newest_form_sql", "objects_of"]

FILE = Path(newest_form.__file__).with_suffix(".sql")

_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY rowid"
_HEAD = "-- Made of the migrations in schema.py: python tests/support/newest_form_sql.py"


def newest_form_sql() -> str:
    """Return what all migrations make of an empty file, as SQL, headed by their names."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as conn:
        migrate(conn)
        names = applied_migrations(conn) or ()
        statements = [sql for _, _, _, sql in objects_of(conn)]
    head = [_HEAD, *(f"-- migration: {name}" for name in names)]
    return "\n".join(head) + "\n\n" + ";\n\n".join(statements) + "\n"


def objects_of(conn: sqlite3.Connection) -> list[tuple[str, str, str, str]]:
    """Return type, name, table and SQL of everything in a file, in the order in which it was made."""
    return conn.execute(_OBJECTS).fetchall()


def make_older(conn: sqlite3.Connection) -> None:
    """Undo the last migration of a file."""
    conn.execute("ALTER TABLE evaluation_runs DROP COLUMN benchmark_place")
    conn.execute("DELETE FROM _sqlite_migrations WHERE name = 'keep_benchmark_places'")


if __name__ == "__main__":
    FILE.write_text(newest_form_sql(), encoding="utf-8")
