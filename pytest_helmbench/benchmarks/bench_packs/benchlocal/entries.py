"""One result, and one score, of a Bench Pack as the BenchLocal app stores it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore, PackStatus
from pytest_helmbench.benchmarks.bench_packs.stored import BenchPackFault, BenchPackRow
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.store.result_queries import ResultRow

__all__ = [
    "MARK",
    "error_result",
    "json_time",
    "majority_result",
    "stored_score",
    "timed_result",
    "without_text",
]

MARK = "helmbench"
"""The key that what we add stands under."""

_RETRYABLE = frozenset({408, 409, 425, 429})
_SERVER_FAULT = 500
_RANKS = {PackStatus.PASS: 3, PackStatus.PARTIAL: 2, PackStatus.FAIL: 1}
# What a result says in numbers and words of the protocol; all else may quote replies.
_PLAIN_KEYS = ("status", "errorType", "retryable", "score", "points")
_LONGEST_WORD = 40
_PLAIN_TIMINGS = ("startedAt", "completedAt", "durationMs", "valid")
_PLAIN_CATEGORY = ("id", "label", "score", "weight")


def timed_result(stated: JsonObject, row: ResultRow, said: BenchPackRow | None) -> JsonObject:
    """Return a result with times, as the app gives it some where its pack has not; our mark is not the pack's."""
    own = {name: value for name, value in stated.items() if name != MARK}
    timings = said.timings if said is not None else None
    return {**own, "timings": {**_times(row), **(timings if isinstance(timings, dict) else {})}}


def _times(row: ResultRow) -> dict[str, JsonValue]:
    if row.started_at is None or row.completed_at is None:
        return {}
    began, ended = datetime.fromisoformat(row.started_at), datetime.fromisoformat(row.completed_at)
    duration_ms = round((ended - began).total_seconds() * 1000)
    return {
        "startedAt": json_time(row.started_at),
        "completedAt": json_time(row.completed_at),
        "durationMs": duration_ms,
    }


def majority_result(judged: Sequence[JsonObject], repetitions: int) -> JsonObject:
    """Return one result for all repetitions: the best of those whose status more than half of them have.

    Without such a status it is partial. What was not judged has no vote.
    """
    if repetitions == 1:
        return judged[0]
    counts = {status: sum(said.get("status") == status for said in judged) for status in PackStatus}
    status = next((name for name, count in counts.items() if 2 * count > len(judged)), PackStatus.PARTIAL)
    best = max([said for said in judged if said.get("status") == status] or judged, key=_worth)
    votes = ", ".join(f"{count} {name}" for name, count in counts.items())
    logs = (f"--- repetition {number} ---\n{said.get('rawLog', '')}" for number, said in enumerate(judged, 1))
    return {
        **best,
        "status": str(status),
        "summary": f"Majority of {len(judged)} judged repetitions: {votes}. {best.get('summary', '')}".strip(),
        "rawLog": "\n\n".join(logs),
        MARK: {"repetitions": repetitions, "judged": len(judged)},
    }


def _worth(said: JsonObject) -> tuple[int, float]:
    number = said.get("score", said.get("points"))
    rank = next((rank for status, rank in _RANKS.items() if said.get("status") == status), 0)
    return rank, number if isinstance(number, int | float) else float("-inf")


def error_result(row: ResultRow, fault: BenchPackFault | None, message: str) -> JsonObject:
    """Return a case that was never judged the way the app stores one.

    The app takes the type of error off a result that names no HTTP status of the provider; it is then a failure
    of the model. So a fault without a status is one of execution, whose type it leaves alone.
    """
    text = message or (fault.error if fault is not None else "") or row.reason or "error"
    details: dict[str, JsonValue] = {"error": text}
    if fault is not None:
        details |= {"providerHttpStatus": fault.status_code, "providerResponseBlank": False}
    return {
        "scenarioId": row.code,
        "status": str(PackStatus.FAIL),
        "errorType": "execution_error" if fault is None else "provider_error",
        "retryable": fault is not None
        and (fault.status_code in _RETRYABLE or fault.status_code >= _SERVER_FAULT),
        "score": 0,
        "summary": f"Not judged, and no failure of the model: {row.reason or 'error'}.",
        "note": text,
        "rawLog": f"error={text}",
        "verifier": {
            "status": "fail",
            "summary": "The scenario ended without a verdict.",
            "details": details,
        },
        "timings": _times(row),
        MARK: {"outcome": "error", "reason": row.reason},
    }


def stored_score(score: PackScore, *, with_text: bool) -> JsonObject:
    """Return what a pack makes of a model's results; the app has no place but the summary to call it partial.

    Args:
        score: Of the pack.
        with_text: Also its words, and what it has put into the categories beyond the protocol.
    """
    words = score.summary if with_text else ""
    summary = " ".join(filter(None, ("Not over all scenarios." if score.partial else "", words)))
    categories: list[JsonValue] = [
        dict(part) if with_text else {name: part[name] for name in _PLAIN_CATEGORY if name in part}
        for part in score.categories
    ]
    found: JsonObject = {"totalScore": score.total, "categories": categories}
    return {**found, "summary": summary} if summary else found


def without_text(said: JsonObject) -> JsonObject:
    """Return a result without what may quote a reply: only words and numbers of the protocol are left."""
    timings = said.get("timings")
    mark = said.get(MARK)
    mark = mark if isinstance(mark, dict) else {}
    return {
        "scenarioId": said.get("scenarioId"),
        **_words(said, _PLAIN_KEYS),
        # What is said of a case that was never judged is ours.
        "summary": said["summary"] if mark.get("outcome") == "error" else "",
        "rawLog": "",
        "timings": _words(timings, _PLAIN_TIMINGS) if isinstance(timings, dict) else {},
        **({MARK: mark} if mark else {}),
    }


def _words(said: JsonObject, names: Sequence[str]) -> dict[str, JsonValue]:
    found = {name: said[name] for name in names if name in said}
    return {
        name: value
        for name, value in found.items()
        if isinstance(value, int | float) or (isinstance(value, str) and len(value) <= _LONGEST_WORD)
    }


def json_time(iso: str) -> str:
    """Return a time as JavaScript writes it: `2026-07-04T12:00:00.000Z`."""
    at = datetime.fromisoformat(iso).astimezone(UTC)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}Z"
