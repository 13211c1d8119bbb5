"""Forms of results files that this version reads: any other is refused in one sentence, and left as it is."""

from __future__ import annotations

import contextlib
import sqlite3
from pathlib import Path

from pytest_helmbench.store.fault import EmptyStoreError, StoreError, store_error
from pytest_helmbench.store.newest_form import migration_names
from pytest_helmbench.store.reading import has_table, is_empty, opened

__all__ = ["check_form"]

_APPLIED = "SELECT name FROM _sqlite_migrations WHERE migration_set = 'helmbench' ORDER BY id"
_OLDEST = "keep_unknown_costs"
"""The step before which queries of today lack columns; of what came later, readers go without."""


def check_form(path: Path) -> None:
    """See that a results file can be read.

    Raises:
        StoreError: It is missing, no results file, or of a version too old or too new.
    """
    with contextlib.closing(opened(path)) as conn:
        if is_empty(conn):
            raise EmptyStoreError(path)
        try:
            is_ours = has_table(conn, "evaluation_runs") and has_table(conn, "_sqlite_migrations")
            applied = [name for (name,) in conn.execute(_APPLIED)] if is_ours else []
        except sqlite3.Error as error:
            raise store_error(path, error) from error
    if not applied:
        raise StoreError(
            path,
            "its tables are not those of pytest-helmbench",
            "give the file of a run with --helmbench-db=PATH",
        )
    unknown = [name for name in applied if name not in migration_names()]
    if unknown:
        raise StoreError(
            path,
            f"written by a newer version of pytest-helmbench (unknown: {', '.join(unknown)})",
            "update pytest-helmbench",
        )
    if _OLDEST not in applied:
        raise StoreError(
            path,
            f"written by an older version of pytest-helmbench (lacks: {_OLDEST})",
            "the next session or rescore that writes to it brings it up to date; looking at it changes nothing",
        )
