"""The runs of a results file and how far they are, asked for while a session may be writing it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.store.database_file import FilePlace
from pytest_helmbench.store.fault import store_error
from pytest_helmbench.store.leases import SESSION_OF, Lease, leases_of, true_status
from pytest_helmbench.store.plan_rows import IS_CASE
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey
from pytest_helmbench.store.read.connection import holds_nothing, opened, reading
from pytest_helmbench.store.table_rows import from_row, named_rows
from pytest_helmbench.store.write.run_rows import run_counts

OWN_DATA = "own_data"
"""Key of the settings of a run: everything on this machine may show its texts and answers."""
_RUNS = """
    SELECT evaluation_runs.*, benchmarks.name AS benchmark, benchmarks.version, llms.name AS model,
        llms.provider, llms.base_url, benchmarks.kind
    FROM evaluation_runs
    JOIN benchmarks ON benchmarks.id = evaluation_runs.benchmark_id
    JOIN llms ON llms.id = evaluation_runs.llm_id
"""
_OUTCOMES = (
    f"SELECT outcome, reason, count(*) FROM results WHERE run_id = ? AND {IS_CASE} GROUP BY outcome, reason"
)
DECIDING = (
    "judge",
    "judge_sampling",
    "sampling",
    "system_prompt",
    "strict_json",
    "add_no_context",
    "judge_template",
    "scoring",
    "pack_rules",
    "cluster",
    "sample",
)
"""Settings that can change an answer or a verdict, the number of repetitions apart."""
_ALIKE = """
    SELECT other.id, other.settings, own.settings FROM evaluation_runs AS own
    JOIN evaluation_runs AS other ON other.benchmark_hash = own.benchmark_hash AND other.llm_id = own.llm_id
        AND other.benchmark_id = own.benchmark_id AND other.id <> own.id AND other.status = 'complete'
        AND other.scope = own.scope AND other.rescored_from IS NULL
    WHERE own.id = ? ORDER BY other.id DESC
"""
_OPEN = """
    SELECT *, token AS id, strftime('%Y-%m-%dT%H:%M:%S+00:00', created_s, 'unixepoch') AS since,
        strftime('%Y-%m-%dT%H:%M:%S+00:00', created_s + 86400, 'unixepoch') AS until,
        (SELECT json_group_array(key) FROM json_each(keys) WHERE token || '-' || key NOT IN (
            SELECT batch FROM calls WHERE batch IS NOT NULL
                AND run_id IN (SELECT id FROM evaluation_runs WHERE session_id = :session)
        )) AS pending
    FROM batches WHERE session_id = :session AND state != 'read' ORDER BY rowid DESC
"""
_UUIDS = """
    SELECT id, uuid FROM evaluation_runs WHERE session_id = :session
    UNION ALL SELECT evaluation_runs.id, json_extract(value, '$.uuid')
        FROM evaluation_runs, json_each(settings, '$.merged') WHERE session_id = :session AND type = 'object'
"""
_PROGRESS_OUTCOMES = ("passed", "failed", "error", "skipped")
_PROGRESS_RUNS = """
    SELECT id, status, total_tests, passed_tests, failed_tests, error_tests, skipped_tests, completed_at,
        session_id FROM evaluation_runs ORDER BY id
"""
_PROGRESS_RESULTS = """
    SELECT outcome, count(*), max(rowid), max(completed_at) FROM results WHERE run_id = ?
    GROUP BY outcome ORDER BY outcome
