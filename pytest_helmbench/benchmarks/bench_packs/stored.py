"""Questions to a results file about Bench Packs: what they have said about results, runs and scenarios."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    PackScore,
    PackStatus,
    ScenarioMeta,
    ScenarioResult,
)
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.table_rows import from_row, named_rows

_WITHOUT_TEXTS = "result_id, status, pack_results.score, points"
_JSON = ("timings", "output", "verifier", "artifacts")
_ROWS = """
    SELECT {columns} FROM pack_results JOIN results ON results.id = result_id
    WHERE results.run_id = :run_id AND (:code IS NULL OR results.code = :code)
"""
_JUDGED = """
    SELECT result_id, results.code AS scenario, status, pack_results.score, points, summary, note,
        coalesce(json_extract(timings, '$.valid'), 1) AS timed
    FROM pack_results JOIN results ON results.id = result_id
    WHERE results.run_id = ? AND results.outcome IN ('passed', 'failed')
"""
_UNTIMED = """
    SELECT count(*) FROM pack_results JOIN results ON results.id = result_id
    WHERE results.run_id = ? AND json_extract(timings, '$.valid') = 0
"""
_RESULTS = """
    SELECT results.repetition, json_extract(payload, '$.result')
    FROM results JOIN events ON events.result_id = results.id AND events.type = 'scenario_result'
    LEFT JOIN scenarios ON scenarios.id = results.scenario_id
    WHERE results.run_id = ? AND results.outcome IN ('passed', 'failed')
    ORDER BY results.repetition, scenarios.rowid, results.rowid
"""
_EVENTS = "SELECT type, payload, at FROM events WHERE result_id = ? ORDER BY at, id"
_SCENARIOS = """
    SELECT scenarios.code, title, evaluation FROM scenarios
    JOIN evaluation_runs ON evaluation_runs.benchmark_id = scenarios.benchmark_id
    WHERE evaluation_runs.id = ? ORDER BY scenarios.rowid
"""


class BenchPackEvent(NamedTuple):
    """One row of `events`; `at` is ISO 8601 UTC."""

    type: str
    payload: JsonObject
    at: str


def bench_pack_rows(
    conn: sqlite3.Connection, run_id: int, code: str | None = None, *, with_text: bool
) -> dict[str, JsonObject]:
    """Return what a pack has said about the results of a run, by `results.id`: the columns of `pack_results`.

    Args:
        conn: To a results file.
        run_id: `evaluation_runs.id`.
        code: Only this case.
        with_text: All columns; else status, score and points alone, since others may quote replies.
    """
    query = _ROWS.format(columns="pack_results.*" if with_text else _WITHOUT_TEXTS)
    return {
        str(row.pop("result_id")): {name: _value(name, cell) for name, cell in row.items()}
        for row in named_rows(conn.execute(query, {"run_id": run_id, "code": code}))
    }


def _value(column: str, cell: Cell) -> JsonValue:
    if cell is None or isinstance(cell, int | float):
        return cell
    found: JsonValue = json.loads(cell) if column in _JSON else str(cell)
    return found


def said_of_judged(conn: sqlite3.Connection, run_id: int) -> Mapping[str, ScenarioResult]:
    """Return what a pack has said about the judged cases of a run, by `results.id`; logs stay where they are."""
    return {
        str(row["result_id"]): from_row(
            ScenarioResult,
            row,
            status=PackStatus(str(row["status"])),
            summary=row["summary"] or "",
            note=row["note"] or "",
            raw_log="",
            stated={},
            timings_valid=row["timed"] != 0,
        )
        for row in named_rows(conn.execute(_JUDGED, (run_id,)))
    }


def untimed_results(conn: sqlite3.Connection, run_id: int) -> int:
    """Return for how many results of a run the times are not the model's."""
    (found,) = conn.execute(_UNTIMED, (run_id,)).fetchone()
    return int(found)


def bench_pack_results(path: Path, run_id: int) -> Mapping[int, list[JsonObject]]:
    """Return what a pack has said about every judged result of a run, by repetition, in the pack's own order.

    Raises:
        StoreError: The file is missing or no results file.
    """
    found: dict[int, list[JsonObject]] = {}
    with reading(path) as conn:
        for repetition, stated in conn.execute(_RESULTS, (run_id,)):
            found.setdefault(repetition, []).append(json.loads(stated))
    return found


def bench_pack_scenarios(conn: sqlite3.Connection, run_id: int) -> dict[str, ScenarioMeta]:
    """Return the scenarios of the Bench Pack of a run by id, in its own order; empty for any other benchmark."""
    found = [(code, title, json.loads(about)) for code, title, about in conn.execute(_SCENARIOS, (run_id,))]
    return {
        code: ScenarioMeta(
            code,
            title,
            category=about["groups"].get("category", ""),
            description=about["description"],
            tags=tuple(about["tags"]),
            cards=tuple((card["title"], card["content"]) for card in about["cards"]),
        )
        for code, title, about in found
        if about.get("type") == "scenario"
    }


def bench_pack_events(conn: sqlite3.Connection, result_id: str) -> tuple[BenchPackEvent, ...]:
    """Return the events of a result, in the order they happened."""
    return tuple(
        BenchPackEvent(kind, json.loads(payload), at)
        for kind, payload, at in conn.execute(_EVENTS, (result_id,))
    )


def pack_score(conn: sqlite3.Connection, run_id: int) -> PackScore | None:
    """Return what a Bench Pack makes of a run; None for any other run, and where it could not be asked."""
    row = next(named_rows(conn.execute("SELECT * FROM pack_scores WHERE run_id = ?", (run_id,))), None)
    if row is None:
        return None
    return from_row(
        PackScore,
        row,
        categories=tuple(json.loads(str(row["categories"]))),
        summary=row["summary"] or "",
        partial=bool(row["partial"]),
        unit=row["unit"] or "",
        extra=json.loads(str(row["extra"])) if row.get("extra") else {},
    )
