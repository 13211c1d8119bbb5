"""Read-only connections to a results file, while a session may be writing it."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Collection, Iterator
from pathlib import Path

from pytest_helmbench.store.damaged_values import MALFORMED, damage_in
from pytest_helmbench.store.fault import EmptyStoreError, StoreError, is_of_a_value, store_error

__all__ = [
    "damage_of",
    "damage_told",
    "has_table",
    "holds_nothing",
    "is_empty",
    "opened",
    "reading",
    "with_known_forgeries",
    "with_known_judges",
    "with_known_models",
]


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a results file to read it.

    Raises:
        StoreError: The file is missing or no results file, or holds a value that no session has written.
    """
    with contextlib.closing(opened(path)) as conn:
        try:
            yield conn
        except (sqlite3.Error, *MALFORMED) as error:
            if isinstance(error, sqlite3.Error) and not is_of_a_value(error):
                raise (EmptyStoreError(path) if is_empty(conn) else store_error(path, error)) from error
            damage = damage_in(conn, path)
            if damage is None and isinstance(error, sqlite3.Error):
                damage = store_error(path, error)
            if damage is None:
                raise  # a fault of ours
            raise damage from error


def opened(path: Path) -> sqlite3.Connection:
    """Return a connection that reads a results file; it never creates one, and never writes a row.

    Raises:
        StoreError: The file is missing or cannot be opened.
    """
    if not path.exists():
        raise StoreError(path, "there is no such database", "name the results file with --helmbench-db=PATH")
    try:
        # Opened read-only, the last reader could not tidy up the journal that it has made.
        conn = sqlite3.connect(f"{path.resolve().as_uri()}?mode=rw", uri=True, timeout=30)
    except sqlite3.Error as error:
        raise store_error(path, error) from error
    try:
        conn.execute("PRAGMA query_only = ON")
    except sqlite3.Error as error:
        conn.close()
        raise store_error(path, error) from error
    return conn


def is_empty(conn: sqlite3.Connection) -> bool:
    """Return whether a file holds no table of anybody."""
    try:
        return conn.execute("SELECT 1 FROM sqlite_master LIMIT 1").fetchone() is None
    except sqlite3.Error:
        return False


def holds_nothing(path: Path) -> bool:
    """Return whether a file that exists holds no table, as one whose first session was killed at once.

    Raises:
        StoreError: The file cannot be opened.
    """
    with contextlib.closing(opened(path)) as conn:
        return is_empty(conn)


def damage_of(path: Path, tables: Collection[str] = ()) -> StoreError | None:
    """Return what is wrong with the values of a results file, the first ten by row and column; None for a sound one.

    Args:
        path: Of the file; one that is not there is sound.
        tables: Where to look; all of them when empty.

    Raises:
        StoreError: The file cannot be read at all.
    """
    if not path.is_file():
        return None
    with reading(path) as conn:
        return damage_in(conn, path, tables)


@contextlib.contextmanager
def damage_told(path: Path) -> Iterator[None]:
    """Tell of a damaged results file where whoever reads it stumbles over a value.

    Raises:
        StoreError: The file is damaged. Any other error goes on as it is: it is a fault of ours.
    """
    try:
        yield
    except MALFORMED as error:
        damage = damage_of(path)
        if damage is None:
            raise
        raise damage from error


def has_table(conn: sqlite3.Connection, name: str) -> bool:
    """Return whether a file has a table: readers have no right to migrate, so an older file may lack it."""
    found = conn.execute("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?", (name,))
    return found.fetchone() is not None


def with_known_judges(conn: sqlite3.Connection, statement: str) -> str:
    """Return a statement over `calls` as this file can run it: an older one does not say which judge was asked."""
    return _with_column(conn, statement, "calls", "judge")


def with_known_models(conn: sqlite3.Connection, statement: str) -> str:
    """Return a statement over `responses` likewise: an older file does not say who gave them."""
    return _with_column(conn, statement, "responses", "asked")


def with_known_forgeries(conn: sqlite3.Connection, statement: str) -> str:
    """Return a statement over `evaluations` likewise: an older file does not say which verdicts might be forged."""
    return _with_column(conn, statement, "evaluations", "in_process")


def _with_column(conn: sqlite3.Connection, statement: str, table: str, column: str) -> str:
    found = conn.execute("SELECT 1 FROM pragma_table_info(?) WHERE name = ?", (table, column)).fetchone()
    return statement if found is not None else statement.replace(f"{table}.{column}", "NULL")
