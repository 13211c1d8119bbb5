"""The open results file of a writer: its jobs, transactions and leases, and the file beside it where it goes on."""

from __future__ import annotations

import sqlite3
from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias, TypeVar

from pytest_helmbench.core.ids import new_id
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import AttemptRecord, Cell, Event, ResultRecord, RunStatement
from pytest_helmbench.store.database_file import FilePlace, transaction
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.leases import Leases
from pytest_helmbench.store.table_rows import SqlTable, foreign_json, insert_into, safe_text, statement_tables
from pytest_helmbench.store.write.catalogue import AXES, CatalogueIds

Action: TypeAlias = Callable[[sqlite3.Connection], tuple[int, ...] | None]


@dataclass(slots=True, eq=False)
class Task:
    """Something that is done with the file after the calls and results that came with it.

    Args:
        action: Run inside a transaction; may run again after a rollback.
        is_loss: Something is lost where it is not done.
        is_asked: Its asker waits for the answer, which is None until its transaction is on disk.
    """

    action: Action
    is_loss: bool = False
    is_asked: bool = False
    answer: tuple[int, ...] | None = None


_Kind = TypeVar("_Kind")
Job = AttemptRecord | ResultRecord | Task


def is_loss(job: Job) -> bool:
    """Return whether something is lost with a job: a reply, a verdict, a statement of a kind.

    A case that was not asked, or a call that was not answered, counts as none: it cost nothing and can be asked again.
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
_LONGEST_LOOK_S = 0.5  # for a lock at a time: between two of them the writer hears that no caller waits


class RecordFile:
    """Writes batches; used by one thread, but for the facts on runs, which are set as a whole."""

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
        self._see_that_it_stands()
        conn, tables = self._conn, self._tables
        results, tasks = of_kind(ResultRecord, jobs), of_kind(Task, jobs)
        with transaction(conn):
            self.leases.check(conn, self.leased, self.path)
            replies = write_attempts(tables, of_kind(AttemptRecord, jobs), self.continued)
            if results:
                write_results(tables, results, self.catalogues, ChainMap(replies, self._replies))
            answers = [task.action(conn) for task in tasks]
            if beats:
                self.leases.renew(conn)
        self._place.note()
        # Only now is it true: jobs that were rolled back must leave no trace in memory either.
        if beats:
            self._renewed_s = now_s
        self._replies.update(replies)
        for result in results:
            self._replies.pop(result.outcome.reply_key or "", None)
        for task, answer in zip(tasks, answers, strict=True):
            task.answer = answer

    def _see_that_it_stands(self) -> None:
        if not self._place.is_kept:
            self.go_on_beside("or its log was deleted, moved, cut or replaced while it was written")

    def go_on_beside(self, what: str) -> None:
        """Save what the open file holds: its own place is taken, gone, or cannot be written.

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
        """Fold the log into the file; give the runs back.

        Raises:
            StoreError: The file is gone and nothing can be written beside it.
            sqlite3.Error: It cannot be written.
        """
        if drop_leases:
            self._see_that_it_stands()
            self.leases.drop(self._conn)
        self._conn.execute("PRAGMA wal_checkpoint(PASSIVE)")

    def close(self) -> None:
        """Close the file."""
        self._conn.close()

    def _use(self, conn: sqlite3.Connection) -> None:
        self._conn, self._tables = conn, RecordTables(conn)
        self._conn.execute(f"PRAGMA busy_timeout = {int(min(self._busy_timeout_s, _LONGEST_LOOK_S) * 1000)}")


_ERROR_CHARACTERS = 500
_Row: TypeAlias = dict[str, Cell]
_Key = tuple[int, str, int]  # run, code, repetition
_PlacedResult: TypeAlias = tuple[str, bool, ResultRecord]  # results.id, whether it is new, its record
_REPLACEABLE = ("error", "skipped")

_INSERT_REQUEST = "INSERT OR IGNORE INTO requests (hash, body) VALUES (?, ?)"
_REQUEST = "SELECT id FROM requests WHERE hash = ?"
_RECORDED_RESPONSE = (
    "SELECT id FROM responses WHERE request_id = ? AND repetition = ?"
    " ORDER BY body IS ? DESC, rowid DESC LIMIT 1"
)
_STORED_RESULT = "SELECT id, outcome FROM results WHERE run_id = ? AND code = ? AND repetition = ?"
_LAST_SEQUENCE = (
    "SELECT coalesce(max(sequence), 0) FROM calls"
    " WHERE run_id = ? AND code = ? AND repetition = ? AND purpose = ?"
)


