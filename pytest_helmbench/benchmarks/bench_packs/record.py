"""The record of Bench Packs in the words of reports and exports: what a pack says, labelled as its own scale."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TypeGuard

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore, ScenarioResult
from pytest_helmbench.benchmarks.bench_packs.stored import (
    BenchPackEvent,
    BenchPackRow,
    BenchPackScenario,
    bench_pack_events,
    bench_pack_rows,
    bench_pack_scenarios,
    pack_score,
    repetitions_of,
    said_of_judged,
    untimed_results,
)
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.kind_words import CaseWords, OwnColumns, OwnSection, ResultWords, RunWords
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.store.reading import reading
from pytest_helmbench.store.run_queries import run_detail

BENCH_PACK_COLUMNS = ("pack_status", "pack_score", "pack_points")
"""What an export says of each result of a Bench Pack."""

BENCH_PACK_TEXTS = ("pack_summary", "pack_note", "pack_raw_log")
"""What it says beyond that where texts are asked for: a pack's words may quote replies."""

_LABEL_LIMIT = 40
_WORDS_LIMIT = 300
_MOST_CATEGORIES = 12
_LINE_LIMIT = 500
_LOG_LIMIT = 8_000
_MOST_EVENTS = 100
_CATEGORY = ("id", "label", "score", "weight", "unit")
_VALUE_LIMIT = 120
_LARGEST_WHOLE = 10**21


def amount(value: float | None) -> str:
    """Return a number of a pack's own scale, to four places; `-` for none."""
    if value is None:
        return "-"
    return str(value) if isinstance(value, int) and abs(value) < _LARGEST_WHOLE else f"{round(value, 4):.15g}"


def total_text(score: PackScore) -> str:
    """Return `83.5 points (not over all scenarios)`."""
    unit = f" {excerpt(score.unit, _LABEL_LIMIT)}" if score.unit else ""
    return f"{amount(score.total)}{unit}{' (not over all scenarios)' if score.partial else ''}"


def pack_score_line(score: PackScore) -> str:
    """Return what a pack makes of a run on one line: total and categories."""
    parts = [f"{label} {number}" for label, number, _ in pack_score_rows(score)]
    more = [f"{len(parts) - _MOST_CATEGORIES} more"] if len(parts) > _MOST_CATEGORIES else []
    categories = ", ".join([*parts[:_MOST_CATEGORIES], *more])
    said = [part for part in (categories, ", ".join(extra_values(score))) if part]
    return "; ".join([f"the pack's own total: {total_text(score)}", *said])


def extra_values(score: PackScore) -> list[str]:
    """Return what a pack says of a run beyond the protocol in numbers and truth values, as `name value`."""
    shown = [f"{name} {value}" for name, value in extra_rows(score)]
    more = [f"{len(shown) - _MOST_CATEGORIES} more"] if len(shown) > _MOST_CATEGORIES else []
    return [*shown[:_MOST_CATEGORIES], *more]


def extra_rows(score: PackScore) -> list[tuple[str, str]]:
    """Return name and text of each value beyond the protocol that holds no words; a unit is none."""
    return [(_one_line(name), _value(value)) for name, value in score.extra.items() if not _has_words(value)]


def extra_texts(score: PackScore) -> list[str]:
    """Return what a pack says of a run beyond the protocol in words, which may quote replies, as `name: text`."""
    return [
        f"{name}: {value if isinstance(value, str) else _value(value)}"
        for name, value in score.extra.items()
        if _has_words(value)
    ]


def pack_words(score: PackScore) -> str:
    """Return what a pack says of a run in words, on one line: its summary, and texts beyond the protocol."""
    return _one_line("; ".join(filter(None, (score.summary, *extra_texts(score)))), _WORDS_LIMIT)


def pack_score_rows(score: PackScore) -> list[tuple[str, str, str]]:
    """Return label, score and weight of every category; `-` for no weight."""
    return [
        (
            excerpt(" ".join(str(category.get("label") or category.get("id")).split()), _LABEL_LIMIT),
            _with_unit(category.get("score"), category.get("unit")),
            _number(category.get("weight")),
        )
        for category in score.categories
    ]


