"""The open results file of a writer: its jobs, transactions and leases, and the file beside it where it goes on."""

from __future__ import annotations

import sqlite3
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord
from pytest_helmbench.store.catalogue import CatalogueIds
from pytest_helmbench.store.database_file import FilePlace, transaction
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.leases import Leases
from pytest_helmbench.store.recorded_rows import RecordTables, write_attempts, write_results

Action: TypeAlias = Callable[[sqlite3.Connection], tuple[int, ...] | None]


class Task:
    """Something that is done with the file after the calls and results that came with it.

    Args:
        action: Run inside a transaction; may run again after a rollback.
        is_loss: Something is lost where it is not done.
        is_asked: Its asker waits for the answer.
    """

    __slots__ = ("action", "answer", "is_asked", "is_loss")

    def __init__(self, action: Action, *, is_loss: bool = False, is_asked: bool = False) -> None:
        self.action = action
        self.is_loss = is_loss
        self.is_asked = is_asked
        self.answer: tuple[int, ...] | None = None
        """What the action returned; None until its transaction is on disk."""


_Kind = TypeVar("_Kind")
Job = AttemptRecord | ResultRecord | Task


def is_loss(job: Job) -> bool:
    """Return whether something is lost with a job: a reply, a verdict, what a kind has said.

    That a case was not asked, or a call not answered, is no loss: nothing was paid for it, and it can be asked again.
    """
    if isinstance(job, AttemptRecord):
        return job.response_body is not None
    if isinstance(job, ResultRecord):
        return job.outcome.judged
    return job.is_loss


def of_kind(kind: type[_Kind], jobs: Sequence[Job]) -> list[_Kind]:
    """Return the jobs of one kind, in the order they came."""
    return [job for job in jobs if isinstance(job, kind)]


HEARTBEAT_S = 10.0
_LONGEST_LOOK_S = 0.5  # for a lock at a time: between two of them the writer hears that nobody waits any more


class RecordFile:
    """Writes batches; used by one thread, but for the facts on runs, which are set as a whole.

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
        self.catalogues: Mapping[int, CatalogueIds] = {}
        """Ids of what its runs refer to, by run."""
        self.continued: frozenset[int] = frozenset()
        """Runs that other sessions of the same name have begun."""
        self.leased: frozenset[str] = frozenset()
        """Ids of the sessions that are its own."""
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

    def take_up(
        self, sessions: Iterable[str], runs: Mapping[int, CatalogueIds] = {}, continued: Iterable[int] = ()
    ) -> None:
        """Have sessions and their runs for one's own from now on. From another thread than the writer's."""
        self.catalogues = {**self.catalogues, **runs}
        self.continued = self.continued.union(continued)
        self.leased = self.leased.union(sessions)

    def write(self, jobs: Sequence[Job]) -> None:
        """Write jobs in one transaction, and the heartbeat with it when that is due.

        A result only refers to calls that came before it, and a task to what came before it: so all of one kind go
        in together.

        Raises:
            StoreError: A run was taken over, or the file is gone and nothing can be written beside it.
            sqlite3.Error: It cannot be written.
        """
        now_s = self._now()
        beats = bool(self.leased) and abs(now_s - self._renewed_s) >= HEARTBEAT_S
        if not self._place.is_kept:
            self.go_on_beside("was deleted, moved or replaced while it was written")
        conn, tables = self._conn, self._tables
        results, tasks = of_kind(ResultRecord, jobs), of_kind(Task, jobs)
        with transaction(conn):
            self.leases.check(conn, self.leased, self.path)
            replies = write_attempts(conn, tables, of_kind(AttemptRecord, jobs), self.continued)
            if results:
                write_results(conn, tables, results, self.catalogues, ChainMap(replies, self._replies))
            answers = [task.action(conn) for task in tasks]
            if beats:
                self.leases.renew(conn)
        self._place.has_log()
        # Only now is it true: jobs that were rolled back must leave no trace in memory either.
        if beats:
            self._renewed_s = now_s
        self._replies.update(replies)
        for result in results:
            self._replies.pop(result.outcome.reply_key or "", None)
        for task, answer in zip(tasks, answers, strict=True):
            task.answer = answer

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
