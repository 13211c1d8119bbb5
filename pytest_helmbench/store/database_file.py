"""The results file itself: opened for its writer, transactions."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from sqlite_utils import Database

from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.schema import migrate, unknown_migrations

__all__ = ["open_database", "transaction"]


@contextlib.contextmanager
def transaction(conn: sqlite3.Connection) -> Iterator[None]:
    """All or nothing, with the write lock from the start: ids are read before rows are written."""
    conn.execute("BEGIN IMMEDIATE")
    try:
        yield
        conn.execute("COMMIT")
    except BaseException:
        if conn.in_transaction:  # a full disk has rolled it back already
            with contextlib.suppress(sqlite3.Error):
                conn.execute("ROLLBACK")
        raise


def open_database(path: Path, busy_timeout_s: float) -> Database:
    """Open a results file for one writer, create it or bring it to the newest form.

    Raises:
        StoreError: Its form is newer than this version.
        sqlite3.Error: It cannot be used.
    """
    # The connection is made here, so that its errors are the caller's, and used by the writer only.
    conn = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
    try:
        db = Database(conn, execute_plugins=False)
        with transaction(conn):  # also finds out whether the file can be written at all
            unknown = unknown_migrations(db)
            if unknown:
                raise StoreError(
                    path,
                    f"written by a newer version of pytest-helmbench (unknown: {', '.join(unknown)})",
                    "update pytest-helmbench, or give another file with --helmbench-db=PATH",
                )
            migrate(db)
        conn.execute("PRAGMA journal_mode = WAL")
        conn.execute("PRAGMA synchronous = NORMAL")
        conn.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        conn.close()
        raise
    return db