def pack_score_record(score: PackScore, *, with_text: bool) -> JsonObject:
    """Return what a pack makes of a run in JSON types.

    Args:
        score: Of the pack.
        with_text: Also its summary, and what it has put into score and categories in words.
    """
    record: JsonObject = {
        "total": score.total,
        "unit": score.unit or None,
        "partial": score.partial,
        "categories": [
            dict(category) if with_text else _without_words(category) for category in score.categories
        ],
    }
    stated = {name: value for name, value in score.extra.items() if with_text or not _has_words(value)}
    extra: JsonObject = {"extra": stated} if stated else {}
    return {**record, **({"summary": score.summary or None} if with_text else {}), **extra}


def bench_pack_cells(row: BenchPackRow) -> dict[str, str | float | None]:
    """Return the columns that an export has for Bench Packs, those with texts too."""
    cells = (row.status, row.score, row.points, row.summary, row.note, row.raw_log)
    return dict(zip((*BENCH_PACK_COLUMNS, *BENCH_PACK_TEXTS), cells, strict=True))


def bench_pack_texts(row: BenchPackRow) -> list[tuple[str, str]]:
    """Return what a report with texts shows of a failure, each under a title."""
    head = f"pack: {row.status}, score {amount(row.score)}"
    texts = {head: row.summary, "note": row.note, "raw log": row.raw_log}
    return [(title, text) for title, text in texts.items() if text]


def bench_pack_record(
    row: BenchPackRow | None, scenario: BenchPackScenario | None, events: Sequence[BenchPackEvent]
) -> JsonObject:
    """Return all that is known of a result of a Bench Pack in JSON types."""
    return {
        "result": None if row is None else asdict(row),
        "scenario": None if scenario is None else asdict(scenario),
        "events": [{"type": event.type, "payload": dict(event.payload), "at": event.at} for event in events],
    }


def bench_pack_lines(
    row: BenchPackRow | None, scenario: BenchPackScenario | None, events: Sequence[BenchPackEvent]
) -> list[str]:
    """Return what a pack says of a result, its detail cards and its events."""
    lines = ["", *_said(row)]
    if row is not None and row.raw_log:
        cut = f" (the start of {len(row.raw_log)} characters)" if len(row.raw_log) > _LOG_LIMIT else ""
        lines += ["", f"raw log{cut}", *_quoted(excerpt(row.raw_log, _LOG_LIMIT))]
    for title, content in () if scenario is None else scenario.cards:
        lines += ["", f"card: {_one_line(title)}", *_quoted(content)]
    if events:
        lines += ["", "events", *map(_event_line, events[:_MOST_EVENTS])]
    if len(events) > _MOST_EVENTS:
        lines.append(f"  … and {len(events) - _MOST_EVENTS} more")
    return lines


def suite_properties(pack: str, model: str, score: PackScore) -> list[tuple[str, str | float]]:
    """Return the properties that JUnit reports have of a run.

    Args:
        pack: Id of the pack.
        model: Id of the model.
        score: Of the pack.
    """
    of = scrub(f"[{pack}][{model}]")
    partial: list[tuple[str, str | float]] = [(f"pack_partial{of}", "true")] if score.partial else []
    categories = [
        (f"pack_category{of}[{_one_line(str(category.get('id')))}]", part)
        for category in score.categories
        if isinstance(part := category.get("score"), int | float) and _is_number(part)
    ]
    return [(f"pack_total{of}", score.total), *partial, *categories]


