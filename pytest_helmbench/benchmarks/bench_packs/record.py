"""The record of Bench Packs: what a pack says, as a results file keeps it, and in the words of reports and exports."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple, TypeGuard

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    PackScore,
    PackStatus,
    ScenarioMeta,
    ScenarioResult,
)
from pytest_helmbench.core.json_types import JsonObject, JsonValue, as_text, is_number
from pytest_helmbench.core.kind_words import CaseWords, OwnColumns, OwnSection, ResultWords, RunWords
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.read.runs import run_detail
from pytest_helmbench.store.table_rows import from_row, named_rows

_CELLS = ("status", "score", "points")
_TEXTS = ("summary", "note", "raw_log")
"""A pack's words may quote replies: only where texts are asked for."""

_REPETITIONS = "SELECT id, repetition FROM results WHERE run_id = ? AND code = ?"
_LABEL_LIMIT = 40
_WORDS_LIMIT = 300
_MOST_CATEGORIES = 12
_LINE_LIMIT = 500
_LOG_LIMIT = 8_000
_MOST_EVENTS = 100
_CATEGORY = ("id", "label", "score", "weight", "unit")
_VALUE_LIMIT = 120
_LARGEST_WHOLE = 10**21
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


def amount(value: object) -> str:
    """Return a number of a pack's own scale, to four places; `-` for anything else."""
    if not is_number(value):
        return "-"
    return str(value) if isinstance(value, int) and abs(value) < _LARGEST_WHOLE else f"{round(value, 4):.15g}"


def _score_words(score: PackScore) -> RunWords:
    """Return what a pack makes of a run, in the parts that reports show."""
    unit = f" {excerpt(score.unit, _LABEL_LIMIT)}" if score.unit else ""
    total = f"{amount(score.total)}{unit}{' (not over all scenarios)' if score.partial else ''}"
    rows = tuple(
        (
            _one_line(str(category.get("label") or category.get("id"))),
            _with_unit(category.get("score"), category.get("unit")),
            amount(category.get("weight")),
        )
        for category in score.categories
    )
    categories = [f"{label} {number}" for label, number, _ in rows]
    values: list[tuple[str, str]] = []
    texts = [score.summary]
    for name, value in score.extra.items():
        if _has_words(value):
            texts.append(f"{name}: {value if isinstance(value, str) else _value(value)}")
        else:
            values.append((_one_line(name), _value(value)))
    texts = list(filter(None, texts))
    others = _first([f"{name} {value}" for name, value in values])
    said = _one_line("; ".join(texts), _WORDS_LIMIT)
    return RunWords(
        line="; ".join(filter(None, (f"the pack's own total: {total}", _first(categories), others))),
        said=said,
        facts=(
            ("pack's own total", total),
            ("its categories", ", ".join(categories)),
            ("its other values", others),
            ("its words", said),
        ),
        section=OwnSection(
            title="The pack's own scale",
            lead="Total",
            value=total,
            note="The score above is ours: the share passed.",
            head=("category", "score", "weight"),
            rows=rows,
            text="\n".join(texts),
            values=tuple(values),
        ),
    )


def _first(parts: list[str]) -> str:
    more = [f"{len(parts) - _MOST_CATEGORIES} more"] if len(parts) > _MOST_CATEGORIES else []
    return ", ".join([*parts[:_MOST_CATEGORIES], *more])


def _score_record(score: PackScore, *, with_text: bool) -> JsonObject:
    """Return what a pack makes of a run in JSON types; without texts, no word that it has put into it."""
    categories: list[JsonValue] = [
        dict(one) if with_text else _without_words(one) for one in score.categories
    ]
    stated = {name: value for name, value in score.extra.items() if with_text or not _has_words(value)}
    return {
        "total": score.total,
        "unit": score.unit or None,
        "partial": score.partial,
        "categories": categories,
        **({"summary": score.summary or None} if with_text else {}),
        **({"extra": stated} if stated else {}),
    }


