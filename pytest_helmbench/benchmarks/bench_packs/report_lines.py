"""Bench Packs as people and programs read them: what a pack says, on its own scale and labelled as that."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TypeGuard

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore
from pytest_helmbench.benchmarks.bench_packs.stored import BenchPackEvent, BenchPackRow, BenchPackScenario
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt, scrub

__all__ = [
    "BENCH_PACK_COLUMNS",
    "BENCH_PACK_TEXTS",
    "BenchPackCase",
    "amount",
    "bench_pack_cells",
    "bench_pack_lines",
    "bench_pack_record",
    "bench_pack_texts",
    "extra_values",
    "pack_score_line",
    "pack_score_record",
    "pack_score_rows",
    "pack_words",
    "suite_properties",
    "total_text",
]

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
_CATEGORY = ("id", "label", "score", "weight")


@dataclass(frozen=True, slots=True)
class BenchPackCase:
    """What stands beside a result of a Bench Pack.

    Args:
        scenario: As its pack lists it; None where the record does not have it.
        events: Of the case, in order; of every repetition.
    """

    scenario: BenchPackScenario | None
    events: Sequence[BenchPackEvent]

    def of(self, repetition: int) -> BenchPackCase:
        """Return what stands beside one repetition."""
        return BenchPackCase(
            self.scenario, [event for event in self.events if event.repetition == repetition]
        )


def amount(value: float | None) -> str:
    """Return a number of a pack's own scale, to four places; `-` for none."""
    return "-" if value is None else f"{round(value, 4):.12g}"


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
    """Return the numbers that a pack says of a run beyond the protocol, as `name value`."""
    shown = [f"{_one_line(name)} {amount(value)}" for name, value in score.extra.items() if _is_number(value)]
    return shown[:_MOST_CATEGORIES]


def pack_words(score: PackScore) -> str:
    """Return what a pack says of a run in words, on one line: its summary, and texts beyond the protocol."""
    more = [f"{name}: {value}" for name, value in score.extra.items() if isinstance(value, str)]
    return _one_line("; ".join(filter(None, (score.summary, *more))), _WORDS_LIMIT)


def pack_score_rows(score: PackScore) -> list[tuple[str, str, str]]:
    """Return label, score and weight of every category; `-` for no weight."""
    return [
        (
            excerpt(" ".join(str(category.get("label") or category.get("id")).split()), _LABEL_LIMIT),
            _number(category.get("score")),
            _number(category.get("weight")),
        )
        for category in score.categories
    ]


def pack_score_record(score: PackScore, *, with_text: bool) -> JsonObject:
    """Return what a pack makes of a run in JSON types.

    Args:
        score: Of the pack.
        with_text: Also its summary and what it has put into the categories beyond the protocol.
    """
    record: JsonObject = {
        "total": score.total,
        "unit": score.unit or None,
        "partial": score.partial,
        "categories": [
            dict(category) if with_text else {name: category[name] for name in _CATEGORY if name in category}
            for category in score.categories
        ],
    }
    if not with_text:
        return record
    extra: JsonObject = {"extra": dict(score.extra)} if score.extra else {}
    return {**record, "summary": score.summary or None, **extra}


def bench_pack_cells(row: BenchPackRow) -> dict[str, str | float | None]:
    """Return the columns that an export has for Bench Packs, those with texts too."""
    cells = (row.status, row.score, row.points, row.summary, row.note, row.raw_log)
    return dict(zip((*BENCH_PACK_COLUMNS, *BENCH_PACK_TEXTS), cells, strict=True))


def bench_pack_texts(row: BenchPackRow) -> list[tuple[str, str]]:
    """Return what a report with texts shows of a failure, each under a title."""
    head = f"pack: {row.status}, score {amount(row.score)}"
    texts = {head: row.summary, "note": row.note, "raw log": row.raw_log}
    return [(title, text) for title, text in texts.items() if text]


def bench_pack_record(row: BenchPackRow | None, case: BenchPackCase) -> JsonObject:
    """Return all that is known of a result of a Bench Pack in JSON types."""
    return {
        "result": None if row is None else asdict(row),
        "scenario": None if case.scenario is None else asdict(case.scenario),
        "events": [
            {"type": event.type, "payload": dict(event.payload), "at": event.at} for event in case.events
        ],
    }


def bench_pack_lines(row: BenchPackRow | None, case: BenchPackCase) -> list[str]:
    """Return what a pack says of a result, its detail cards and its events."""
    lines = ["", *_said(row)]
    if row is not None and row.raw_log:
        cut = f" (the start of {len(row.raw_log)} characters)" if len(row.raw_log) > _LOG_LIMIT else ""
        lines += ["", f"raw log{cut}", *_quoted(excerpt(row.raw_log, _LOG_LIMIT))]
    for title, content in case.scenario.cards if case.scenario is not None else ():
        lines += ["", f"card: {_one_line(title)}", *_quoted(content)]
    if case.events:
        lines += ["", "events", *(_event_line(event) for event in case.events[:_MOST_EVENTS])]
    if len(case.events) > _MOST_EVENTS:
        lines.append(f"  … and {len(case.events) - _MOST_EVENTS} more")
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


def _number(value: object) -> str:
    return amount(value) if _is_number(value) else "-"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool)
