"""The single writer of a session: a thread that alone knows the connection and writes as soon as it is free."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections import ChainMap
from collections.abc import Callable, Sequence
from pathlib import Path

from sqlite_utils import Database

from pytest_helmbench.core.outcome import AttemptRecord, Event, ResultRecord
from pytest_helmbench.core.statement import RunStatement
from pytest_helmbench.store.batch import Batch, Beat, Closing, Happened, Job, Stated, Task, is_loss
from pytest_helmbench.store.catalogue import CatalogueIds, write_benchmark, write_llm
from pytest_helmbench.store.database_file import FilePlace, open_database, transaction
from pytest_helmbench.store.fault import StoreError, is_locked, store_error
from pytest_helmbench.store.leases import LEASE_S, Leases, RunHeldError, seconds_since_boot
from pytest_helmbench.store.recorded_rows import (
    RecordTables,
    write_attempts,
    write_event,
    write_results,
    write_run_statement,
)
from pytest_helmbench.store.run_rows import (
    RunRecord,
    RunTotals,
    beat,
    interrupt_dead_runs,
    iso_time,
    reopen_run,
    settings_json,
    write_run,
    write_totals,
)

__all__ = ["RunRecord", "RunTotals", "Store", "StoreError"]

_BATCH = 1_000  # jobs in one transaction: bounds how long other sessions wait for the lock
_HEARTBEAT_S = 10.0
_OLD_LEASE_S = LEASE_S - 10.0
_SLICE_S = 0.5  # waits are cut in slices, since Windows hears no Ctrl-C inside one


class Store:
    """One results file of one session.

    `record_*`, `close_run` and `heartbeat` only queue. After the first failure everything is dropped and
    counted, and what was stored before stays readable.
    """

    def __init__(
        self,
        db: Database,
        path: Path,
        *,
        busy_timeout_s: float,
        retry_pauses_s: Sequence[float],
        now: Callable[[], float],
    ) -> None:
        self.path = path
        """Of the file; of the one beside it once it was displaced."""
        self._busy_timeout_s = busy_timeout_s
        self._conn = db.conn
        self._tables = RecordTables(db.conn)
        self._retry_pauses_s = tuple(retry_pauses_s)
        self._now = now
        self._wake = threading.Condition()
        # Guarded by _wake:
        self._jobs: list[Job] = []
        self._accepted = 0
        self._settled = 0
        self._closing = False
        self._fault: StoreError | None = None
        self._displaced: StoreError | None = None
        self._dropped = 0
        self._on_settled: Callable[[], object] = _nothing
        self._catalogues: dict[int, CatalogueIds] = {}
        self._open_runs: frozenset[int] = frozenset()
        self._leased: frozenset[int] = frozenset()
        # Only the writer's own:
        self._place = FilePlace(path)
        self._leases = Leases(now)
        self._replies: dict[str, int] = {}
        self._last_beat_s = 0.0
        self._renewed_s = seconds_since_boot()
        self._thread = threading.Thread(target=self._run, name="helmbench-store", daemon=True)
        self._thread.start()

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        busy_timeout_s: float = 30.0,
        retry_pauses_s: Sequence[float] = (0.2, 1.0, 3.0),
        now: Callable[[], float] = time.time,
    ) -> Store:
        """Open a results file, create it or bring it to the newest form, and start its writer.

        Args:
            path: The file; its folder must exist.
            busy_timeout_s: How long to wait for another process's transaction.
            retry_pauses_s: Pauses before a batch is tried again that found the file locked.
            now: Seconds since the epoch.

        Raises:
            StoreError: The file is no database, not writable, locked, or newer than this version.
        """
        try:
            db = open_database(path, busy_timeout_s)
            return cls(db, path, busy_timeout_s=busy_timeout_s, retry_pauses_s=retry_pauses_s, now=now)
        except sqlite3.Error as error:
            raise store_error(path, error) from error

    @property
    def fault(self) -> StoreError | None:
        """The first failure to write; None while all is well."""
        with self._wake:
            return self._fault

    @property
    def displaced(self) -> StoreError | None:
        """That the file was deleted, moved or replaced; what comes is then written to another beside it."""
        with self._wake:
            return self._displaced

    def progress(self) -> tuple[int, int, StoreError | None]:
        """Return how much was queued, how much of that is on disk or dropped, and the first failure to write."""
        with self._wake:
            return self._accepted, self._settled, self._fault

    def listen(self, on_settled: Callable[[], object]) -> None:
        """Have somebody told on the writer's thread, after every transaction and after a fault."""
        with self._wake:
            self._on_settled = on_settled

    @property
    def dropped(self) -> int:
        """How many records a fault has cost."""
        with self._wake:
            return self._dropped

    def open_runs(self, session_id: str, runs: Sequence[RunRecord]) -> tuple[int, ...]:
        """Write the benchmarks, models and runs of a session and return the runs' ids in order.

        Raises:
            StoreError: They cannot be written.
            TypeError: A setting is no JSON type.
        """
        settings = [settings_json(run) for run in runs]
        opened: dict[int, CatalogueIds] = {}

        def write(conn: sqlite3.Connection) -> tuple[int, ...]:
            opened.clear()
            heartbeat_at = iso_time(self._now())
            for run, run_settings in zip(runs, settings, strict=True):
                codes = write_benchmark(conn, run.benchmark, run.codes)
                llm_id = write_llm(conn, run.model, run.provider, run.base_url)
                values = (session_id, codes.benchmark_id, llm_id, run_settings, heartbeat_at)
                if run.continues is None:
                    opened[write_run(conn, values, run)] = codes
                else:
                    opened[reopen_run(conn, run.continues, values, run)] = codes
            self._leases.take(conn, opened)
            return tuple(opened)

        run_ids = self._ask(write)
        with self._wake:
            self._catalogues = {**self._catalogues, **opened}
            self._open_runs = self._open_runs | opened.keys()
            self._leased = self._leased | opened.keys()
        return run_ids

    def take_session(self, run_id: int | None, *, take_over: bool) -> tuple[int, ...]:
        """Own the runs of a session that is to go on, and return their ids; none where there is no such session.

        Args:
            run_id: A run of it; None for the last session that has not finished.
            take_over: Whoever owns it now.

        Raises:
            RunHeldError: Another process owns one of them, and its lease has not run out.
            StoreError: They cannot be read or taken.
        """
        held: list[str] = []

        def take(conn: sqlite3.Connection) -> tuple[int, ...]:
            run_ids, sentence = self._leases.taken_session(conn, run_id, take_over=take_over)
            held[:] = [] if sentence is None else [sentence]
            return run_ids

        run_ids = self._ask(take)
        if held:
            raise RunHeldError(held[0])
        with self._wake:
            self._leased = self._leased | set(run_ids)
        return run_ids

    @property
    def lease_is_old(self) -> bool:
        """Whether so much of the lease is over that nothing should be sent before it is renewed."""
        return seconds_since_boot() - self._renewed_s > _OLD_LEASE_S

    def record_attempt(self, record: AttemptRecord) -> None:
        """Keep a call with its request and its reply."""
        self._put(record)

    def record_result(self, record: ResultRecord) -> None:
        """Keep a result with its evaluations; ignored when the case already has a judged one."""
        self._put(record)

    def record_event(self, run_id: int, event: Event) -> None:
        """Keep something that happened in a run and belongs to no result."""
        self._put(Happened(run_id, event))

    def record_statement(self, run_id: int, statement: RunStatement) -> None:
        """Keep what a kind makes of a run; the last word stands."""
        self._put(Stated(run_id, statement))

    def close_run(self, run_id: int, totals: RunTotals) -> None:
        """Give a run its end; counts and costs are taken from the rows."""
        self._put(Closing(run_id, totals))

    def heartbeat(self) -> None:
        """Say that the open runs are alive and renew their leases; the writer does so by itself every 10 s."""
        self._put(Beat())

    def mark_dead_runs_interrupted(self, *, silent_s: float = 60.0) -> tuple[int, ...]:
        """Mark runs of dead processes as interrupted and return their ids.

        Args:
            silent_s: Least age of the last heartbeat. A run whose process still lives is left alone at any
                age; where the process cannot be seen (another machine, Windows), 10 minutes of silence count.

        Raises:
            StoreError: They cannot be written.
        """
        return self._ask(lambda conn: interrupt_dead_runs(conn, self._now(), silent_s))

    def flush(self) -> None:
        """Wait until everything queued so far is on disk, or has been dropped because of a fault."""
        with self._wake:
            wanted = self._accepted
            while self._settled < wanted and self._thread.is_alive():
                self._wake.wait(_SLICE_S)

    def close(self) -> None:
        """Write what is queued, fold the log into the file and close it. Twice does no harm."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        while self._thread.is_alive():
            self._thread.join(_SLICE_S)

    def _put(self, job: Job) -> None:
        with self._wake:
            if self._fault is not None or self._closing:
                self._dropped += is_loss(job)
                return
            self._jobs.append(job)
            self._accepted += 1
            self._wake.notify_all()

    def _ask(self, action: Callable[[sqlite3.Connection], tuple[int, ...]]) -> tuple[int, ...]:
        task = Task(action)
        self._put(task)
        self.flush()
        with self._wake:
            if task.answer is not None:
                return task.answer
            if self._fault is not None:
                raise self._fault
        raise StoreError(self.path, "the writer has ended", "open the database again")

    def _run(self) -> None:
        fault: StoreError | None = StoreError(
            self.path, "the writer has broken down", "a fault of the program, please report the error above"
        )
        try:
            while jobs := self._next_jobs():
                self._settle(jobs)
            fault = None
        finally:
            # Checkpointing is a courtesy: another session may still have the file open.
            with contextlib.suppress(sqlite3.Error):
                if self._leased and self._fault is None:
                    self._leases.drop(self._conn)
                self._conn.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._conn.close()
            with self._wake:
                self._fault = self._fault or fault
                self._wake.notify_all()
                on_settled = self._on_settled
            on_settled()

    def _next_jobs(self) -> list[Job]:
        """Wait for jobs and take them; empty when the store closes."""
        with self._wake:
            while not self._jobs and not self._closing:
                if not self._wake.wait(_HEARTBEAT_S) and self._leased and self._fault is None:
                    self._jobs.append(Beat())
                    self._accepted += 1
            jobs, self._jobs = self._jobs[:_BATCH], self._jobs[_BATCH:]
            return jobs

    def _settle(self, jobs: Sequence[Job]) -> None:
        fault = self.fault
        if fault is None:
            try:
                self._write_with_patience(Batch.of(jobs))
            except sqlite3.Error as error:
                fault = store_error(self.path, error)
            except StoreError as error:
                fault = error
        with self._wake:
            if fault is not None:
                self._fault = fault
                self._dropped += sum(map(is_loss, jobs))
            self._settled += len(jobs)
            self._wake.notify_all()
            on_settled = self._on_settled
        on_settled()

    def _write_with_patience(self, batch: Batch) -> None:
        for pause_s in self._retry_pauses_s:
            try:
                return self._write(batch)
            except sqlite3.Error as error:
                if not is_locked(error):
                    raise
            time.sleep(pause_s)
        return self._write(batch)

    def _write(self, batch: Batch) -> None:
        now_s, since_boot_s = self._now(), seconds_since_boot()
        beats = self._beat_is_due(now_s, since_boot_s)
        if not self._place.is_kept:
            self._go_on_beside()
        tables = self._tables
        with transaction(self._conn):
            self._leases.check(self._conn, self._leased, self.path)
            replies = write_attempts(self._conn, tables, batch.attempts) if batch.attempts else {}
            if batch.results:
                known = ChainMap(replies, self._replies)
                write_results(self._conn, tables, batch.results, self._catalogues, known)
            for happened in batch.happened:
                write_event(self._conn, tables, happened.run_id, happened.event)
            for stated in batch.stated:
                write_run_statement(self._conn, stated.run_id, stated.statement)
            for closing in batch.closings:
                write_totals(self._conn, closing.run_id, closing.totals)
                self._leases.drop(self._conn, closing.run_id)
            answers = [task.action(self._conn) for task in batch.tasks]
            if beats:
                beat(self._conn, self._open_runs, iso_time(now_s))
                self._leases.renew(self._conn)
        self._place.has_log()
        # Only now is it true: a rolled back batch must leave no trace in memory either.
        if beats:
            self._last_beat_s, self._renewed_s = now_s, since_boot_s
        self._replies.update(replies)
        for result in batch.results:
            self._replies.pop(result.outcome.reply_key or "", None)
        for task, answer in zip(batch.tasks, answers, strict=True):
            task.settle(answer)
        with self._wake:
            closed = {closing.run_id for closing in batch.closings}
            self._open_runs, self._leased = self._open_runs - closed, self._leased - closed

    def _beat_is_due(self, now_s: float, since_boot_s: float) -> bool:
        """Return whether 10 s have passed, by either clock: one of them may have been set."""
        return bool(self._leased) and (
            now_s - self._last_beat_s >= _HEARTBEAT_S or since_boot_s - self._renewed_s >= _HEARTBEAT_S
        )

    def _go_on_beside(self) -> None:
        """Save what the open file holds: its own place is somebody else's, or nobody's."""
        db, place, displaced = self._place.recovered(self._conn, self._busy_timeout_s)
        self._place.leave(self._conn)
        self._conn, self._tables, self._place = db.conn, RecordTables(db.conn), place
        with self._wake:
            self.path = place.path
            self._displaced = displaced


def _nothing() -> None:
    """Nobody listens."""
