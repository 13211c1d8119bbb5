"""The life of a run: opened, going on, closed, or found dead."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.ids import new_id
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.core.outline import Outline
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.core.shard import Shard
from pytest_helmbench.store.database_file import writing
from pytest_helmbench.store.leases import leases_of, true_status
from pytest_helmbench.store.plan_rows import (
    IS_CASE,
    broken_rows,
    packed,
    write_broken,
    write_plan,
    write_sample,
)
from pytest_helmbench.store.table_rows import as_json, insert_into, safe_text, update_of

_COUNTS = (
    *("no_cases", "passed_tests", "failed_tests", "error_tests", "skipped_tests", "neutral_tests"),
    *("total_evaluations", "cost_usd", "known_cost_usd"),
)


@dataclass(frozen=True, slots=True)
class ShardRecord:
    """A run of one shard, and the whole plan that it is a share of.

    Args:
        scope: Of the whole plan: `whole` or `selected`.
        tests: Cases × repetitions of the whole plan.
        codes: The cases of the whole plan.
        broken: Those that cannot run, in all shards.
    """

    shard: Shard
    scope: str
    tests: int
    codes: tuple[str, ...]
    broken: tuple[BrokenCase, ...]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One benchmark × model of a session, as it starts.

    Args:
        provider: Who serves it.
        base_url: Its server; None for the provider's own.
        scope: `whole`, `selected`, `shard` or `by_outcome`.
        total_tests: Cases × repetitions planned.
        total_evaluations: Evaluation rows planned; None when unknown.
        settings: Everything that can change an answer or a verdict, in JSON types; no keys.
        started_at: ISO 8601 UTC.
        codes: Planned cases; repetitions are in the settings.
        rescored_from: The run whose replies are judged anew; None for a run that asks.
        defined: Cases that the files of the benchmark define, before any selection; empty where it is unknown.
        continues: `evaluation_runs.id` of the run that goes on; None for a new one.
        sample: The sample that the planned cases are; None for all that were selected.
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
    """The end of a run; counts and costs are taken from its rows.

    Args:
        status: `complete`, `partial` or `interrupted`.
        completed_at: ISO 8601 UTC.
        score: In [0, 1], after floors; None when undefined.
        score_low: Lower end of the 95 % interval.
        score_raw: Before the cap of a breached floor.
        coverage: In [0, 1].
        pass_rate: Passed share of the judged rows that are not neutral; None without one.
        points_lost: By code and repetition, of the cases that have lost points; None without a score.
    """

    status: str
    completed_at: str
    score: float | None = None
    score_low: float | None = None
    score_high: float | None = None
    score_raw: float | None = None
    coverage: float | None = None
    pass_rate: float | None = None
    points_lost: Mapping[tuple[str, int], float] | None = None


def write_run(
    conn: sqlite3.Connection, session_id: str, benchmark_id: str, llm_id: str, run: RunRecord
) -> int:
    """Insert a run as `running` and return its id; inside a write transaction.

    Raises:
        TypeError: A setting is not of a JSON type.
    """
    row = {
        "uuid": new_id(),
        "session_id": safe_text(session_id),
        "benchmark_id": benchmark_id,
        "llm_id": llm_id,
        "started_at": run.started_at,
        "status": "running",
        "scope": run.scope,
        "total_tests": run.total_tests,
        "total_evaluations": run.total_evaluations,
        "settings": as_json(run.settings),
        "benchmark_hash": run.benchmark.hash,
        "benchmark_place": safe_text(run.place or ""),
        "plugin_version": run.plugin_version,
        "rescored_from": run.rescored_from,
    }
    run_id = conn.execute(insert_into("evaluation_runs", row), row).lastrowid
    assert run_id is not None  # an INSERT always has one
    _write_plan_of(conn, run_id, run)
    return run_id


def reopen_run(conn: sqlite3.Connection, run_id: int, benchmark_id: str, run: RunRecord) -> int:
    """Let an unfinished run go on under its id, inside a write transaction.

    Its earlier plan stays planned, and the shards that it was merged of stay in its settings.
    """
    codes = _write_plan_of(conn, run_id, run)
    per_case = run.total_tests // len(run.codes) if run.codes else 1
    (before,) = conn.execute("SELECT settings FROM evaluation_runs WHERE id = ?", (run_id,)).fetchone()
    merged = {name: value for name, value in json.loads(before).items() if name == "merged"}
    row: dict[str, Cell] = {
        "id": run_id,
        "status": "running",
        "completed_at": None,
        "benchmark_id": benchmark_id,
        "benchmark_hash": run.benchmark.hash,
        "settings": as_json({**run.settings, **merged}),
        "plugin_version": run.plugin_version,
        "total_tests": len(codes) * per_case,
        "benchmark_place": safe_text(run.place or ""),
        **({"scope": "whole"} if run.scope == "whole" else {}),
    }
    conn.execute(update_of("evaluation_runs", row), row)
    return run_id


def _write_plan_of(conn: sqlite3.Connection, run_id: int, run: RunRecord) -> tuple[str, ...]:
    """Write the plan of a run, or what has changed in it when it goes on; return all cases that it has planned."""
    codes = write_plan(conn, run_id, run.codes)
    if run.defined:
        conn.execute("UPDATE plans SET defined = ? WHERE run_id = ?", (packed(run.defined), run_id))
    write_broken(conn, run_id, run.broken)
    write_sample(conn, run_id, run.sample)
    if run.shard is None:
        return codes
    shard = run.shard
    about = {
        "index": shard.shard.index,
        "of": shard.shard.of,
        "scope": shard.scope,
        "tests": shard.tests,
        "broken": broken_rows(shard.broken),
    }
    conn.execute("UPDATE evaluation_runs SET shard = ? WHERE id = ?", (as_json(about), run_id))
    conn.execute("UPDATE plans SET whole = ? WHERE run_id = ?", (packed(shard.codes), run_id))
    return codes


def write_totals(conn: sqlite3.Connection, run_id: int, totals: RunTotals) -> None:
    """Close a run with its totals, and with the counts of its rows.

    Passed and failed count every judged row; neutral counts those among them that scores ignore.
    """
    names = [name for name in RunTotals.__dataclass_fields__ if name != "points_lost"]
    row = {"id": run_id, **{name: getattr(totals, name) for name in names}}
    conn.execute(update_of("evaluation_runs", row), row)
    if totals.points_lost is not None:
        judged = "CASE WHEN outcome IN ('passed', 'failed') THEN 0 END"
        conn.execute(f"UPDATE results SET points_lost = {judged} WHERE run_id = ?", (run_id,))
        conn.executemany(
            "UPDATE results SET points_lost = ? WHERE run_id = ? AND code = ? AND repetition = ?",
            ((points, run_id, *case) for case, points in totals.points_lost.items()),
        )
    _write_counts(conn, run_id)


def write_baselines(path: Path, baselines: Mapping[int, Mapping[str, JsonValue]]) -> None:
    """Write which run each closed run was compared with, by run.

    Raises:
        StoreError: The file, which this process does not write otherwise, cannot be written.
    """
    with writing(path) as conn:
        conn.executemany(
            "UPDATE evaluation_runs SET baseline = ? WHERE id = ?",
            [(as_json(baseline), run_id) for run_id, baseline in baselines.items()],
        )


def run_counts(conn: sqlite3.Connection, run_id: int) -> dict[str, Any]:
    """Return what a run has stored so far, by the columns that hold it once the run has ended, and `no_cases`."""
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
    # A run of another tool has no calls: its costs stand with its results.
    imported = conn.execute(
        "SELECT CASE WHEN count(*) = count(results.cost_usd) THEN total(results.cost_usd) END,"
        " total(results.cost_usd) FROM results JOIN evaluation_runs ON evaluation_runs.id = results.run_id"
        " WHERE run_id = :run_id AND json_extract(settings, '$.imported_from') IS NOT NULL HAVING count(*) > 0",
        {"run_id": run_id},
    ).fetchone()
    return dict(zip(_COUNTS, (*counts, *(imported or costs)), strict=True))


def _write_counts(conn: sqlite3.Connection, run_id: int) -> None:
    counts = run_counts(conn, run_id)
    columns = ", ".join(f"{name} = :{name}" for name in _COUNTS[1:])
    conn.execute(
        f"UPDATE evaluation_runs SET total_tests = total_tests - :no_cases, {columns} WHERE id = :run_id",
        {**counts, "run_id": run_id},
    )


def interrupt_dead_runs(conn: sqlite3.Connection, now_s: float) -> tuple[int, ...]:
    """Mark running runs as `interrupted` whose process is gone, with their counts, and return their ids."""
    leases = leases_of(conn)
    running = conn.execute("SELECT id, session_id FROM evaluation_runs WHERE status = 'running'").fetchall()
    dead = tuple(
        run_id
        for run_id, session_id in running
        if true_status("running", leases.get(session_id), now_s) == "interrupted"
    )
    for run_id in dead:
        conn.execute("UPDATE evaluation_runs SET status = 'interrupted' WHERE id = ?", (run_id,))
        _write_counts(conn, run_id)
    return dead
