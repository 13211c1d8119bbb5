"""The results file itself: opened for its writer, transactions."""

from __future__ import annotations

import contextlib
import itertools
import shlex
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

from pytest_helmbench.store.fault import StoreError, is_locked, store_error
from pytest_helmbench.store.schema import check_form, create_tables

_RECOVERED = "helmbench-recovered"


class FilePlace:
    """Where an open results file stands with its log, and whether they still do."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._parts = [path.with_name(f"{path.name}{suffix}") for suffix in ("", "-wal", "-shm")]
        self._seen: dict[Path, _Form] = {}
        self.note()

    @property
    def is_kept(self) -> bool:
        """Whether the open file and its log still stand there, no shorter than they were noted to be."""
        forms = {path: _form(path) for path in self._seen}
        if any(found is None or found[:2] != self._seen[path][:2] for path, found in forms.items()):
            return False
        if all(found is None or found >= self._seen[path] for path, found in forms.items()):
            return True
        # Another program may have folded the log in, or tidied up.
        is_whole = _is_whole(self.path)
        if is_whole:
            self._seen.clear()
            self.note()
        return is_whole

    def note(self) -> None:
        """Note how the file and its log stand after a transaction; SQLite makes the log with the first one."""
        for path in self._parts:
            found, seen = _form(path), self._seen.get(path)
            if found is not None and (seen is None or (found[:2] == seen[:2] and found > seen)):
                self._seen[path] = found

    def recovered(
        self, conn: sqlite3.Connection, what: str, busy_timeout_s: float
    ) -> tuple[sqlite3.Connection, FilePlace, StoreError]:
        """Write all that an open file holds, whatever stands at its place, to a new one beside it, and open that.

        Args:
            what: Has happened to it, for people.

        Returns:
            The new file, its place, and what has happened, for people.

        Raises:
            StoreError: It cannot be written.
        """
        what = f"{self.path.name} {what}"
        try:
            beside = self._free_path()
            with contextlib.closing(sqlite3.connect(beside)) as copy:
                conn.backup(copy)
            if not _is_whole(beside):
                hint = (
                    f"`sqlite3 {shlex.quote(str(beside))} .recover` saves what is readable; start a new run"
                )
                raise StoreError(self.path, f"{what}, and a part of it is lost", hint)
            opened = open_database(beside, busy_timeout_s)
        except (sqlite3.Error, OSError) as error:
            hint = "what was not on disk by then is lost; start a new run"
            raise StoreError(
                self.path, f"{what}, and nothing could be saved beside it ({error})", hint
            ) from error
        again = f"--helmbench-db={shlex.quote(str(beside))} --helmbench-resume"
        hint = f"all that was answered is in {beside}: go on with {again}"
        return opened, FilePlace(beside), StoreError(self.path, what, hint)

    def _free_path(self) -> Path:
        for number in itertools.count(1):
            name = f"{_RECOVERED}{'' if number == 1 else f'-{number}'}.db"
            with contextlib.suppress(FileExistsError):
                self.path.with_name(name).touch(exist_ok=False)
                break
        return self.path.with_name(name)

    def leave(self, conn: sqlite3.Connection) -> None:
        """Close the connection to a file that was displaced, and take its log away from what stands there now.

        SQLite leaves the log of a file that has moved, and a reader of another file at its place would read it.
        """
        file, *log = self._parts
        is_kept = self._still_is(file)
        conn.close()
        for path in () if is_kept else log:
            if self._still_is(path):
                path.unlink(missing_ok=True)

    def _still_is(self, path: Path) -> bool:
        found = _form(path)
        return found is not None and found[:2] == self._seen.get(path, ())[:2]


_Form: TypeAlias = tuple[int, int, int]
"""Device and number of a file, which name it apart from its path, and its size in bytes."""


def _form(path: Path) -> _Form | None:
    try:
        stat = path.stat()
    except OSError:
        return None
    return stat.st_dev, stat.st_ino, stat.st_size


def _is_whole(path: Path) -> bool:
    """Return whether a results file can be read by who opens it now."""
    try:
        with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=rw", uri=True)) as conn:
            return check_form(conn, path) and conn.execute("PRAGMA quick_check(1)").fetchone() == ("ok",)
    except (sqlite3.Error, StoreError):
        return False


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


def open_database(path: Path, busy_timeout_s: float) -> sqlite3.Connection:
    """Open a results file for one writer; create it where there is none.

    Raises:
        StoreError: It is of another version, or of another program.
        sqlite3.Error: It cannot be used.
    """
    # The connection is made here, so that its errors are the caller's, and used by the writer only.
    conn = sqlite3.connect(path, timeout=busy_timeout_s, isolation_level=None, check_same_thread=False)
    try:
        check_form(conn, path)
        # First of all: a file that is cut short later has all that it held in its log, tables too.
        _write_ahead(conn, busy_timeout_s)
        with transaction(conn):  # also finds out whether the file can be written at all
            if not check_form(conn, path):
                create_tables(conn)
        conn.execute("PRAGMA synchronous = NORMAL")
        conn.execute("PRAGMA foreign_keys = ON")
    except BaseException:
        conn.close()
        raise
    return conn


@contextlib.contextmanager
def writing(path: Path) -> Iterator[sqlite3.Connection]:
    """Open a results file that this process does not write otherwise, for one transaction.

    Raises:
        StoreError: It cannot be written.
    """
    try:
        with contextlib.closing(open_database(path, 30.0)) as conn, transaction(conn):
            yield conn
    except sqlite3.Error as error:
        raise store_error(path, error) from error


def _write_ahead(conn: sqlite3.Connection, busy_timeout_s: float) -> None:
    """Switch to the write-ahead log. SQLite does not wait here for another process that opens the same new file."""
    until = time.monotonic() + busy_timeout_s
    while True:
        try:
            conn.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if not is_locked(error) or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return