"""


@dataclass(frozen=True, slots=True)
class RunSummary:
    """One row of `evaluation_runs` with the names behind its ids; while it runs, its counts so far.

    Its score is the one before a cap; `capped` is the one after it, None where the cap lowers nothing. `status` is
    `waiting` where it has ended and calls of its session are in `batches`: `token`, `state`, `model`, `host`, number
    of `calls` without an answer, `since` and `until` (ISO 8601).
    """

    id: int
    session_id: str
    benchmark: str
    version: str
    model: str
    status: str
    scope: str
    started_at: str
    completed_at: str | None
    total_tests: int
    passed_tests: int | None
    failed_tests: int | None
    error_tests: int | None
    skipped_tests: int | None
    neutral_tests: int | None
    total_evaluations: int | None
    score: float | None
    score_low: float | None
    score_high: float | None
    capped: float | None
    coverage: float | None
    pass_rate: float | None
    cost_usd: float | None
    known_cost_usd: float | None
    kind: str
    benchmark_place: str | None
    batches: tuple[Mapping[str, JsonValue], ...]

    @property
    def key(self) -> BenchmarkKey:
        """Which benchmark it is of."""
        return BenchmarkKey(self.benchmark, self.kind, self.benchmark_place or None)


@dataclass(frozen=True, slots=True)
class RunDetail(RunSummary):
    """A run with what it was made from.

    Args:
        provider: Who served the model; empty when unknown.
        base_url: Its server; None for the provider's own.
        benchmark_hash: SHA-256 over everything that can change a case or a score.
        rescored_from: The run whose replies were judged anew; None for a run that asked.
        settings: Everything that can change an answer or a verdict.
        outcomes: Outcome and reason (None for a plain verdict) to the number of results so far, where asked for.
        baseline: The `run` and `session`, and the `file` unless it is this one, that its session compared it with, or
            the `reason` for none; `gone` has the benchmarks of it that were gone. None where there was no baseline.
    """

    provider: str
    base_url: str | None
    benchmark_hash: str
    plugin_version: str
    rescored_from: int | None
    settings: Mapping[str, JsonValue]
    outcomes: Mapping[tuple[str, str | None], int]
    baseline: Mapping[str, JsonValue] | None = None

    def count(self, outcome: str) -> int:
        """Return the number of results with an outcome so far."""
        return sum(count for (name, _), count in self.outcomes.items() if name == outcome)


def runs(path: Path, session_id: str | None = None) -> tuple[RunSummary, ...]:
    """Return every run of a file, or of one session, in the order they were opened."""
    which = " WHERE session_id = ifnull(:session, session_id) ORDER BY evaluation_runs.id"
    with reading(path) as conn:
        return _made(RunSummary, conn, which, {"session": session_id})


_Run = TypeVar("_Run", bound=RunSummary)


def _made(
    kind: type[_Run], conn: sqlite3.Connection, which: str, values: Mapping[str, Cell]
) -> tuple[_Run, ...]:
    leases, now_s = leases_of(conn), time.time()
    return tuple(
        from_row(
            kind,
            {
                "outcomes": {},
                **row,
                **_uncapped(row),
                **_so_far(conn, row),
                **{name: _json_object(row, name) for name in ("settings", "baseline")},
                **_status(conn, str(row["status"]), str(row["session_id"]), leases, now_s),
            },
        )
        for row in named_rows(conn.execute(_RUNS + which, values))
    )


def _status(
    conn: sqlite3.Connection, stored: str, session_id: str, leases: Mapping[str, Lease], now_s: float
) -> dict[str, Any]:
    """Return the status and the batches of a run; one that has ended with calls in batches waits for them."""
    status = true_status(stored, leases.get(session_id), now_s)
    found = [] if status == "complete" else _open_batches(conn, session_id)
    batches = tuple(_shown(row) for row in found if row["pending"])
    is_waiting = status != "running" and any(batch["state"] != "planned" for batch in batches)
    return {"status": "waiting" if is_waiting else status, "batches": batches}


def _shown(row: Mapping[str, Any]) -> Mapping[str, JsonValue]:
    host = row["address"].partition("//")[2].partition("/")[0].rpartition("@")[2]
    named = {name: row[name] for name in ("token", "state", "model", "since", "until")}
    return {**named, "host": host, "calls": len(row["pending"])}


def open_batches(path: Path, session_id: str) -> list[Mapping[str, Any]]:
    """Return the batches of a session that are not read, the newest first.

    Returns:
        Columns by name, and as `pending` the `keys` of the calls without an answer on record.
    """
    with reading(path) as conn:
        return _open_batches(conn, session_id)


def _open_batches(conn: sqlite3.Connection, session_id: str) -> list[Mapping[str, Any]]:
    return [
        {**row, "keys": _json_object(row, "keys"), "pending": json.loads(str(row["pending"]))}
        for row in named_rows(conn.execute(_OPEN, {"session": session_id}))
    ]


def run_uuids(path: Path, session_id: str) -> Mapping[int, Sequence[str]]:
    """Return the UUID of each run of a session by its id, behind it those of the shards' runs that it is made of."""
    found: dict[int, list[str]] = {}
    with reading(path) as conn:
        for run_id, uuid in conn.execute(_UUIDS, {"session": session_id}):
            found.setdefault(run_id, []).append(str(uuid))
    return found


def _uncapped(row: Mapping[str, Cell]) -> Mapping[str, Cell]:
    score, raw = row["score"], row["score_raw"]
    return {"score": score, "capped": None} if raw in (None, score) else {"score": raw, "capped": score}


def _so_far(conn: sqlite3.Connection, row: Mapping[str, Cell]) -> Mapping[str, Cell]:
    """Return the counts of a run that has not written its own: it runs, or was killed."""
    run_id = row["id"]
    return run_counts(conn, run_id) if row["passed_tests"] is None and isinstance(run_id, int) else {}


