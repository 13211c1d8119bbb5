"""Questions to a results file about Bench Packs: what they have said of results, runs and scenarios."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore, PackStatus, ScenarioResult
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.store.reading import reading
from pytest_helmbench.store.table_rows import made_of, named_rows

_WITHOUT_TEXTS = "result_id, status, pack_results.score, points, timings"


class BenchPackResult(NamedTuple):
    """What a pack has said of a judged result, as it was said."""

    code: str
    repetition: int
    stated: JsonObject


@dataclass(frozen=True, slots=True)
class BenchPackRow:
    """One row of `pack_results`.

    Args:
        status: `pass`, `partial` or `fail`.
        score: On the pack's own scale; None for none. `points` likewise.
        points: See `score`.
        timings: As the pack says, `valid` False where they are not the model's; None for none.
        summary: None for none, and unless texts were asked for; `note`, `raw_log`, `output`, `verifier` and
            `artifacts` likewise.
    """

    status: str
    score: float | None
    points: float | None
    timings: JsonValue = None
    summary: str | None = None
    note: str | None = None
    raw_log: str | None = None
    output: JsonValue = None
    verifier: JsonValue = None
    artifacts: JsonValue = None

    @property
    def timed(self) -> bool:
        """Whether the times are the model's: no reply came from the record."""
        return not isinstance(self.timings, Mapping) or self.timings.get("valid") is not False


@dataclass(frozen=True, slots=True)
class BenchPackScenario:
    """A scenario as its pack has listed it; empty where it says nothing."""

    code: str
    title: str
    category: str
    description: str
    tags: tuple[str, ...]
    cards: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class BenchPackEvent:
    """One row of `events`.

    Args:
        code: Of its result; None for an event of the run. `repetition` likewise.
        repetition: See `code`.
        type: `model_progress`, …
        payload: As it was told.
        at: ISO 8601 UTC.
    """

    code: str | None
    repetition: int | None
    type: str
    payload: JsonObject
    at: str


_ROWS = """
    SELECT {columns}
    FROM pack_results JOIN results ON results.id = result_id
    WHERE results.run_id = :run_id AND (:code IS NULL OR results.code = :code)
"""
_JUDGED = """
    SELECT result_id, results.code AS scenario, status, pack_results.score, points, summary, note,
        coalesce(json_extract(timings, '$.valid'), 1) AS timed
    FROM pack_results JOIN results ON results.id = result_id
    WHERE results.run_id = ? AND results.outcome IN ('passed', 'failed')
"""
_RESULTS = """
    SELECT results.code, results.repetition, json_extract(payload, '$.result')
    FROM results JOIN events ON events.result_id = results.id AND events.type = 'scenario_result'
    LEFT JOIN scenarios ON scenarios.id = results.scenario_id
    WHERE results.run_id = ? AND results.outcome IN ('passed', 'failed')
    ORDER BY results.repetition, scenarios.rowid, results.rowid
"""
_EVENTS = """
    SELECT results.code, results.repetition, events.type, events.payload, events.at
    FROM events LEFT JOIN results ON results.id = events.result_id
    WHERE events.run_id = :run_id AND (:code IS NULL OR results.code = :code)
    ORDER BY events.at, events.id
"""
_SCENARIOS = """
    SELECT scenarios.code, title, evaluation FROM scenarios
    JOIN evaluation_runs ON evaluation_runs.benchmark_id = scenarios.benchmark_id
    WHERE evaluation_runs.id = ? ORDER BY scenarios.rowid
"""


def bench_pack_rows(
    conn: sqlite3.Connection, run_id: int, code: str | None = None, *, with_text: bool
) -> dict[str, BenchPackRow]:
    """Return what a pack has said of the results of a run, by `results.id`.

    Args:
        conn: To a results file.
        run_id: `evaluation_runs.id`.
        code: Only this case.
        with_text: Also what may quote replies.
    """
    columns = "pack_results.*" if with_text else _WITHOUT_TEXTS
    found = named_rows(conn.execute(_ROWS.format(columns=columns), {"run_id": run_id, "code": code}))
    return {str(row["result_id"]): _row(row) for row in found}


def said_of_judged(conn: sqlite3.Connection, run_id: int) -> Mapping[str, ScenarioResult]:
    """Return what a pack has said of the judged cases of a run, by `results.id`; logs stay where they are."""
    return {
        str(row["result_id"]): made_of(
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


def untimed_results(path: Path, run_id: int) -> int:
    """Return for how many results of a run the times are not the model's.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        return sum(not row.timed for row in bench_pack_rows(conn, run_id, with_text=False).values())


def repetitions_of(conn: sqlite3.Connection, run_id: int, code: str) -> Mapping[str, int]:
    """Return the repetition of every result of a case, by `results.id`."""
    found = conn.execute("SELECT id, repetition FROM results WHERE run_id = ? AND code = ?", (run_id, code))
    return dict(found.fetchall())


def bench_pack_results(path: Path, run_id: int) -> tuple[BenchPackResult, ...]:
    """Return what a pack has said of every judged result of a run: by repetition, in the pack's own order.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        return tuple(
            BenchPackResult(code, repetition, json.loads(stated))
            for code, repetition, stated in conn.execute(_RESULTS, (run_id,))
        )


def bench_pack_scenarios(path: Path, run_id: int) -> tuple[BenchPackScenario, ...]:
    """Return the scenarios of the Bench Pack of a run, in its own order; empty for any other benchmark.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        found = [
            (code, title, json.loads(about)) for code, title, about in conn.execute(_SCENARIOS, (run_id,))
        ]
    return tuple(
        BenchPackScenario(
            code,
            title,
            about["groups"].get("category", ""),
            about["description"],
            tuple(about["tags"]),
            tuple((card["title"], card["content"]) for card in about["cards"]),
        )
        for code, title, about in found
        if about.get("type") == "scenario"
    )


def bench_pack_events(path: Path, run_id: int, code: str | None = None) -> tuple[BenchPackEvent, ...]:
    """Return the events of a run, or of one of its cases, in the order they happened.

    Raises:
        StoreError: The file is missing or no results file.
    """
    with reading(path) as conn:
        found = conn.execute(_EVENTS, {"run_id": run_id, "code": code}).fetchall()
    return tuple(
        BenchPackEvent(case, repetition, kind, json.loads(payload), at)
        for case, repetition, kind, payload, at in found
    )


def pack_score(path: Path, run_id: int) -> PackScore | None:
    """Return what a Bench Pack makes of a run; None for any other run, and where it could not be asked.

    Raises:
        StoreError: The file is missing or no results file.
    """
    query = "SELECT * FROM pack_scores WHERE run_id = ?"
    with reading(path) as conn:
        row = next(named_rows(conn.execute(query, (run_id,))), None)
    if row is None:
        return None
    return made_of(
        PackScore,
        row,
        categories=tuple(json.loads(str(row["categories"]))),
        summary=row["summary"] or "",
        partial=bool(row["partial"]),
        unit=row["unit"] or "",
        extra=json.loads(str(row["extra"])) if row.get("extra") else {},
    )


def _row(row: Mapping[str, Cell]) -> BenchPackRow:
    parts = {name: _json(row.get(name)) for name in ("timings", "output", "verifier", "artifacts")}
    return made_of(BenchPackRow, row, **parts)


def _json(text: Cell) -> JsonValue:
    value: JsonValue = None if text is None else json.loads(str(text))
    return value
