"""Errors of the database file, in a sentence and a hint."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from pytest_helmbench.core.problem import HelmbenchError

_PRIMARY = 0xFF  # the low byte of an extended result code is its class


class StoreError(HelmbenchError):
    """The database cannot be read or written.

    Args:
        problem: What is wrong, with SQLite's own words where it has some.
    """

    def __init__(self, path: Path, problem: str, hint: str) -> None:
        self.path = path
        self.problem = problem
        self.hint = hint
        super().__init__(f"{path}: {problem}\n  hint: {hint}")


class EmptyStoreError(StoreError):
    """The file holds no table at all: its first session was killed before it wrote one."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            path, "holds no run yet", "pytest benchmark --helmbench-model=baseline/lexical makes one"
        )


def is_locked(error: sqlite3.Error) -> bool:
    """Return whether another process holds the write lock, so that waiting may help."""
    return _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)


def store_error(path: Path, error: sqlite3.Error | MemoryError) -> StoreError:
    """Return SQLite's error as one that says what to do."""
    problem, hint = _ADVICE.get(_code(error), ("the database failed", "look at the words of SQLite above"))
    return StoreError(path, f"{problem} ({error or type(error).__name__})", hint)


FAULTS = (sqlite3.Error, MemoryError)
"""Errors that SQLite raises."""


def _code(error: sqlite3.Error | MemoryError) -> int:
    if isinstance(error, MemoryError):
        return sqlite3.SQLITE_NOMEM
    code: int = getattr(error, "sqlite_errorcode", 0)  # absent where the Python module itself complains
    return code & _PRIMARY


FOREIGN_TABLES = (
    "its tables are not those of pytest-helmbench",
    "give the file of a run, or a new one, with --helmbench-db=PATH",
)
_READ_ONLY = (
    "the file or its folder cannot be written",
    "SQLite writes two more files beside the database; give a writable place with --helmbench-db=PATH",
)
_NO_ROOM = (
    "the disk failed or is full",
    "what was stored before is intact; make room and continue with --helmbench-resume",
)
_ADVICE = {
    sqlite3.SQLITE_ERROR: FOREIGN_TABLES,
    sqlite3.SQLITE_NOTADB: (
        "not a SQLite database",
        "give another file with --helmbench-db=PATH; this one was left as it is",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the file cannot be opened or created",
        "the folder must exist and be writable; give another place with --helmbench-db=PATH",
    ),
    sqlite3.SQLITE_READONLY: _READ_ONLY,
    sqlite3.SQLITE_PERM: _READ_ONLY,
    sqlite3.SQLITE_BUSY: (
        "another process holds the write lock",
        "close the program that has a transaction open, or give another file with --helmbench-db=PATH",
    ),
    sqlite3.SQLITE_FULL: _NO_ROOM,
    sqlite3.SQLITE_IOERR: _NO_ROOM,
    sqlite3.SQLITE_INTERRUPT: (
        "a query took too many steps",
        "give the file as it was written: no run is so large",
    ),
    sqlite3.SQLITE_NOMEM: (
        "there is not enough memory",
        "what was stored before is intact; with more memory, go on with --helmbench-resume",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the database is damaged",
        "move the file away and start a new one; `sqlite3 FILE .recover` saves what is readable",
    ),
    sqlite3.SQLITE_CONSTRAINT: (
        "a row contradicts the rows it refers to",
        "a row and the file do not belong together; this is a fault of the program, please report it",
    ),
}
