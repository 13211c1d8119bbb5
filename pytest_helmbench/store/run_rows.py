"""The life of a run: opened, alive, closed, or found dead."""

from __future__ import annotations

import json
import os
import platform
import sqlite3
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import Outline
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.store.benchmark_sizes import write_size
from pytest_helmbench.store.broken_cases import write_broken
from pytest_helmbench.store.cells import as_json, safe_text
from pytest_helmbench.store.outcome_counts import IS_CASE
from pytest_helmbench.store.plans import merge_plan, write_plan
from pytest_helmbench.store.sample_rows import write_sample
from pytest_helmbench.store.shard_rows import ShardRecord, write_shard

__all__ = [
    "RunRecord",
    "RunTotals",
    "beat",
    "interrupt_dead_runs",
    "is_dead",
    "iso_time",
    "own_process",
    "process_lives",
    "reopen_run",
    "seconds_since_epoch",
    "settings_json",
    "write_run",
    "write_totals",
]

_UNSEEN_PROCESS_S = 600.0  # a process on another machine cannot be looked for: only silence speaks


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One benchmark × model of a session, as it starts.

    Args:
        benchmark: What is asked.
        model: Id of the model under test.
        provider: Who serves it.
        base_url: Its server; None for the provider's own.
        scope: `whole`, `selected`, `shard` or `by_outcome`.
        total_tests: Cases × repetitions planned.
        total_evaluations: Evaluation rows planned; None when unknown.
        settings: Everything that can change an answer or a verdict, in JSON types; no keys.
        plugin_version: Ours.
        started_at: ISO 8601 UTC.
        codes: Planned cases; repetitions are in the settings.
        rescored_from: The run whose replies are judged anew; None for a run that asks.
        defined: Cases that the files of the benchmark define, before any selection; empty where nobody knows.
        continues: `evaluation_runs.id` of the run that goes on; None for a new one.
        sample: What of the benchmark the planned cases are; None for all that were selected.
        shard: Which share of a plan it is; None for all of it.
        place: Where the benchmark lies, see `place_of`; None where it has no place.
    """

    benchmark: Outline
    model: str
    provider: str
    base_url: str | None
    scope: str
    total_tests: int
    total_evaluations: int | None
    settings: Mapping[str, Any]
    plugin_version: str
    started_at: str
    codes: tuple[str, ...] = ()
    rescored_from: int | None = None
    defined: tuple[str, ...] = ()
    broken: tuple[BrokenCase, ...] = ()
    continues: int | None = None
    sample: Sample | None = None
    shard: ShardRecord | None = None
    place: str | None = None


@dataclass(frozen=True, slots=True)
class RunTotals:
    """What is known only at the end of a run; counts and costs are taken from its rows.

    Args:
        status: `complete`, `partial` or `interrupted`.
        completed_at: ISO 8601 UTC.
        score: In [0, 1], after floors; None when undefined.
        score_low: Lower end of the 95 % interval.
        score_high: Upper end.
        score_raw: Before the cap of a breached floor.
        coverage: In [0, 1].
    """

    status: str
    completed_at: str
    score: float | None = None
    score_low: float | None = None
    score_high: float | None = None
    score_raw: float | None = None
    coverage: float | None = None


def iso_time(epoch_s: float) -> str:
    """Return `2026-07-04T12:00:00.000+00:00`."""
    return datetime.fromtimestamp(epoch_s, UTC).isoformat(timespec="milliseconds")


def settings_json(run: RunRecord) -> str:
    """Return the run's settings with the process that writes them.

    Raises:
        TypeError: A setting is no JSON type.
    """
    return as_json({**run.settings, "process": own_process()})


def own_process() -> dict[str, object]:
    """Return what names this process, here and elsewhere."""
    pid = os.getpid()
    return {
        "host": platform.node(),
        "pid": pid,
        "started": _process_start(pid),
        "namespace": _namespace(),
    }


def write_run(conn: sqlite3.Connection, values: tuple[str, int, int, str, str], run: RunRecord) -> int:
    """Insert a run as `running` and return its id.

    Args:
        conn: Inside a write transaction.
        values: session_id, benchmark_id, llm_id, settings, heartbeat_at.
        run: The rest.
    """
    session_id, benchmark_id, llm_id, settings, heartbeat_at = values
    cursor = conn.execute(
        "INSERT INTO evaluation_runs (session_id, benchmark_id, llm_id, started_at, status, scope, total_tests,"
        " total_evaluations, settings, benchmark_hash, plugin_version, rescored_from, heartbeat_at,"
        " benchmark_place) VALUES (?, ?, ?, ?, 'running', ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            safe_text(session_id),
            benchmark_id,
            llm_id,
            run.started_at,
            run.scope,
            run.total_tests,
            run.total_evaluations,
            settings,
            run.benchmark.hash,
            run.plugin_version,
            run.rescored_from,
            heartbeat_at,
            safe_text(run.place or ""),
        ),
    )
    assert cursor.lastrowid is not None  # an INSERT always has one
    write_plan(conn, cursor.lastrowid, run.codes)
    write_size(conn, cursor.lastrowid, run.defined)
    write_broken(conn, cursor.lastrowid, run.broken)
    write_sample(conn, cursor.lastrowid, run.sample)
    write_shard(conn, cursor.lastrowid, run.shard)
    return cursor.lastrowid


def reopen_run(
    conn: sqlite3.Connection, run_id: int, values: tuple[str, int, int, str, str], run: RunRecord
) -> int:
    """Let an unfinished run go on under its id; what it has planned before stays planned.

    Args:
        conn: Inside a write transaction.
        run_id: `evaluation_runs.id`.
        values: session_id (unused: the run keeps its own), benchmark_id, llm_id, settings, heartbeat_at.
        run: The rest.
    """
    _, benchmark_id, _, settings, heartbeat_at = values
    codes = merge_plan(conn, run_id, run.codes)
    write_broken(conn, run_id, run.broken)
    write_sample(conn, run_id, run.sample)
    write_shard(conn, run_id, run.shard)
    per_case = run.total_tests // len(run.codes) if run.codes else 1
    conn.execute(
        "UPDATE evaluation_runs SET status = 'running', completed_at = NULL, benchmark_id = ?, benchmark_hash = ?,"
        " settings = ?, plugin_version = ?, heartbeat_at = ?, total_tests = ?, benchmark_place = ?,"
        " scope = iif(? = 'whole', 'whole', scope) WHERE id = ?",
        (
            benchmark_id,
            run.benchmark.hash,
            settings,
            run.plugin_version,
            heartbeat_at,
            len(codes) * per_case,
            safe_text(run.place or ""),
            run.scope,
            run_id,
        ),
    )
    return run_id


def write_totals(conn: sqlite3.Connection, run_id: int, totals: RunTotals) -> None:
    """Close a run: what the caller knows, and what its rows say.

    Passed and failed count every judged row; neutral counts those among them that scores ignore.
    """
    conn.execute(
        "UPDATE evaluation_runs SET status = ?, completed_at = ?, score = ?, score_low = ?, score_high = ?,"
        " score_raw = ?, coverage = ? WHERE id = ?",
        (
            totals.status,
            totals.completed_at,
            totals.score,
            totals.score_low,
            totals.score_high,
            totals.score_raw,
            totals.coverage,
            run_id,
        ),
    )
    _write_counts(conn, run_id)


def _write_counts(conn: sqlite3.Connection, run_id: int) -> None:
    counts = conn.execute(
        f"SELECT count(*) FILTER (WHERE NOT {IS_CASE}),"
        " count(*) FILTER (WHERE outcome = 'passed'), count(*) FILTER (WHERE outcome = 'failed'),"
        f" count(*) FILTER (WHERE outcome = 'error'), count(*) FILTER (WHERE outcome = 'skipped' AND {IS_CASE}),"
        " count(*) FILTER (WHERE neutral = 1 AND outcome IN ('passed', 'failed')),"
        " (SELECT count(*) FROM evaluations JOIN results AS judged ON judged.id = evaluations.result_id"
        "  WHERE judged.run_id = :run_id)"
        " FROM results WHERE run_id = :run_id",
        {"run_id": run_id},
    ).fetchone()
    # v_costs is NULL as a whole where one purpose is: sum() alone would skip it.
    costs = conn.execute(
        "SELECT CASE WHEN count(*) = count(cost_usd) AND NOT EXISTS"
        " (SELECT 1 FROM sent_calls WHERE run_id = :run_id) THEN total(cost_usd) END, total(known_cost_usd)"
        " FROM v_costs WHERE run_id = :run_id",
        {"run_id": run_id},
    ).fetchone()
    # What another tool has run has no calls: its costs stand with its results.
    imported = conn.execute(
        "SELECT CASE WHEN count(*) = count(results.cost_usd) THEN total(results.cost_usd) END,"
        " total(results.cost_usd) FROM results JOIN evaluation_runs ON evaluation_runs.id = results.run_id"
        " WHERE run_id = :run_id AND json_extract(settings, '$.imported_from') IS NOT NULL HAVING count(*) > 0",
        {"run_id": run_id},
    ).fetchone()
    costs = imported or costs
    conn.execute(
        "UPDATE evaluation_runs SET total_tests = total_tests - ?,"
        " passed_tests = ?, failed_tests = ?, error_tests = ?, skipped_tests = ?,"
        " neutral_tests = ?, total_evaluations = ?, cost_usd = ?, known_cost_usd = ? WHERE id = ?",
        (*counts, *costs, run_id),
    )


def beat(conn: sqlite3.Connection, run_ids: Iterable[int], at: str) -> None:
    """Say that these runs are alive."""
    conn.executemany(
        "UPDATE evaluation_runs SET heartbeat_at = ? WHERE id = ?",
        [(at, run_id) for run_id in run_ids],
    )


def interrupt_dead_runs(conn: sqlite3.Connection, now_s: float, silent_s: float) -> tuple[int, ...]:
    """Mark running runs as `interrupted` whose process is gone, with their counts, and return their ids.

    Args:
        conn: Inside a write transaction.
        now_s: Seconds since the epoch.
        silent_s: Age of the heartbeat from which on a run may be called dead.
    """
    running = conn.execute("SELECT id, settings, heartbeat_at FROM evaluation_runs WHERE status = 'running'")
    dead = tuple(
        run_id
        for run_id, settings, heartbeat_at in running.fetchall()
        if is_dead(json.loads(settings).get("process"), heartbeat_at, now_s, silent_s)
    )
    for run_id in dead:
        conn.execute("UPDATE evaluation_runs SET status = 'interrupted' WHERE id = ?", (run_id,))
        _write_counts(conn, run_id)
    return dead


def is_dead(process: object, heard: str | None, now_s: float, silent_s: float) -> bool:
    """Return whether nobody writes a run any more.

    Args:
        process: That writes it, as `own_process` names it.
        heard: When its last sign of life came; None for never.
        now_s: Seconds since the epoch.
        silent_s: From which age on it may be called dead.
    """
    silence_s = now_s - (0.0 if heard is None else seconds_since_epoch(heard))
    lives = process_lives(process)
    if lives is None:
        return silence_s > max(silent_s, _UNSEEN_PROCESS_S)
    return not lives and silence_s > silent_s


def process_lives(process: object) -> bool | None:
    """Return whether the process that opened a run (see `own_process`) still lives; None where that cannot be seen."""
    if not isinstance(process, dict):
        return None
    pid, started = process.get("pid"), process.get("started")
    # On Windows os.kill(pid, 0) would send Ctrl-C instead of asking.
    if sys.platform == "win32" or process.get("host") != platform.node() or not isinstance(pid, int):
        return None
    # Containers of one machine may share a host name; each has pids of its own.
    here = _namespace()
    if process.get("namespace", here) != here:
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # lives, and is somebody else's
    # Pids are used again, soonest after a reboot or in a container: the start tells them apart.
    return started is None or _process_start(pid) == started


def _namespace() -> str | None:
    """Return what names the set of processes that can be seen here; None where the system does not say."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return None


def _process_start(pid: int) -> int | None:
    """Return the start of a process in clock ticks since boot; None where the system does not say."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = stat.rpartition(b")")[2].split()
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def seconds_since_epoch(iso: str) -> float:
    """Return the time that `iso_time` has written."""
    return datetime.fromisoformat(iso).timestamp()