class RecordTables:
    """The tables that rows of a running session go into, as they stand in its file."""

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.conn = conn
        self.calls = SqlTable(conn, "calls")
        self.responses = SqlTable(conn, "responses")
        self.results = SqlTable(conn, "results")
        names = ("evaluations", "judgements", "events", *statement_tables(conn))
        self.of_results = {name: SqlTable(conn, name) for name in names}
        """By name: their rows belong to one result and go when it is replaced."""
        self._sequences: dict[tuple[int, str, int, str], int] = {}

    def sequence_before(self, record: AttemptRecord) -> int:
        """Return the last sequence that a case has had of a purpose before its run went on."""
        key = (record.run_id, safe_text(record.code), record.repetition, record.purpose)
        found = self._sequences.get(key)
        if found is None:
            (found,) = self.conn.execute(_LAST_SEQUENCE, key).fetchone()
            self._sequences[key] = found
        return found


def write_attempts(
    tables: RecordTables, attempts: Sequence[AttemptRecord], continued: frozenset[int]
) -> dict[str, str]:
    """Write requests, replies and calls, in this order, inside a write transaction.

    Args:
        continued: Runs that go on: what their calls are numbered with goes on too.

    Returns:
        Reply key to `responses.id`, for the replies that results refer to (never those of judges).
    """
    requests = [(record.request_hash, record.request_body) for record in attempts]
    tables.conn.executemany(_INSERT_REQUEST, requests)
    response_ids = _write_responses(tables, attempts)
    placed = list(zip(attempts, response_ids, strict=True))
    rows = [_call_row(tables.calls, record, response_id) for record, response_id in placed]
    for record, row in zip(attempts, rows, strict=True):
        if record.run_id in continued:
            row["sequence"] = record.sequence + tables.sequence_before(record)
    tables.calls.insert(rows)
    return {
        record.reply_key: response_id
        for record, response_id in placed
        if record.reply_key is not None and response_id is not None and record.purpose != "judge"
    }


def write_results(
    tables: RecordTables,
    results: Sequence[ResultRecord],
    catalogues: Mapping[int, CatalogueIds],
    replies: Mapping[str, str],
) -> None:
    """Write results with their evaluations, inside a write transaction.

    The first judged verdict of a case and repetition stands; an error or a skip is replaced.

    Args:
        catalogues: Row ids of their benchmark by run.
        replies: Reply key to `responses.id`.
    """
    places = _placed(tables.conn, results)
    rows = [
        _result_row(tables.results, result_id, record, catalogues.get(record.run_id), replies)
        for result_id, _, record in places
    ]
    replaced = [row for row, (_, is_new, _) in zip(rows, places, strict=True) if not is_new]
    tables.results.insert([row for row, (_, is_new, _) in zip(rows, places, strict=True) if is_new])
    tables.results.replace(replaced)
    for name in tables.of_results if replaced else ():
        tables.conn.executemany(f"DELETE FROM {name} WHERE result_id = :id", replaced)
    _write_rows_of_results(tables, places)


def write_event(conn: sqlite3.Connection, run_id: int, event: Event) -> None:
    """Write an event of a run that belongs to no result."""
    row = _event_row(run_id, None, event)
    conn.execute(insert_into("events", row), row)


def write_run_statement(conn: sqlite3.Connection, run_id: int, statement: RunStatement) -> None:
    """Write the statement of a kind about a run, in place of an earlier one."""
    row = {"run_id": run_id, **statement.cells()}
    conn.execute(f"DELETE FROM {statement.table} WHERE run_id = :run_id", row)
    conn.execute(insert_into(statement.table, row), row)