def _case_lines(
    row: JsonObject | None, scenario: ScenarioMeta | None, events: Sequence[BenchPackEvent]
) -> list[str]:
    """Return what a pack says of a result, its detail cards and its events."""
    lines = ["", *_said(row)]
    log = str(row["raw_log"] or "") if row is not None else ""
    if log:
        cut = f" (the start of {len(log)} characters)" if len(log) > _LOG_LIMIT else ""
        lines += ["", f"raw log{cut}", *_quoted(excerpt(log, _LOG_LIMIT))]
    for title, content in () if scenario is None else scenario.cards:
        lines += ["", f"card: {_one_line(title)}", *_quoted(content)]
    if events:
        lines += ["", "events", *map(_event_line, events[:_MOST_EVENTS])]
    if len(events) > _MOST_EVENTS:
        lines.append(f"  … and {len(events) - _MOST_EVENTS} more")
    return lines


def suite_properties(pack: str, model: str, score: PackScore) -> list[tuple[str, str | float]]:
    """Return the properties that JUnit reports have of a run."""
    of = scrub(f"[{pack}][{model}]")
    partial: list[tuple[str, str | float]] = [(f"pack_partial{of}", "true")] if score.partial else []
    categories = [
        (f"pack_category{of}[{_one_line(str(category.get('id')))}]", part)
        for category in score.categories
        if is_number(part := category.get("score"))
    ]
    return [(f"pack_total{of}", score.total), *partial, *categories]


def _said(row: JsonObject | None) -> list[str]:
    if row is None:
        return ["pack: it has said nothing of this case"]
    points = "" if row["points"] is None else f", points {amount(row['points'])}"
    facts = {name: row[name] for name in ("summary", "note", "verifier", "artifacts")}
    timings = row["timings"]
    if isinstance(timings, dict) and timings.get("valid") is False:
        facts["times"] = "not the model's: a reply was a stored one"
    texts = {name: as_text(value) for name, value in facts.items() if value}
    return [
        f"pack: {row['status']}, score {amount(row['score'])}{points} (its own scale)",
        *(f"  {name.ljust(9)} {_one_line(text, _LINE_LIMIT)}" for name, text in texts.items()),
    ]


def _event_line(event: BenchPackEvent) -> str:
    message = event.payload.get("message")
    told = f"  {_one_line(message, _LINE_LIMIT)}" if isinstance(message, str) else ""
    return f"  {event.at[11:23]}  {_one_line(event.type)}{told}"


def _quoted(text: str) -> list[str]:
    """Return foreign lines moved to the right, so that they cannot pass for ours."""
    return [f"  | {line}".rstrip() for line in scrub(text).split("\n")]


def _one_line(text: str, limit: int = _LABEL_LIMIT) -> str:
    return excerpt(" ".join(text.split()), limit)


def _without_words(category: JsonObject) -> dict[str, JsonValue]:
    return {
        name: category[name]
        for name in _CATEGORY
        if name in category and (name != "unit" or _is_unit(category[name]))
    }


def _has_words(value: JsonValue) -> bool:
    """Return whether a value holds a text that is not a unit: it may quote a reply."""
    if isinstance(value, dict):
        return any(_has_words(part) for name, part in value.items() if name != "unit" or not _is_unit(part))
    if isinstance(value, list):
        return any(map(_has_words, value))
    return isinstance(value, str)