def _said(row: BenchPackRow | None) -> list[str]:
    if row is None:
        return ["pack: it has said nothing of this case"]
    points = "" if row.points is None else f", points {amount(row.points)}"
    facts: Mapping[str, str | None] = {
        "summary": row.summary,
        "note": row.note,
        "verifier": None if row.verifier is None else json.dumps(row.verifier, ensure_ascii=False),
        "artifacts": json.dumps(row.artifacts, ensure_ascii=False) if row.artifacts else None,
        "times": None if row.timed else "not the model's: a reply came from the record",
    }
    return [
        f"pack: {row.status}, score {amount(row.score)}{points} (its own scale)",
        *(f"  {name.ljust(9)} {_one_line(value, _LINE_LIMIT)}" for name, value in facts.items() if value),
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
    """Return whether a value holds a text that is no unit: it may quote a reply."""
    if isinstance(value, dict):
        return any(_has_words(part) for name, part in value.items() if name != "unit" or not _is_unit(part))
    if isinstance(value, list):
        return any(map(_has_words, value))
    return isinstance(value, str)


def _is_unit(value: object) -> TypeGuard[str]:
    return isinstance(value, str) and len(value) <= _LABEL_LIMIT


def _value(value: JsonValue) -> str:
    """Return a value on one line: numbers with their unit, anything else as JSON, cut."""
    if isinstance(value, dict) and value.keys() == {"value", "unit"} and _is_number(value["value"]):
        return _with_unit(value["value"], value["unit"])
    if _is_number(value):
        return amount(value)
    return _one_line(json.dumps(value, ensure_ascii=False), _VALUE_LIMIT)


def _with_unit(value: object, unit: object) -> str:
    return f"{_number(value)} {_one_line(unit)}" if isinstance(unit, str) and unit else _number(value)


def _number(value: object) -> str:
    return amount(value) if _is_number(value) else "-"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


class BenchPackRecord:
    """See `KindRecord`."""

    columns = OwnColumns(BENCH_PACK_COLUMNS, BENCH_PACK_TEXTS)
    failures = "failed as"

    def statements(self, conn: sqlite3.Connection, run_id: int) -> Mapping[str, ScenarioResult]:
        """See `KindRecord.statements`."""
        return said_of_judged(conn, run_id)

    def results(
        self, path: Path, run_id: int, code: str | None, *, with_text: bool
    ) -> Mapping[str, ResultWords]:
        """See `KindRecord.results`."""
        with reading(path) as conn:
            found = bench_pack_rows(conn, run_id, code, with_text=with_text)
        return {
            result_id: ResultWords(bench_pack_cells(row), tuple(bench_pack_texts(row)))
            for result_id, row in found.items()
        }

    def case(self, path: Path, run_id: int, code: str) -> Mapping[int, CaseWords]:
        """See `KindRecord.case`."""
        listed = {scenario.code: scenario for scenario in bench_pack_scenarios(path, run_id)}
        scenario, events = listed.get(code), bench_pack_events(path, run_id, code)
        title, facts = _about(scenario)
        with reading(path) as conn:
            rows = bench_pack_rows(conn, run_id, code, with_text=True)
            repetitions = repetitions_of(conn, run_id, code)
        found = {}
        for result_id, repetition in repetitions.items():
            own = rows.get(result_id), scenario, [one for one in events if one.repetition == repetition]
            record = {"pack": dict(bench_pack_record(*own))}
            found[repetition] = CaseWords(title, facts, bench_pack_lines(*own), record)
        return found

    def run(self, path: Path, run_id: int) -> RunWords | None:
        """See `KindRecord.run`."""
        detail = run_detail(path, run_id)
        if detail is None:
            return None
        score = pack_score(path, run_id)
        untimed = untimed_results(path, run_id)
        cautions: tuple[str, ...] = ()
        if untimed:
            cases = f"{untimed} case{'' if untimed == 1 else 's'}"
            cautions = (
                f"replies of {cases} came from the record: what their pack says of time is not the model's",
            )
        if score is None:
            return RunWords(cautions=cautions)
        if score.partial:
            cautions = (
                "the pack's own total is not over all of its scenarios",
                *cautions,
            )
        return RunWords(
            line=pack_score_line(score),
            said=pack_words(score),
            facts=_facts(score),
            score=pack_score_record(score, with_text=False),
            score_with_text=pack_score_record(score, with_text=True),
            cautions=cautions,
            section=_section(score),
            properties=tuple(suite_properties(detail.summary.benchmark, detail.summary.model, score)),
        )


RECORD = BenchPackRecord()


def _about(scenario: BenchPackScenario | None) -> tuple[str | None, tuple[tuple[str, str], ...]]:
    if scenario is None:
        return None, ()
    about = {"category": scenario.category, "tags": ", ".join(scenario.tags), "about": scenario.description}
    return scenario.title, tuple((name, " ".join(text.split())) for name, text in about.items())


def _facts(score: PackScore) -> tuple[tuple[str, str], ...]:
    categories = ", ".join(f"{label} {number}" for label, number, _ in pack_score_rows(score))
    return (
        ("pack's own total", total_text(score)),
        ("its categories", categories),
        ("its other values", ", ".join(extra_values(score))),
        ("its words", pack_words(score)),
    )


def _section(score: PackScore) -> OwnSection:
    return OwnSection(
        title="The pack's own scale",
        lead="Total",
        value=total_text(score),
        note="The score above is ours: the share passed.",
        head=("category", "score", "weight"),
        rows=tuple(pack_score_rows(score)),
        text="\n".join(filter(None, (score.summary, *extra_texts(score)))),
        values=tuple(extra_rows(score)),
    )