def _placed(conn: sqlite3.Connection, results: Iterable[ResultRecord]) -> list[_PlacedResult]:
    """Return the records that are to be written with the ids of their rows; later ones replace earlier ones."""
    places: dict[_Key, _PlacedResult] = {}
    for record in results:
        key = (record.run_id, safe_text(record.code), record.repetition)
        if key in places:
            result_id, is_new, earlier = places[key]
            outcome: str = earlier.outcome.verdict.value
        else:
            stored = conn.execute(_STORED_RESULT, key).fetchone()
            is_new = stored is None
            result_id, outcome = stored or (new_id(), _REPLACEABLE[0])
        if outcome in _REPLACEABLE or record.supersedes:
            places[key] = (result_id, is_new, record)
    return list(places.values())


def _write_rows_of_results(tables: RecordTables, places: Iterable[_PlacedResult]) -> None:
    rows: dict[str, list[_Row]] = {name: [] for name in tables.of_results}
    evaluations, judgements = tables.of_results["evaluations"], tables.of_results["judgements"]
    for result_id, _, record in places:
        outcome, owner = record.outcome, {"result_id": result_id}
        rows["evaluations"] += ({**evaluations.cells(part), **owner} for part in outcome.evaluations)
        rows["judgements"] += ({**judgements.cells(part), **owner} for part in outcome.judgements)
        rows["events"] += (_event_row(record.run_id, result_id, event) for event in outcome.events)
        if outcome.statement is not None:
            rows[outcome.statement.table].append({**owner, **outcome.statement.cells()})
    for name, table in tables.of_results.items():
        table.insert(rows[name])


def _write_responses(tables: RecordTables, attempts: Sequence[AttemptRecord]) -> list[str | None]:
    """Return the `responses.id` of every attempt; None for faults."""
    ids = [None if record.reply_key is None or record.from_cache else new_id() for record in attempts]
    new = [(row_id, record) for row_id, record in zip(ids, attempts, strict=True) if row_id is not None]
    tables.responses.insert([_response_row(tables, *row) for row in new])
    for index, record in enumerate(attempts):
        if record.from_cache and record.reply_key is not None:
            ids[index] = _recorded_response(tables, record)
    return ids


def _recorded_response(tables: RecordTables, record: AttemptRecord) -> str:
    """Return the row that an answer was taken from; a reply that the file does not have gets one."""
    wanted = (_request_id(tables.conn, record), record.repetition, record.response_body)
    found = tables.conn.execute(_RECORDED_RESPONSE, wanted).fetchone()
    if found is not None:
        return str(found[0])
    response_id = new_id()
    tables.responses.insert([_response_row(tables, response_id, record)])
    return response_id


def _request_id(conn: sqlite3.Connection, record: AttemptRecord) -> int:
    (found,) = conn.execute(_REQUEST, (record.request_hash,)).fetchone()
    return int(found)


def _response_row(tables: RecordTables, response_id: str, record: AttemptRecord) -> _Row:
    own: _Row = {"request_id": _request_id(tables.conn, record), "body": record.response_body}
    return {**tables.responses.cells(record), "id": response_id, **own}


def _call_row(table: SqlTable, record: AttemptRecord, response_id: str | None) -> _Row:
    return {
        **table.cells(record, record.usage),
        "cost_usd": 0.0 if record.from_cache else record.usage.cost_usd,
        "error": _error_text(record),
        "response_id": response_id,
    }


def _error_text(record: AttemptRecord) -> str | None:
    """Return the fault; the body that the server sent with it where no table has words for it."""
    if record.error is not None:
        return safe_text(record.error[:_ERROR_CHARACTERS])
    if record.reply_key is None and record.response_body is not None:
        return safe_text(record.response_body.decode("utf-8", "replace")[:_ERROR_CHARACTERS])
    return None


def _result_row(
    table: SqlTable,
    result_id: str,
    record: ResultRecord,
    catalogue: CatalogueIds | None,
    replies: Mapping[str, str],
) -> _Row:
    outcome = record.outcome
    axes = dict.fromkeys(AXES) if catalogue is None else catalogue.cells(record.code)
    return {
        **table.cells(record, outcome, outcome.usage),
        **axes,
        "id": result_id,
        "outcome": outcome.verdict.value,
        "response_id": None if outcome.reply_key is None else replies.get(outcome.reply_key),
    }


def _event_row(run_id: int, result_id: str | None, event: Event) -> _Row:
    payload = foreign_json(event.payload)
    return {"run_id": run_id, "result_id": result_id, "type": event.type, "payload": payload, "at": event.at}
