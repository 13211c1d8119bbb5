"""Recorded replies, the cases of runs that go on or are judged anew, and unfinished sessions, read from the file."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import (
    CaseKey,
    CaseStatement,
    Outcome,
    RecordedCase,
    RecordedReply,
    Usage,
    Verdict,
)
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.store.fault import store_error
from pytest_helmbench.store.read.connection import opened, reading
from pytest_helmbench.store.read.results import evaluations_of
from pytest_helmbench.store.table_rows import from_row, named_rows

StatementReader: TypeAlias = Callable[[sqlite3.Connection, int], Mapping[str, CaseStatement]]
"""Returns what a kind has said about the judged results of a run, by `results.id`."""


class RecordedRuns:
    """Reads recorded replies while the same file is being written. Used on one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._conn = opened(path)

    def close(self) -> None:
        """Close the connection."""
        self._conn.close()

    def reply(self, code: str, question: tuple[object, ...], *, anywhere: bool) -> RecordedReply | None:
        """Return the newest reply of a model at an address, or where that has none `anywhere`; none at no address."""
        asked, address, request_hash, repetition = question
        if address is None:
            return None
        return self._newest(
            "SELECT body, 0, (SELECT max(calls.cost_usd) FROM evaluation_runs CROSS JOIN calls"
            " ON run_id = evaluation_runs.id AND code = ? AND calls.repetition = responses.repetition"
            " AND response_id = responses.id WHERE from_cache = 0), address"
            " FROM responses WHERE request_id = (SELECT id FROM requests WHERE hash = ?) AND repetition = ?"
            " AND body IS NOT NULL AND asked = ? AND (address = ? OR ? AND address IS NOT NULL)"
            " ORDER BY address = ? DESC, rowid DESC LIMIT 1",
            (code, request_hash, repetition, asked, address, anywhere, address),
        )

    def reply_of_run(self, of_case: CaseKey, request_hash: str, judge: str | None) -> RecordedReply | None:
        """Return the newest reply of the model under test, or of a judge, to a request for a case of a run, or None."""
        return self._newest(
            "SELECT responses.body, max(calls.from_cache = 0) OVER (), max(calls.cost_usd) OVER (),"
            " responses.address FROM calls"
            " JOIN responses ON responses.id = calls.response_id"
            " WHERE calls.run_id = ? AND calls.code = ? AND calls.repetition = ? AND calls.request_hash = ?"
            " AND calls.judge IS ? AND responses.body IS NOT NULL ORDER BY calls.rowid DESC LIMIT 1",
            (*of_case, request_hash, judge),
        )

    def _newest(self, query: str, values: tuple[object, ...]) -> RecordedReply | None:
        try:
            row = self._conn.execute(query, values).fetchone()
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error
        return None if row is None else RecordedReply(bytes(row[0]), bool(row[1]), row[2], row[3])


def cases_on_record(
    path: Path, run_id: int, statements: StatementReader | None = None
) -> dict[CaseKey, RecordedCase]:
    """Return the judged cases of a run, with what its kind has said about them where that keeps anything."""
    found: dict[CaseKey, RecordedCase] = {}
    with reading(path) as conn:
        said = {} if statements is None else statements(conn, run_id)
        evaluations = evaluations_of(conn, run_id)
        for row in named_rows(conn.execute(_RESULTS, (run_id,))):
            outcome = from_row(
                Outcome,
                row,
                verdict=Verdict(str(row["outcome"])),
                evaluations=evaluations.get(row["id"], ()),
                usage=from_row(Usage, row),
                excerpt=excerpt(str(row["start"] or ""), indented=True),
                statement=said.get(str(row["id"])),
            )
            case = from_row(
                RecordedCase,
                row,
                outcome=outcome,
                request_hash=row["request_hash"] or "",
                neutral=bool(row["neutral"]),
            )
            found[run_id, str(row["code"]), int(str(row["repetition"]))] = case
    return found


