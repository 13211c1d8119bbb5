"""The single writer of a session: a thread that alone knows the connection and writes as soon as it is free."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.outcome import AttemptRecord, Event, ResultRecord, RunStatement
from pytest_helmbench.core.threads import start_thread
from pytest_helmbench.store.database_file import open_database
from pytest_helmbench.store.fault import FAULTS, StoreError, is_locked, store_error
from pytest_helmbench.store.leases import RunHeldError
from pytest_helmbench.store.table_rows import as_json, insert_into
from pytest_helmbench.store.write.catalogue import CatalogueIds, write_benchmark, write_llm
from pytest_helmbench.store.write.record_file import (
    HEARTBEAT_S,
    Action,
    Job,
    RecordFile,
    Task,
    is_loss,
    of_kind,
    write_event,
    write_run_statement,
)
from pytest_helmbench.store.write.run_rows import (
    RunRecord,
    RunTotals,
    interrupt_dead_runs,
    reopen_run,
    write_run,
    write_totals,
)

_BATCH = 1_000  # jobs in one transaction: bounds how long other sessions wait for the lock
_OLD_LEASE_S = HEARTBEAT_S + 5.0  # longer than the writer lets pass: this process has stood still
_SLICE_S = 0.5  # waits are cut in slices, since Windows hears no Ctrl-C inside one
_PATIENCE_S = 125.0
_LAST_S = 2.0
"""How long a lock is still waited for when the user no longer waits; a disk that does not answer, as long again."""


def _nothing(_conn: sqlite3.Connection | None = None) -> None:
    """There is no listener, or nothing is done."""


class Store:
    """One results file of one session.

    `record_*`, `close_run` and `heartbeat` only queue. After the first failure everything is dropped and
    counted, and what was stored before stays readable.
    """

    def __init__(
        self,
        conn: sqlite3.Connection,
        path: Path,
        *,
        busy_timeout_s: float,
        patience_s: float,
        now: Callable[[], float],
    ) -> None:
        self._patience_s = patience_s
        self._hurried_s: float | None = None
        self._now = now
        self._wake = threading.Condition()
        # Guarded by _wake:
        self._jobs: list[Job] = []
        self._writing: Sequence[Job] = ()
        self._accepted = 0
        self._settled = 0
        self._closing = False
        self._fault: StoreError | None = None
        self._dropped = 0
        self._on_settled: Callable[[], object] = _nothing
        # Written by the writer alone:
        self._file = RecordFile(conn, path, busy_timeout_s, now)
        self._thread = start_thread(self._run, "helmbench-store")

    @classmethod
    def open(
        cls,
        path: Path,
        *,
        busy_timeout_s: float = 30.0,
        patience_s: float = _PATIENCE_S,
        now: Callable[[], float] = time.time,
    ) -> Store:
        """Open a results file, create it where there is none, and start its writer.

        Args:
            busy_timeout_s: How long to wait for another process's transaction while it is opened.
            patience_s: How long later, before everything is written to another file beside it.

        Raises:
            StoreError: The file is not a database, not writable, locked, or of another version.
            HelmbenchError: The system lets no thread start.
        """
        try:
            conn = open_database(path, busy_timeout_s)
            return cls(conn, path, busy_timeout_s=busy_timeout_s, patience_s=patience_s, now=now)
        except FAULTS as error:
            raise store_error(path, error) from error

    @property
    def path(self) -> Path:
        """The path of the file; once it was displaced, of the one beside it."""
        return self._file.path

    @property
    def fault(self) -> StoreError | None:
        """The first failure to write; None while all is well."""
        return self.progress()[2]

    @property
    def displaced(self) -> StoreError | None:
        """That the file was deleted, moved, replaced, or stays locked; what comes is written to another beside it."""
        return self._file.displaced

    def progress(self) -> tuple[int, int, StoreError | None]:
        """Return how much was queued, how much of that is on disk or dropped, and the first failure to write."""
        with self._wake:
            if not (self._thread.is_alive() or self._closing):
                self._fault = self._fault or self._broken_down()
            return self._accepted, self._settled, self._fault

    def listen(self, on_settled: Callable[[], object]) -> None:
        """Have a function called on the writer's thread, after every transaction and after a fault."""
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
            TypeError: A setting is not of a JSON type.
        """
        for run in runs:
            as_json(run.settings)  # raises where it is not JSON, before anything is written
        opened: dict[int, CatalogueIds] = {}

        def write(conn: sqlite3.Connection) -> tuple[int, ...]:
            opened.clear()
            for run in runs:
                planned = run.codes if run.shard is None else run.shard.codes
                codes = write_benchmark(conn, run.benchmark, planned)
                if run.continues is None:
                    llm_id = write_llm(conn, run.model, run.provider, run.base_url)
                    opened[write_run(conn, session_id, codes.benchmark_id, llm_id, run)] = codes
                else:
                    opened[reopen_run(conn, run.continues, codes.benchmark_id, run)] = codes
            self._file.leases.take(conn, session_id)
            return tuple(opened)

        run_ids = self._ask(write)
        self._file.take_up([session_id], opened, [run.continues for run in runs if run.continues is not None])
        return run_ids

    def take_session(self, run_id: int | None, *, take_over: bool) -> tuple[int, ...]:
        """Own the runs of a session that is to go on, and return their ids; none where there is no such session.

        Args:
            run_id: A run of it; None for the last session that has not finished.
            take_over: Also of an owner who has been silent for 60 s.

        Raises:
            RunHeldError: Another process owns it.
            StoreError: They cannot be read or taken.
        """
        held: list[RunHeldError] = []
        taken: list[str] = []

        def take(conn: sqlite3.Connection) -> tuple[int, ...]:
            held.clear()
            try:
                run_ids = self._file.leases.taken_session(conn, run_id, take_over=take_over)
            except RunHeldError as error:
                held.append(error)
                return ()
            taken[:] = self._file.leases.owned(conn)
            return run_ids

        run_ids = self._ask(take)
        if held:
            raise held[0]
        self._file.take_up(taken)
        return run_ids

    @property
    def lease_is_old(self) -> bool:
        """Whether nothing should be sent before the lease is renewed: another process may have the run."""
        return self._file.lease_age_s > _OLD_LEASE_S

    def record_attempt(self, record: AttemptRecord) -> None:
        """Keep a call with its request and its reply."""
        self._put(record)

    def record_result(self, record: ResultRecord) -> None:
        """Keep a result with its evaluations; ignored when the case already has a judged one."""
        self._put(record)

    def record_sent(self, number: int, run_id: int, code: str, reserved_usd: float) -> None:
        """Keep that a call of this process is about to go, with what the budget reserves for it, until it returns."""
        row = (self._file.leases.owner, number, run_id, code, reserved_usd)
        self._do(
            "INSERT INTO sent_calls (owner, number, run_id, code, reserved_usd) VALUES (?, ?, ?, ?, ?)", row
        )

    def forget_sent(self, number: int) -> None:
        """Say that a call is out no more."""
        row = (self._file.leases.owner, number)
        self._do("DELETE FROM sent_calls WHERE owner = ? AND number = ?", row)

    def record_batch(self, row: Mapping[str, object]) -> None:
        """Keep a batch, in place of the one of its token."""
        self._do(insert_into("batches", row, "INSERT OR REPLACE"), row)

    def forget_batch(self, token: str) -> None:
        """Delete a batch."""
        self._do("DELETE FROM batches WHERE token = ?", (token,))

    def record_event(self, run_id: int, event: Event) -> None:
        """Keep something that happened in a run and belongs to no result."""
        self._put(Task(lambda conn: write_event(conn, run_id, event), is_loss=True))

    def record_statement(self, run_id: int, statement: RunStatement) -> None:
        """Keep the statement of a kind about a run; the last one stands."""
        self._put(Task(lambda conn: write_run_statement(conn, run_id, statement), is_loss=True))

    def fail(self, fault: StoreError) -> None:
        """Write nothing more: what was written cannot be read again."""
        with self._wake:
            self._fault = self._fault or fault

    def close_run(self, run_id: int, totals: RunTotals) -> None:
        """Give a run its end; counts and costs are taken from the rows."""
        self._put(Task(lambda conn: write_totals(conn, run_id, totals)))

    def heartbeat(self) -> None:
        """Say that the open runs are alive and renew their leases; the writer does so by itself every 10 s."""
        self._put(Task(_nothing))

    def mark_dead_runs_interrupted(self) -> tuple[int, ...]:
        """Mark runs whose owner is gone as interrupted and return their ids.

        Raises:
            StoreError: They cannot be written.
        """
        return self._ask(lambda conn: interrupt_dead_runs(conn, self._now()))

    def hurry(self) -> None:
        """Wait no longer than a moment for a file that is locked, or a disk that does not answer. From any thread."""
        # No lock: a signal may have come while it was held.
        self._hurried_s = self._hurried_s or time.monotonic()

    def flush(self, tick: Callable[[], object] = _nothing) -> None:
        """Wait, ticking twice a second, until everything queued so far is on disk, or a fault has dropped it."""
        with self._wake:
            wanted = self._accepted
        while not self._is_settled(wanted):
            tick()

    def _is_settled(self, wanted: int) -> bool:
        """Wait a moment; return whether so much is on disk, or dropped, or given up."""
        with self._wake:
            if self._settled < wanted and self._thread.is_alive() and not self._is_given_up():
                self._wake.wait(_SLICE_S)
            return self._settled >= wanted or not self._thread.is_alive() or self._is_given_up()

    def _is_given_up(self) -> bool:
        """Return whether the disk has not answered in the time that the user gave it; what waits is lost then."""
        if self._hurried_s is None or time.monotonic() - self._hurried_s < 2 * _LAST_S + _SLICE_S:
            return False
        if self._settled < self._accepted and self._fault is None:
            self._fault = StoreError(self.path, "the disk did not answer", "what was stored before is intact")
            self._dropped += sum(map(is_loss, (*self._writing, *self._jobs)))
        return self._fault is not None

    def close(self, tick: Callable[[], object] = _nothing) -> None:
        """Write what is queued, ticking twice a second, fold the log into the file and close it. Twice does no harm."""
        with self._wake:
            self._closing = True
            self._wake.notify_all()
        self._thread.join(_SLICE_S)
        while self._thread.is_alive() and not self._is_given_up():
            tick()
            self._thread.join(_SLICE_S)

    def _put(self, job: Job) -> None:
        with self._wake:
            if self._fault is not None or self._closing:
                self._dropped += is_loss(job)
                return
            self._jobs.append(job)
            self._accepted += 1
            self._wake.notify_all()

    def _do(self, statement: str, row: tuple[object, ...] | Mapping[str, object]) -> None:
        def action(conn: sqlite3.Connection) -> None:
            conn.execute(statement, row)

        self._put(Task(action))

    def _ask(self, action: Action) -> tuple[int, ...]:
        task = Task(action, is_asked=True)
        self._put(task)
        self.flush()
        with self._wake:
            if task.answer is not None:
                return task.answer
            if self._fault is not None:
                raise self._fault
        raise StoreError(self.path, "the writer has ended", "open the database again")

    def _run(self) -> None:
        fault: StoreError | None = self._broken_down()
        try:
            while jobs := self._next_jobs():
                self._settle(jobs)
            fault = None
        finally:
            # Checkpointing is a courtesy: another session may still have the file open.
            with contextlib.suppress(*FAULTS, StoreError):
                self._file.end(drop_leases=bool(self._file.leased) and self._fault is None)
            self._file.close()
            with self._wake:
                self._fault = self._fault or fault
                self._wake.notify_all()
                on_settled = self._on_settled
            on_settled()

    def _broken_down(self) -> StoreError:
        """Return what is wrong when the writer's thread has ended by itself."""
        hint = "a fault of the program, please report the error above"
        return StoreError(self.path, "the writer has broken down", hint)

    def _next_jobs(self) -> list[Job]:
        """Wait for jobs and take them; empty when the store closes."""
        with self._wake:
            while not self._jobs and not self._closing:
                if not self._wake.wait(HEARTBEAT_S) and self._file.leased and self._fault is None:
                    self._jobs.append(Task(_nothing))
                    self._accepted += 1
            jobs, self._jobs = self._jobs[:_BATCH], self._jobs[_BATCH:]
            self._writing = jobs
            return jobs

    def _settle(self, jobs: Sequence[Job]) -> None:
        fault = self.fault
        if fault is None:
            try:
                self._write_with_patience(jobs)
            except FAULTS as error:
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

    def _write_with_patience(self, jobs: Sequence[Job]) -> None:
        """Write; while another process holds the lock, try again, and in the end write beside it."""
        began = time.monotonic()
        while True:
            try:
                return self._file.write(jobs)
            except sqlite3.Error as error:
                if not is_locked(error):
                    raise
                if self._may_wait(began):
                    continue
                # A run that is not open yet is opened nowhere else.
                if any(task.is_asked for task in of_kind(Task, jobs)) or not self._file.catalogues:
                    raise
            self._file.go_on_beside(f"was locked by another process for {time.monotonic() - began:.0f} s")

    def _may_wait(self, began: float) -> bool:
        hurried_s, now = self._hurried_s, time.monotonic()
        return now - began < self._patience_s and (hurried_s is None or now - hurried_s < _LAST_S)
