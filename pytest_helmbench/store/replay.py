"""The replies of a run as they came, with the requests they answer: what new rules are held to."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.reading import reading


@dataclass(frozen=True, slots=True)
class StoredReply:
    """One reply.

    Args:
        request_hash: SHA-256 (hex) of the request.
        request: Body as sent.
        body: HTTP body as received.
        text: Scrubbed, for people; None where there is none.
        latency_ms: Of the call; None when unknown.
    """

    request_hash: str
    request: bytes
    body: bytes
    text: str | None
    latency_ms: float | None


@dataclass(frozen=True, slots=True)
class StoredCase:
    """One result of a run.

    Args:
        outcome: `passed`, `failed`, `error` or `skipped`.
        reason: None for a plain verdict.
        reply: None where none came.
    """

    code: str
    repetition: int
    node_id: str
    family: str
    outcome: str
    reason: str | None
    reply: StoredReply | None


@dataclass(frozen=True, slots=True)
class JudgeReply:
    """One reply of a judge in a run; `judge` is None where the record does not say which."""

    code: str
    repetition: int
    criterion: str
    judge: str | None
    reply: StoredReply


_CASES = """
    SELECT results.code, results.repetition, results.node_id, results.family, results.outcome, results.reason,
        responses.request_hash, requests.body, responses.body, responses.text, results.latency_ms
    FROM results
    LEFT JOIN responses ON responses.id = results.response_id
    LEFT JOIN requests ON requests.hash = responses.request_hash
    WHERE results.run_id = ? ORDER BY results.rowid
"""
_JUDGES = """
    SELECT calls.code, calls.repetition, calls.criterion, calls.judge,
        responses.request_hash, requests.body, responses.body, responses.text, calls.latency_ms
    FROM calls
    JOIN responses ON responses.id = calls.response_id
    JOIN requests ON requests.hash = responses.request_hash
    WHERE calls.run_id = ? AND calls.purpose = 'judge' ORDER BY calls.rowid
"""
_NEWEST = """
    SELECT responses.request_hash, requests.body, responses.body, responses.text, NULL
    FROM responses JOIN requests ON requests.hash = responses.request_hash
    WHERE responses.request_hash = :hash AND responses.repetition = :repetition
        AND responses.asked = :asked
    ORDER BY responses.rowid DESC LIMIT 1
"""


def stored_cases(path: Path, run_id: int) -> tuple[StoredCase, ...]:
    """Return every result of a run with its reply, in the order they came.

    Raises:
        StoreError: The file cannot be read.
    """
    with reading(path) as conn:
        return tuple(StoredCase(*(*row[:6], _reply(row[6:]))) for row in conn.execute(_CASES, (run_id,)))


def judge_replies(path: Path, run_id: int) -> tuple[JudgeReply, ...]:
    """Return every reply that judges gave in a run, in the order they came.

    Raises:
        StoreError: The file cannot be read.
    """
    with reading(path) as conn:
        found = conn.execute(_JUDGES, (run_id,))
        return tuple(JudgeReply(*(*row[:4], StoredReply(*row[4:]))) for row in found)


def newest_reply(path: Path, request_hash: str, repetition: int, asked: str) -> StoredReply | None:
    """Return the newest reply that any run has had of a model to a request; None when there is none.

    Raises:
        StoreError: The file cannot be read.
    """
    with reading(path) as conn:
        wanted = {"hash": request_hash, "repetition": repetition, "asked": asked}
        row = conn.execute(_NEWEST, wanted).fetchone()
    return None if row is None else StoredReply(*row)


def _reply(
    cells: tuple[str | None, bytes | None, bytes | None, str | None, float | None],
) -> StoredReply | None:
    request_hash, request, body, text, latency_ms = cells
    if request_hash is None or request is None or body is None:
        return None
    return StoredReply(request_hash, request, body, text, latency_ms)