# By the reply that was judged: the newest call of a case may belong to a prompt that is not judged yet.
_AT_WRONG_TURN = (
    "SELECT text FROM calls JOIN responses ON responses.id = response_id WHERE calls.run_id = results.run_id"
    " AND code = results.code AND calls.repetition = results.repetition AND 'turn ' || turn || ',' = substr(("
    "SELECT criterion || ',' FROM evaluations WHERE result_id = results.id AND NOT passed ORDER BY id LIMIT 1"
    "), 1, length('turn ' || turn || ',')) ORDER BY calls.rowid DESC LIMIT 1"
)
_RESULTS = (
    "SELECT results.*, responses.request_hash,"
    f" CASE outcome WHEN 'failed' THEN substr(coalesce(({_AT_WRONG_TURN}), responses.text), 1, 1000) END AS start"
    " FROM results LEFT JOIN responses ON responses.id = results.response_id"
    " WHERE run_id = ? AND outcome IN ('passed', 'failed')"
)


@dataclass(frozen=True, slots=True)
class StoredReply:
    """One reply.

    Args:
        request_hash: SHA-256 (hex) of the request.
        request: Body as sent.
        body: HTTP body as received.
        text: Scrubbed, for people; None where there is none.
        latency_ms: Of the call; None when unknown.
        address: Of the server that sent it; None where that is not read.
    """

    request_hash: str
    request: bytes
    body: bytes
    text: str | None
    latency_ms: float | None
    address: str | None = None


@dataclass(frozen=True, slots=True)
class StoredCase:
    """One result of a run.

    Args:
        outcome: `passed`, `failed`, `error` or `skipped`.
        reason: None for a plain verdict.
        turns: Of a conversation, every reply that was given in it, in the order they came.
    """

    code: str
    repetition: int
    node_id: str
    family: str
    outcome: str
    reason: str | None
    reply: StoredReply | None
    turns: tuple[StoredReply, ...] = ()


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One reply of a judge in a run; `judge` is None where the record does not say which."""

    code: str
    repetition: int
    criterion: str
    judge: str | None
    reply: StoredReply


_REPLY = "responses.request_hash, requests.body, responses.body, responses.text"
_CASES = f"""
    SELECT results.code, results.repetition, results.node_id, results.family, results.outcome, results.reason,
        {_REPLY}, results.latency_ms
    FROM results
    LEFT JOIN responses ON responses.id = results.response_id
    LEFT JOIN requests ON requests.id = responses.request_id
    WHERE results.run_id = ? ORDER BY results.rowid
"""
_CALLS = f"""
    SELECT calls.code, calls.repetition, calls.criterion, calls.judge, {_REPLY}, calls.latency_ms, responses.address
    FROM calls
    JOIN responses ON responses.id = calls.response_id
    JOIN requests ON requests.id = responses.request_id
    WHERE calls.run_id = ? AND {{}} ORDER BY calls.rowid
"""
_JUDGES = _CALLS.format("calls.purpose = 'judge'")
_TURNS = _CALLS.format("calls.turn IS NOT NULL AND responses.body IS NOT NULL")
_NEWEST = f"""
    SELECT {_REPLY}, NULL FROM responses JOIN requests ON requests.id = responses.request_id
    WHERE requests.hash = :hash AND responses.repetition = :repetition
        AND responses.asked = :asked AND responses.address = :address
    ORDER BY responses.rowid DESC LIMIT 1
"""


def stored_cases(path: Path, run_id: int) -> tuple[StoredCase, ...]:
    """Return every result of a run with its reply, in the order they came."""
    turns: dict[tuple[str, int], list[StoredReply]] = defaultdict(list)
    with reading(path) as conn:
        for code, repetition, _criterion, _judge, *reply in conn.execute(_TURNS, (run_id,)):
            turns[code, repetition].append(StoredReply(*reply))
        cases = []
        for row in conn.execute(_CASES, (run_id,)):
            reply = None if None in row[6:9] else StoredReply(*row[6:])
            cases.append(StoredCase(*(*row[:6], reply, tuple(turns.get(row[:2], ())))))
    return tuple(cases)


def judge_replies(path: Path, run_id: int) -> tuple[JudgeReply, ...]:
    """Return every reply that judges gave in a run, in the order they came."""
    with reading(path) as conn:
        found = conn.execute(_JUDGES, (run_id,))
        return tuple(JudgeReply(*(*row[:4], StoredReply(*row[4:]))) for row in found)


def newest_reply(
    path: Path, request_hash: str, repetition: int, asked: str, address: str | None
) -> StoredReply | None:
    """Return the newest reply that any run has had of a model at an address to a request; None for none."""
    with reading(path) as conn:
        wanted = {"hash": request_hash, "repetition": repetition, "asked": asked, "address": address}
        row = conn.execute(_NEWEST, wanted).fetchone()
    return None if row is None else StoredReply(*row)
