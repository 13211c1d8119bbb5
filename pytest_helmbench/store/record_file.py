"""The open results file of a writer: its jobs, transactions and leases, and the file beside it where it goes on."""

from __future__ import annotations

import sqlite3
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import TypeVar

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import AttemptRecord, Event, ResultRecord, RunStatement
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
from pytest_helmbench.store.run_rows import RunTotals, write_totals


@dataclass(frozen=True, slots=True)
class Closing:
    """The end of a run."""

    run_id: int
    totals: RunTotals


@dataclass(frozen=True, slots=True)
class Happened:
    """An event of a run that belongs to no result."""

    run_id: int
    event: Event


@dataclass(frozen=True, slots=True)
class Stated:
    """What a kind makes of a run."""

    run_id: int
    statement: RunStatement


@dataclass(frozen=True, slots=True)
class Sent:
    """A call that is about to go, with what the budget has reserved for it.

    Args:
        number: Of the call, in its session's process.
        run_id: `evaluation_runs.id`.
        code: Case code.
        reserved_usd: What it may cost.
    """

    number: int
    run_id: int
    code: str
    reserved_usd: float


@dataclass(frozen=True, slots=True)
class Returned:
    """A call that is out no more.

    Args:
        number: Of the call.
    """

    number: int


@dataclass(frozen=True, slots=True)
class Beat:
    """Asks for a heartbeat, nothing else."""


class Task:
    """A question that its asker waits for.

    Args:
        action: Run inside a transaction; may run again after a rollback.
    """

    __slots__ = ("_answer", "action")

    def __init__(self, action: Callable[[sqlite3.Connection], tuple[int, ...]]) -> None:
        self.action = action
        self._answer: tuple[int, ...] | None = None

    @property
    def answer(self) -> tuple[int, ...] | None:
        """What the action returned; None until its transaction is on disk."""
        return self._answer

    def settle(self, answer: tuple[int, ...]) -> None:
        """Take the answer: the transaction is on disk."""
        self._answer = answer


_Kind = TypeVar("_Kind")
Record = AttemptRecord | ResultRecord | Happened | Stated
Job = Record | Closing | Beat | Task | Sent | Returned


def is_loss(job: Job) -> bool:
    """Return whether something is lost with a job: a reply, a verdict, what a kind has said.

    That a case was not asked, or a call not answered, is no loss: nothing was paid for it, and it can be asked again.
    """
    if isinstance(job, AttemptRecord):
        return job.response_body is not None
    if isinstance(job, ResultRecord):
        return job.outcome.judged
    return isinstance(job, Happened | Stated)


def of_kind(kind: type[_Kind], jobs: Sequence[Job]) -> list[_Kind]:
    """Return the jobs of one kind, in the order they came."""
    return [job for job in jobs if isinstance(job, kind)]


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

    def write(self, jobs: Sequence[Job], runs: RunsInFile) -> None:
        """Write jobs in one transaction, and the heartbeat with it when that is due.

        A result only refers to calls that came before it, a closing to results, a call that has returned to one
        that was sent: so all of one kind go in together.

        Raises:
            StoreError: A run was taken over, or the file is gone and nothing can be written beside it.
            sqlite3.Error: It cannot be written.
        """
        now_s = self._now()
        beats = bool(runs.leased) and abs(now_s - self._renewed_s) >= HEARTBEAT_S
        if not self._place.is_kept:
            self.go_on_beside("was deleted, moved or replaced while it was written")
        conn, tables, results, tasks = (
            self._conn,
            self._tables,
            of_kind(ResultRecord, jobs),
            of_kind(Task, jobs),
        )
        with transaction(conn):
            self.leases.check(conn, runs.leased, self.path)
            _write_sent(conn, self.leases.owner, of_kind(Sent, jobs), of_kind(Returned, jobs))
            replies = write_attempts(conn, tables, of_kind(AttemptRecord, jobs), runs.continued)
            if results:
                write_results(conn, tables, results, runs.catalogues, ChainMap(replies, self._replies))
            for happened in of_kind(Happened, jobs):
                write_event(conn, tables, happened.run_id, happened.event)
            for stated in of_kind(Stated, jobs):
                write_run_statement(conn, stated.run_id, stated.statement)
            for closing in of_kind(Closing, jobs):
                write_totals(conn, closing.run_id, closing.totals)
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


def _write_sent(
    conn: sqlite3.Connection, owner: str, sent: Iterable[Sent], returned: Iterable[Returned]
) -> None:
    """Write which calls go when this is on disk, and take out those that have returned."""
    conn.executemany(
        "INSERT INTO sent_calls (owner, number, run_id, code, reserved_usd) VALUES (?, ?, ?, ?, ?)",
        [(owner, call.number, call.run_id, call.code, call.reserved_usd) for call in sent],
    )
    conn.executemany(
        "DELETE FROM sent_calls WHERE owner = ? AND number = ?", [(owner, call.number) for call in returned]
    )
