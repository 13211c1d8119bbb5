"""The rows of a running session: calls with their requests and replies, results with what came of them.

Ids are given out here, inside the write transaction, as the largest so far plus one: several sessions may
write the same file. Rows go in by `executemany`: `insert_all` of sqlite-utils looks the table up again for
every batch, which costs a batch of one row 0.1 ms and a large one 8 µs a row more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from pytest_helmbench.core.outcome import AttemptRecord, Event, ResultRecord
from pytest_helmbench.core.statement import Cell, RunStatement
from pytest_helmbench.store.catalogue import CatalogueIds, RowIds
from pytest_helmbench.store.cells import foreign_json, safe_text
from pytest_helmbench.store.named_rows import Table, insert_into

__all__ = ["RecordTables", "write_attempts", "write_event", "write_results", "write_run_statement"]

_ERROR_CHARACTERS = 500
_Row: TypeAlias = dict[str, Cell]
_Key = tuple[int, str, int]  # run, code, repetition
_REPLACEABLE = ("error", "skipped")

_INSERT_REQUEST = "INSERT OR IGNORE INTO requests (hash, body) VALUES (?, ?)"
_RECORDED_RESPONSE = (
    "SELECT id FROM responses WHERE request_hash = ? AND repetition = ?"
    " ORDER BY body IS ? DESC, id DESC LIMIT 1"
)
_LINK_CALLS = (
    "UPDATE calls SET result_id = ? WHERE run_id = ? AND code = ? AND repetition = ? AND result_id IS NULL"
)
_STORED_RESULT = "SELECT id, outcome FROM results WHERE run_id = ? AND code = ? AND repetition = ?"
_OF_STATEMENTS = (
    "SELECT tables.name FROM sqlite_master AS tables JOIN pragma_table_info(tables.name) AS part"
    " WHERE tables.type = 'table' AND part.name = 'result_id' AND part.pk"
)


class RecordTables:
    """The tables that rows of a running session go into, as they stand in its file.

    Args:
        conn: To the migrated file.
    """

    def __init__(self, conn: sqlite3.Connection) -> None:
        self.calls = Table(conn, "calls")
        self.responses = Table(conn, "responses")
        self.results = Table(conn, "results")
        self.evaluations = Table(conn, "evaluations")
        self.judgements = Table(conn, "judgements")
        self.events = Table(conn, "events")
        names = [name for (name,) in conn.execute(_OF_STATEMENTS)]
        self.statements = {name: Table(conn, name) for name in names}
        """Tables of kinds that keep one row per result."""

    @property
    def of_results(self) -> tuple[Table, ...]:
        """The tables whose rows belong to one result and go when it is replaced."""
        return (self.evaluations, self.judgements, self.events, *self.statements.values())


def write_attempts(
    conn: sqlite3.Connection, tables: RecordTables, attempts: Sequence[AttemptRecord]
) -> dict[str, int]:
    """Write requests, replies and calls, in this order.

    Returns:
        Reply key to `responses.id`, for the replies that a result will ask for (judges' are never asked for).
    """
    conn.executemany(_INSERT_REQUEST, [(record.request_hash, record.request_body) for record in attempts])
    response_ids = _write_responses(conn, tables, attempts)
    placed = list(zip(attempts, response_ids, strict=True))
    tables.calls.insert(
        conn, [_call_row(tables.calls, record, response_id) for record, response_id in placed]
    )
    return {
        record.reply_key: response_id
        for record, response_id in placed
        if record.reply_key is not None and response_id is not None and record.purpose != "judge"
    }


def write_results(
    conn: sqlite3.Connection,
    tables: RecordTables,
    results: Sequence[ResultRecord],
    catalogues: Mapping[int, CatalogueIds],
    replies: Mapping[str, int],
) -> None:
    """Write results with their evaluations and claim their calls.

    The first judged verdict of a case and repetition stands; an error or a skip is replaced.

    Args:
        conn: Inside a write transaction.
        tables: Of the file.
        results: In the order they came.
        catalogues: Row ids of their benchmark by run.
        replies: Reply key to `responses.id`.
    """
    first_new_id = _largest_id(conn, "results") + 1
    places = _places(conn, results, first_new_id)
    rows = {
        result_id: _result_row(tables.results, result_id, record, catalogues.get(record.run_id), replies)
        for (_, result_id), record in places.items()
    }
    replaced = [row for result_id, row in rows.items() if result_id < first_new_id]
    tables.results.insert(conn, [row for result_id, row in rows.items() if result_id >= first_new_id])
    tables.results.replace(conn, replaced)
    for table in tables.of_results:
        conn.executemany(f"DELETE FROM {table.name} WHERE result_id = :id", replaced)
    _write_what_belongs_to_results(conn, tables, places)
    conn.executemany(_LINK_CALLS, [(result_id, *key) for key, result_id in places])


def write_event(conn: sqlite3.Connection, tables: RecordTables, run_id: int, event: Event) -> None:
    """Write an event of a run that belongs to no result."""
    tables.events.insert(conn, [_event_row(run_id, None, event)])


def write_run_statement(conn: sqlite3.Connection, run_id: int, statement: RunStatement) -> None:
    """Write what a kind makes of a run, in place of what it made of it before."""
    row = {"run_id": run_id, **statement.cells()}
    conn.execute(f"DELETE FROM {statement.table} WHERE run_id = :run_id", row)
    conn.execute(insert_into(statement.table, row), row)


def _places(
    conn: sqlite3.Connection, results: Iterable[ResultRecord], next_id: int
) -> dict[tuple[_Key, int], ResultRecord]:
    """Return the records that are to be written, by key and row id; later ones stand for earlier ones."""
    seen: dict[_Key, tuple[int, str]] = {}
    places: dict[tuple[_Key, int], ResultRecord] = {}
    for record in results:
        key = (record.run_id, safe_text(record.code), record.repetition)
        stored = seen.get(key) or conn.execute(_STORED_RESULT, key).fetchone()
        if stored is None:
            result_id, next_id = next_id, next_id + 1
        elif stored[1] in _REPLACEABLE or record.supersedes:
            result_id = stored[0]
        else:
            continue
        seen[key] = (result_id, record.outcome.verdict.value)
        places[key, result_id] = record
    return places


def _write_what_belongs_to_results(
    conn: sqlite3.Connection, tables: RecordTables, places: Mapping[tuple[_Key, int], ResultRecord]
) -> None:
    evaluations: list[_Row] = []
    judgements: list[_Row] = []
    events: list[_Row] = []
    statements: dict[str, list[_Row]] = {}
    for (_, result_id), record in places.items():
        outcome = record.outcome
        evaluations += (
            {**tables.evaluations.cells(part), "result_id": result_id} for part in outcome.evaluations
        )
        judgements += (
            {**tables.judgements.cells(part), "result_id": result_id} for part in outcome.judgements
        )
        events += (_event_row(record.run_id, result_id, event) for event in outcome.events)
        if outcome.statement is not None:
            row = {"result_id": result_id, **outcome.statement.cells()}
            statements.setdefault(outcome.statement.table, []).append(row)
    tables.evaluations.insert(conn, evaluations)
    tables.judgements.insert(conn, judgements)
    tables.events.insert(conn, events)
    for name, rows in statements.items():
        tables.statements[name].insert(conn, rows)


def _write_responses(
    conn: sqlite3.Connection, tables: RecordTables, attempts: Sequence[AttemptRecord]
) -> list[int | None]:
    """Return the `responses.id` of every attempt; None for faults."""
    next_id = _largest_id(conn, "responses") + 1
    ids: list[int | None] = []
    rows: list[_Row] = []
    for record in attempts:
        if record.reply_key is None or record.from_cache:
            ids.append(None)
            continue
        ids.append(next_id)
        rows.append(_response_row(tables.responses, next_id, record))
        next_id += 1
    tables.responses.insert(conn, rows)
    for index, record in enumerate(attempts):
        if record.from_cache and record.reply_key is not None:
            ids[index] = _recorded_response(conn, tables, record)
    return ids


def _recorded_response(conn: sqlite3.Connection, tables: RecordTables, record: AttemptRecord) -> int:
    """Return the row that an answer was taken from; a reply that the file does not have gets one."""
    wanted = (record.request_hash, record.repetition, record.response_body)
    found = conn.execute(_RECORDED_RESPONSE, wanted).fetchone()
    if found is not None:
        return int(found[0])
    response_id = _largest_id(conn, "responses") + 1
    tables.responses.insert(conn, [_response_row(tables.responses, response_id, record)])
    return response_id


def _response_row(table: Table, response_id: int, record: AttemptRecord) -> _Row:
    return {**table.cells(record), "id": response_id, "body": record.response_body}


def _call_row(table: Table, record: AttemptRecord, response_id: int | None) -> _Row:
    return {
        **table.cells(record, record.usage),
        "cost_usd": 0.0 if record.from_cache else record.usage.cost_usd,
        "error": _error_text(record),
        "response_id": response_id,
    }


def _error_text(record: AttemptRecord) -> str | None:
    """Return the fault; the body that the server sent with it where nobody has put it in words."""
    if record.error is not None:
        return safe_text(record.error[:_ERROR_CHARACTERS])
    if record.reply_key is None and record.response_body is not None:
        return safe_text(record.response_body.decode("utf-8", "replace")[:_ERROR_CHARACTERS])
    return None


def _result_row(
    table: Table,
    result_id: int,
    record: ResultRecord,
    catalogue: CatalogueIds | None,
    replies: Mapping[str, int],
) -> _Row:
    outcome = record.outcome
    axes = RowIds() if catalogue is None else catalogue.rows(record.code)
    return {
        **table.cells(record, outcome, outcome.usage, axes),
        "id": result_id,
        "outcome": outcome.verdict.value,
        "response_id": None if outcome.reply_key is None else replies.get(outcome.reply_key),
    }


def _event_row(run_id: int, result_id: int | None, event: Event) -> _Row:
    payload = foreign_json(event.payload)
    return {"run_id": run_id, "result_id": result_id, "type": event.type, "payload": payload, "at": event.at}


def _largest_id(conn: sqlite3.Connection, table: str) -> int:
    (value,) = conn.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
    return int(value)