def _json_object(row: Mapping[str, Cell], name: str) -> Mapping[str, JsonValue] | None:
    if row[name] is None:
        return None
    try:
        found = json.loads(str(row[name]))
    except ValueError as error:
        found = str(error)
    if isinstance(found, dict):
        return found
    fault = sqlite3.DatabaseError(f"`{name}` of run {row['id']!s} is not a JSON object: {str(found)[:80]}")
    fault.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    raise fault


def run_detail(path: Path, run_id: int | None) -> RunDetail | None:
    """Return one run, or the newest, with its settings; None when the file has no such run."""
    newest = "ORDER BY evaluation_runs.id DESC LIMIT 1"
    which = f" WHERE evaluation_runs.id = ifnull(:run_id, evaluation_runs.id) {newest}"
    with reading(path) as conn:
        found = _made(RunDetail, conn, which, {"run_id": run_id})
        counts = conn.execute(_OUTCOMES, (found[0].id,)).fetchall() if found else []
    outcomes = {(outcome, reason): count for outcome, reason, count in counts}
    return replace(found[0], outcomes=outcomes) if found else None


def unfinished_runs(path: Path, run_id: int | None = None) -> tuple[RunDetail, ...]:
    """Return all runs of the last session that is not complete, or of the session of one run; none without a file."""
    if holds_nothing(path):
        return ()
    which = f" WHERE session_id = ({SESSION_OF}) ORDER BY evaluation_runs.id"
    with reading(path) as conn:
        return _made(RunDetail, conn, which, {"run_id": run_id})


def judges_of(settings: Mapping[str, object]) -> tuple[str, ...]:
    """Return the ids of a run's marking models, in order, from its settings; an older run names one at most."""
    several, one = settings.get("judges"), settings.get("judge")
    return tuple(map(str, several if isinstance(several, list) else [one] if one else []))


def configured_alike(path: Path, run_id: int) -> tuple[tuple[int, int], ...]:
    """Return other complete runs of the same content, model and settings, the newest first, with their repetitions."""
    found = []
    with reading(path) as conn:
        for other, theirs, ours in conn.execute(_ALIKE, (run_id,)):
            first, second = (json.loads(text) for text in (theirs, ours))
            same = all(
                (first.get(name) or None) == (second.get(name) or None) for name in (*DECIDING, "variant_of")
            )
            if same and judges_of(first) == judges_of(second):
                found.append((int(other), int(first.get("repeat") or 1)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """How far a run is.

    Args:
        status: As stored, but `interrupted` where its process is gone and has not recorded it.
        planned: Cases times repetitions.
        stamp: Changes with every result that comes or is replaced, and with the status.
        passed: Results so far; likewise the other outcomes.
    """

    run_id: int
    status: str
    planned: int
    stamp: str
    passed: int
    failed: int
    error: int
    skipped: int

    @property
    def done(self) -> int:
        """Results so far."""
        return self.passed + self.failed + self.error + self.skipped


class ProgressReader:
    """One connection that is asked again and again; asking costs microseconds while nothing is written."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._conn = opened(path)
        self._place = FilePlace(path)
        self._seen = -1

    @property
    def is_kept(self) -> bool:
        """Whether the file that is read still stands at its place."""
        return self._place.is_kept

    def has_changed(self) -> bool:
        """Return whether another connection has written since the last call."""
        try:
            (version,) = self._conn.execute("PRAGMA data_version").fetchone()
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error
        seen, self._seen = self._seen, int(version)
        return seen != self._seen

    def progress(self) -> Mapping[int, RunProgress]:
        """Return how far every run is, by its number."""
        try:
            return {run.run_id: run for run in _progress(self._conn, time.time())}
        except sqlite3.Error as error:
            raise store_error(self._path, error) from error

    def close(self) -> None:
        """Close the connection."""
        self._conn.close()


def runs_progress(path: Path) -> Mapping[int, RunProgress]:
    """Return how far every run of a file is now."""
    with contextlib.closing(ProgressReader(path)) as reader:
        return reader.progress()


def _progress(conn: sqlite3.Connection, now_s: float) -> Iterator[RunProgress]:
    leases = leases_of(conn)
    for run_id, status, planned, *stored, ended, session_id in conn.execute(_PROGRESS_RUNS).fetchall():
        now = _status(conn, status, session_id, leases, now_s)["status"]
        counts, seen = stored, f"{stored} {ended}"
        if status == "running" or None in stored:
            rows = conn.execute(_PROGRESS_RESULTS, (run_id,)).fetchall()
            found = {outcome: count for outcome, count, _, _ in rows}
            counts, seen = [found.get(outcome, 0) for outcome in _PROGRESS_OUTCOMES], str(rows)
        yield RunProgress(run_id, now, planned, f"{now} {seen}", *counts)
