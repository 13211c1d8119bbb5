"""The rows of a running session: calls with their requests and replies, results with their evaluations.

Ids are given out here, inside the write transaction, as the largest so far plus one: several sessions may
write the same file. Rows go in by `executemany`: `insert_all` of sqlite-utils looks the table up again for
every batch, which costs a batch of one row 0.1 ms and a large one 8 µs a row more.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from pytest_helmbench.core.outcome import AttemptRecord, Event, ResultRecord, Usage
from pytest_helmbench.store.catalogue import CatalogueIds, RowIds
from pytest_helmbench.store.cells import foreign_json, foreign_text, safe_text, whole_number

__all__ = ["write_attempts", "write_event", "write_pack_score", "write_results"]

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore

_ERROR_CHARACTERS = 500
_Cell = str | int | float | bytes | None
_Row = tuple[_Cell, ...]
_Key = tuple[int, str, int]  # run, code, repetition
_REPLACEABLE = ("error", "skipped")

_INSERT_REQUEST = "INSERT OR IGNORE INTO requests (hash, body) VALUES (?, ?)"
_INSERT_RESPONSE = (
    "INSERT INTO responses (id, request_hash, repetition, body, text, received_at) VALUES (?, ?, ?, ?, ?, ?)"
)
_INSERT_CALL = (
    "INSERT INTO calls (run_id, code, repetition, criterion, purpose, sequence, attempt, status_code,"
    " finish_reason, error, latency_ms, prompt_tokens, completion_tokens, cached_tokens, reasoning_tokens,"
    " cost_usd, provider_model, request_hash, response_id, from_cache, started_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_RECORDED_RESPONSE = (
    "SELECT id FROM responses WHERE request_hash = ? AND repetition = ?"
    " ORDER BY body IS ? DESC, id DESC LIMIT 1"
)
_INSERT_RESULT = (
    "INSERT INTO results (node_id, family, scenario_id, condition_id, user_context_id, perturbation_id,"
    " outcome, reason, score, severity, difficulty, neutral, response_id, latency_ms, prompt_tokens,"
    " completion_tokens, cached_tokens, reasoning_tokens, cost_usd, started_at, completed_at,"
    " run_id, code, repetition, id)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_UPDATE_RESULT = (
    "UPDATE results SET node_id = ?, family = ?, scenario_id = ?, condition_id = ?, user_context_id = ?,"
    " perturbation_id = ?, outcome = ?, reason = ?, score = ?, severity = ?, difficulty = ?, neutral = ?,"
    " response_id = ?, latency_ms = ?, prompt_tokens = ?, completion_tokens = ?, cached_tokens = ?,"
    " reasoning_tokens = ?, cost_usd = ?, started_at = ?, completed_at = ?"
    " WHERE run_id = ? AND code = ? AND repetition = ? AND id = ?"
)
_INSERT_EVALUATION = (
    "INSERT INTO evaluations (result_id, criterion, rule, rule_hash, passed, credit, parse, expected,"
    " observed, justification) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_EVENT = "INSERT INTO events (run_id, result_id, type, payload, at) VALUES (?, ?, ?, ?, ?)"
_INSERT_HOSTED = (
    "INSERT INTO pack_results (result_id, status, score, points, note, summary, raw_log, output, verifier,"
    " artifacts, timings) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
_INSERT_PACK_SCORE = (
    "INSERT OR REPLACE INTO pack_scores (run_id, total, unit, categories, summary, partial)"
    " VALUES (?, ?, ?, ?, ?, ?)"
)
_LINK_CALLS = (
    "UPDATE calls SET result_id = ? WHERE run_id = ? AND code = ? AND repetition = ? AND result_id IS NULL"
)
_STORED_RESULT = "SELECT id, outcome FROM results WHERE run_id = ? AND code = ? AND repetition = ?"


def write_attempts(conn: sqlite3.Connection, attempts: Sequence[AttemptRecord]) -> dict[str, int]:
    """Write requests, replies and calls, in this order.

    Returns:
        Reply key to `responses.id`, for the replies that a result will ask for (judges' are never asked for).
    """
    conn.executemany(_INSERT_REQUEST, [(record.request_hash, record.request_body) for record in attempts])
    response_ids = _write_responses(conn, attempts)
    conn.executemany(
        _INSERT_CALL,
        [_call_row(record, response_id) for record, response_id in zip(attempts, response_ids, strict=True)],
    )
    return {
        record.reply_key: response_id
        for record, response_id in zip(attempts, response_ids, strict=True)
        if record.reply_key is not None and response_id is not None and record.purpose != "judge"
    }


def write_results(
    conn: sqlite3.Connection,
    results: Sequence[ResultRecord],
    codes: Mapping[int, CatalogueIds],
    replies: Mapping[str, int],
) -> None:
    """Write results with their evaluations and claim their calls.

    The first judged verdict of a case and repetition stands; an error or a skip is replaced.

    Args:
        conn: Inside a write transaction.
        results: In the order they came.
        codes: Row ids by run.
        replies: Reply key to `responses.id`.
    """
    first_new_id = _largest_id(conn, "results") + 1
    places = _places(conn, results, first_new_id)
    new: list[_Row] = []
    replaced: list[_Row] = []
    for (key, result_id), record in places.items():
        row = (*_result_row(record, codes.get(record.run_id), replies), *key, result_id)
        (new if result_id >= first_new_id else replaced).append(row)
    conn.executemany(_INSERT_RESULT, new)
    conn.executemany(_UPDATE_RESULT, replaced)
    for table in ("evaluations", "events", "pack_results"):
        conn.executemany(f"DELETE FROM {table} WHERE result_id = ?", [(row[-1],) for row in replaced])
    evaluations = [
        row for (_, result_id), record in places.items() for row in _evaluation_rows(record, result_id)
    ]
    conn.executemany(_INSERT_EVALUATION, evaluations)
    events = [row for (_, result_id), record in places.items() for row in _event_rows(record, result_id)]
    conn.executemany(_INSERT_EVENT, events)
    hosted = [row for (_, result_id), record in places.items() for row in _hosted_rows(record, result_id)]
    conn.executemany(_INSERT_HOSTED, hosted)
    conn.executemany(_LINK_CALLS, [(result_id, *key) for key, result_id in places])


def write_event(conn: sqlite3.Connection, run_id: int, event: Event) -> None:
    """Write an event of a run that belongs to no result."""
    conn.execute(_INSERT_EVENT, _event_row(run_id, None, event))


def write_pack_score(conn: sqlite3.Connection, run_id: int, score: PackScore) -> None:
    """Write what a Bench Pack makes of a run, in place of what it made of it before."""
    values = (
        run_id,
        score.total,
        foreign_text(score.unit),
        foreign_json(score.categories),
        foreign_text(score.summary),
        int(score.partial),
    )
    conn.execute(_INSERT_PACK_SCORE, values)


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


def _write_responses(conn: sqlite3.Connection, attempts: Sequence[AttemptRecord]) -> list[int | None]:
    """Return the `responses.id` of every attempt; None for faults."""
    next_id = _largest_id(conn, "responses") + 1
    ids: list[int | None] = []
    rows: list[_Row] = []
    for record in attempts:
        if record.reply_key is None or record.from_cache:
            ids.append(None)
            continue
        ids.append(next_id)
        rows.append((next_id, *_response_row(record)))
        next_id += 1
    conn.executemany(_INSERT_RESPONSE, rows)
    for index, record in enumerate(attempts):
        if record.from_cache and record.reply_key is not None:
            ids[index] = _recorded_response(conn, record)
    return ids


def _recorded_response(conn: sqlite3.Connection, record: AttemptRecord) -> int | None:
    """Return the row that an answer was taken from; a reply that the file does not have gets one."""
    wanted = (record.request_hash, record.repetition, record.response_body)
    found = conn.execute(_RECORDED_RESPONSE, wanted).fetchone()
    if found is not None:
        return int(found[0])
    row = (_largest_id(conn, "responses") + 1, *_response_row(record))
    return conn.execute(_INSERT_RESPONSE, row).lastrowid


def _response_row(record: AttemptRecord) -> _Row:
    return (
        record.request_hash,
        record.repetition,
        record.response_body,
        None if record.text is None else safe_text(record.text),
        record.received_at,
    )


def _call_row(record: AttemptRecord, response_id: int | None) -> _Row:
    return (
        record.run_id,
        safe_text(record.code),
        record.repetition,
        record.criterion,
        record.purpose,
        record.sequence,
        record.attempt,
        record.status_code,
        None if record.finish_reason is None else safe_text(record.finish_reason),
        _error_text(record),
        record.latency_ms,
        *_token_cells(record.usage),
        0.0 if record.from_cache else record.usage.cost_usd,
        None if record.provider_model is None else safe_text(record.provider_model),
        record.request_hash,
        response_id,
        int(record.from_cache),
        record.started_at,
    )


def _error_text(record: AttemptRecord) -> str | None:
    """Return the fault; the body that the server sent with it where nobody has put it in words."""
    if record.error is not None:
        return safe_text(record.error[:_ERROR_CHARACTERS])
    if record.reply_key is None and record.response_body is not None:
        return safe_text(record.response_body.decode("utf-8", "replace")[:_ERROR_CHARACTERS])
    return None


def _result_row(record: ResultRecord, codes: CatalogueIds | None, replies: Mapping[str, int]) -> _Row:
    outcome = record.outcome
    rows = RowIds() if codes is None else codes.rows(record.code)
    return (
        safe_text(record.node_id),
        safe_text(record.family),
        rows.scenario_id,
        rows.condition_id,
        rows.user_context_id,
        rows.perturbation_id,
        outcome.verdict.value,
        None if outcome.reason is None else safe_text(outcome.reason),
        outcome.score,
        record.severity,
        record.difficulty,
        int(record.neutral),
        None if outcome.reply_key is None else replies.get(outcome.reply_key),
        outcome.latency_ms,
        *_token_cells(outcome.usage),
        outcome.usage.cost_usd,
        outcome.started_at,
        outcome.completed_at,
    )


def _evaluation_rows(record: ResultRecord, result_id: int) -> list[_Row]:
    return [
        (
            result_id,
            evaluation.criterion,
            evaluation.rule,
            evaluation.rule_hash,
            int(evaluation.passed),
            evaluation.credit,
            None if evaluation.parse is None else evaluation.parse.value,
            safe_text(evaluation.expected),
            safe_text(evaluation.observed),
            None if evaluation.justification is None else safe_text(evaluation.justification),
        )
        for evaluation in record.outcome.evaluations
    ]


def _event_rows(record: ResultRecord, result_id: int) -> list[_Row]:
    return [_event_row(record.run_id, result_id, event) for event in record.outcome.events]


def _event_row(run_id: int, result_id: int | None, event: Event) -> _Row:
    return (run_id, result_id, event.type, foreign_json(event.payload), event.at)


def _hosted_rows(record: ResultRecord, result_id: int) -> list[_Row]:
    said = record.outcome.hosted
    if said is None:
        return []
    timings = said.stated.get("timings")
    if not said.timings_valid:
        timings = {**(timings if isinstance(timings, Mapping) else {}), "valid": False}
    parts = (*(said.stated.get(name) for name in ("output", "verifier", "artifacts")), timings)
    return [
        (
            result_id,
            said.status.value,
            said.score,
            said.points,
            foreign_text(said.note),
            foreign_text(said.summary),
            foreign_text(said.raw_log),
            *(None if part is None else foreign_json(part) for part in parts),
        )
    ]


def _token_cells(usage: Usage) -> tuple[int | None, int | None, int | None, int | None]:
    return (
        whole_number(usage.prompt_tokens),
        whole_number(usage.completion_tokens),
        whole_number(usage.cached_tokens),
        whole_number(usage.reasoning_tokens),
    )


def _largest_id(conn: sqlite3.Connection, table: str) -> int:
    (value,) = conn.execute(f"SELECT coalesce(max(id), 0) FROM {table}").fetchone()
    return int(value)
