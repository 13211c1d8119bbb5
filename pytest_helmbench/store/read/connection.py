"""Connections to a results file for its readers, while a session may be writing it.

In functions of this room `path` is a results file and `run_id` an `evaluation_runs.id`. They raise `StoreError` where
the file is missing, damaged, of another version, or of another program.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.store.fault import FAULTS, EmptyStoreError, StoreError, store_error
from pytest_helmbench.store.schema import check_form

_MOST_STEPS = 10**9


@contextlib.contextmanager
def reading(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a results file to read it; a query that takes a billion steps, as none of ours does, is given up.

    Raises:
        StoreError: The file is missing, no results file, of another version, or damaged.
        EmptyStoreError: It holds nothing at all.
    """
    with contextlib.closing(opened(path)) as conn:
        conn.set_progress_handler(lambda: True, _MOST_STEPS)
        try:
            yield conn
        except FAULTS as error:
            raise store_error(path, error) from error


def opened(path: Path) -> sqlite3.Connection:
    """Return a connection that reads a results file; it never creates one, and never writes a row.

    It may be used on another thread than this one.

    Raises:
        StoreError: See `reading`.
        EmptyStoreError: It holds nothing at all.
    """
    if not path.exists():
        raise StoreError(path, "there is no such database", "name the results file with --helmbench-db=PATH")
    try:
        with contextlib.ExitStack() as undo:
            # Opened read-only, the last reader could not tidy up the journal that it has made.
            uri = f"{path.resolve().as_uri()}?mode=rw"
            conn = sqlite3.connect(uri, uri=True, timeout=30, check_same_thread=False)
            undo.callback(conn.close)
            conn.execute("PRAGMA query_only = ON")
            if not check_form(conn, path):
                raise EmptyStoreError(path)
            undo.pop_all()
            return conn
    except FAULTS as error:
        raise store_error(path, error) from error


def holds_nothing(path: Path) -> bool:
    """Return whether there is no file, or one without a table, as of a session that was killed at once.

    Raises:
        StoreError: The file cannot be opened, or is of another program.
    """
    if not path.exists():
        return True
    try:
        opened(path).close()
    except EmptyStoreError:
        return True
    return False