def _is_unit(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _LABEL_LIMIT


def _value(value: JsonValue) -> str:
    """Return a value on one line: numbers with their unit, anything else as JSON, cut."""
    if isinstance(value, dict) and value.keys() == {"value", "unit"} and is_number(value["value"]):
        return _with_unit(value["value"], value["unit"])
    if is_number(value):
        return amount(value)
    return _one_line(json.dumps(value, ensure_ascii=False), _VALUE_LIMIT)


def _with_unit(value: object, unit: object) -> str:
    return f"{amount(value)} {_one_line(unit)}" if isinstance(unit, str) and unit else amount(value)


class BenchPackRecord:
    columns = OwnColumns(tuple(f"pack_{name}" for name in _CELLS), tuple(f"pack_{name}" for name in _TEXTS))
    failures = "failed as"

    def statements(self, conn: sqlite3.Connection, run_id: int) -> Mapping[str, ScenarioResult]:
        return said_of_judged(conn, run_id)

    def results(
        self, path: Path, run_id: int, code: str | None, *, with_text: bool
    ) -> Mapping[str, ResultWords]:
        with reading(path) as conn:
            found = bench_pack_rows(conn, run_id, code, with_text=with_text)
        return {result_id: _result_words(row) for result_id, row in found.items()}

    def case(self, path: Path, run_id: int, code: str) -> Mapping[int, CaseWords]:
        found = {}
        with reading(path) as conn:
            scenario = bench_pack_scenarios(conn, run_id).get(code)
            rows = bench_pack_rows(conn, run_id, code, with_text=True)
            for result_id, repetition in conn.execute(_REPETITIONS, (run_id, code)).fetchall():
                found[repetition] = _case_words(
                    rows.get(result_id), scenario, bench_pack_events(conn, result_id)
                )
        return found

    def run(self, path: Path, run_id: int) -> RunWords | None:
        detail = run_detail(path, run_id)
        if detail is None:
            return None
        with reading(path) as conn:
            score = pack_score(conn, run_id)
            (untimed,) = conn.execute(_UNTIMED, (run_id,)).fetchone()
        cautions: list[str] = []
        if score is not None and score.partial:
            cautions.append("the pack's own total is not over all of its scenarios")
        if untimed:
            cases = f"{untimed} case{'' if untimed == 1 else 's'}"
            cautions.append(f"replies of {cases} were stored ones: the pack's times are not the model's")
        if score is None:
            return RunWords(cautions=tuple(cautions))
        return replace(
            _score_words(score),
            score=_score_record(score, with_text=False),
            score_with_text=_score_record(score, with_text=True),
            cautions=tuple(cautions),
            properties=tuple(suite_properties(detail.benchmark, detail.model, score)),
        )


RECORD = BenchPackRecord()


def _result_words(row: JsonObject) -> ResultWords:
    """Return the columns of an export, and what a report with texts shows of a failure."""
    cells = {f"pack_{name}": _cell(row.get(name)) for name in (*_CELLS, *_TEXTS)}
    titles = (f"pack: {row['status']}, score {amount(row['score'])}", "note", "raw log")
    texts = ((title, row.get(name)) for title, name in zip(titles, _TEXTS, strict=True))
    return ResultWords(cells, tuple((title, str(text)) for title, text in texts if text))


def _cell(value: JsonValue) -> str | float | None:
    return value if value is None or isinstance(value, str | int | float) else json.dumps(value)


def _case_words(
    row: JsonObject | None, scenario: ScenarioMeta | None, events: Sequence[BenchPackEvent]
) -> CaseWords:
    listed: dict[str, JsonValue] | None = None
    facts: Mapping[str, str] = {}
    if scenario is not None:
        facts = {
            "category": scenario.category,
            "tags": ", ".join(scenario.tags),
            "about": scenario.description,
        }
        listed = {
            "code": scenario.id,
            "title": scenario.title,
            "category": scenario.category,
            "description": scenario.description,
            "tags": [*scenario.tags],
            "cards": [[*card] for card in scenario.cards],
        }
    record: dict[str, JsonValue] = {
        "result": None if row is None else dict(row),
        "scenario": listed,
        "events": [event._asdict() for event in events],
    }
    return CaseWords(
        None if scenario is None else scenario.title,
        tuple((name, " ".join(text.split())) for name, text in facts.items()),
        _case_lines(row, scenario, events),
        {"pack": record},
    )


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
        run_id: `evaluation_runs.id`.
        code: Only this case.
        with_text: All columns; else status, score and points alone, since others may quote replies.
    """
    query = _ROWS.format(columns="pack_results.*" if with_text else _WITHOUT_TEXTS)
    return {
        str(row.pop("result_id")): {name: _of_cell(name, cell) for name, cell in row.items()}
        for row in named_rows(conn.execute(query, {"run_id": run_id, "code": code}))
    }


def _of_cell(column: str, cell: Cell) -> JsonValue:
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
