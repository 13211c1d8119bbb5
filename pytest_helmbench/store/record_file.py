"""The open results file of a writer: its transactions, its leases, and the file beside it where it goes on."""

from __future__ import annotations

import sqlite3
from collections import ChainMap
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.batch import Batch
from pytest_helmbench.store.catalogue import CatalogueIds
from pytest_helmbench.store.database_file import FilePlace, transaction
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.leases import Leases
from pytest_helmbench.store.recorded_rows import (
    RecordTables,
    write_attempts,
    write_event,
    write_results,
    write_run_statement,
)
from pytest_helmbench.store.run_rows import write_totals
from pytest_helmbench.store.sent_calls import write_sent

HEARTBEAT_S = 10.0
_LONGEST_LOOK_S = 0.5  # for a lock at a time: between two of them the writer hears that nobody waits any more


@dataclass(frozen=True, slots=True)
class RunsInFile:
    """The runs that a writer has opened in its file.

    Args:
        catalogues: Ids of what they refer to, by run.
        open: Those that have not ended.
        continued: Those that other sessions of the same name have begun.
        leased: Ids of the sessions that are its own.
    """

    catalogues: Mapping[int, CatalogueIds] = field(default_factory=dict)
    open: frozenset[int] = frozenset()
    continued: frozenset[int] = frozenset()
    leased: frozenset[str] = frozenset()


class RecordFile:
    """Writes batches; used by one thread.

    Args:
        conn: To the open file.
        path: Its path.
        busy_timeout_s: See `Store.open`.
        now: Seconds since the epoch.
    """

    def __init__(
        self, conn: sqlite3.Connection, path: Path, busy_timeout_s: float, now: Callable[[], float]
    ) -> None:
        self.path = path
        self.displaced: StoreError | None = None
        self.leases = Leases(now)
        self._now = now
        self._busy_timeout_s = busy_timeout_s
        self._place = FilePlace(path)
        self._replies: dict[str, str] = {}
        self._renewed_s = now()
        self._use(conn)

    @property
    def lease_age_s(self) -> float:
        """How long ago the leases were renewed."""
        return abs(self._now() - self._renewed_s)

    def write(self, batch: Batch, runs: RunsInFile) -> None:
        """Write a batch in one transaction, and the heartbeat with it when that is due.

        Raises:
            StoreError: A run was taken over, or the file is gone and nothing can be written beside it.
            sqlite3.Error: It cannot be written.
        """
        now_s = self._now()
        beats = bool(runs.leased) and abs(now_s - self._renewed_s) >= HEARTBEAT_S
        if not self._place.is_kept:
            self.go_on_beside("was deleted, moved or replaced while it was written")
        tables = self._tables
        with transaction(self._conn):
            self.leases.check(self._conn, runs.leased, self.path)
            write_sent(self._conn, self.leases.owner, batch.sent, batch.returned)
            replies = write_attempts(self._conn, tables, batch.attempts, runs.continued)
            if batch.results:
                known = ChainMap(replies, self._replies)
                write_results(self._conn, tables, batch.results, runs.catalogues, known)
            for happened in batch.happened:
                write_event(self._conn, tables, happened.run_id, happened.event)
            for stated in batch.stated:
                write_run_statement(self._conn, stated.run_id, stated.statement)
            for closing in batch.closings:
                write_totals(self._conn, closing.run_id, closing.totals)
            answers = [task.action(self._conn) for task in batch.tasks]
            if beats:
                self.leases.renew(self._conn)
        self._place.has_log()
        # Only now is it true: a rolled back batch must leave no trace in memory either.
        if beats:
            self._renewed_s = now_s
        self._replies.update(replies)
        for result in batch.results:
            self._replies.pop(result.outcome.reply_key or "", None)
        for task, answer in zip(batch.tasks, answers, strict=True):
            task.settle(answer)

    def go_on_beside(self, what: str) -> None:
        """Save what the open file holds: its own place is somebody else's, or nobody's, or cannot be written.

        Args:
            what: Has happened to it, for people.

        Raises:
            StoreError: Nothing can be written beside it.
        """
        conn, place, displaced = self._place.recovered(self._conn, what, self._busy_timeout_s)
        self._place.leave(self._conn)
        self._place = place
        self._use(conn)
        self.displaced = displaced
        self.path = place.path

    def end(self, *, drop_leases: bool) -> None:
        """Fold the log into the file; give the runs back."""
        if drop_leases:
            self.leases.drop(self._conn)
        self._conn.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close the file."""
        self._conn.close()

    def _use(self, conn: sqlite3.Connection) -> None:
        self._conn, self._tables = conn, RecordTables(conn)
        self._conn.execute(f"PRAGMA busy_timeout = {int(min(self._busy_timeout_s, _LONGEST_LOOK_S) * 1000)}")
