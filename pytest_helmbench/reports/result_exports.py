"""A run as a file for other programs: codes and hashes, texts only where they are asked for."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import fields
from io import StringIO
from typing import get_type_hints

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.kind_words import OwnColumns
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.cards import EVALUATION_FIELDS, prompt_lines, run_record, sent_messages
from pytest_helmbench.reports.own_schemas import own_schema, part_of, schema_of
from pytest_helmbench.reports.readable_json import readable_json
from pytest_helmbench.session.recorded_results import RecordedRun
from pytest_helmbench.store.result_queries import EvaluationRow, ResultRow

__all__ = ["EXPORT_FORMAT", "csv_export", "export_document", "export_schema", "json_export"]

EXPORT_FORMAT = "helmbench-export/1"

_AXES = ("pillar", "behaviour", "scenario", "condition", "user_context", "perturbation")
# What stands elsewhere in an export, and what stands after all other columns of a result.
_ELSEWHERE = ("id", "code", "repetition", "family", "scenario", "request", "reply", "evaluations", "words")
_LAST = ("node_id", "started_at", "completed_at")
_NAMES = [field.name for field in fields(ResultRow)]
_RESULT = (*(name for name in _NAMES if name not in (*_ELSEWHERE, *_LAST)), *_LAST)
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def export_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of `export_document`; columns of which its file says no more have their types alone."""
    schema = own_schema("export")
    columns = part_of(schema, "$defs", "result", "properties")
    types = get_type_hints(ResultRow)
    for name in _RESULT:
        columns.setdefault(name, schema_of(types[name]))
    return schema


def export_document(run: RecordedRun, *, with_text: bool) -> dict[str, object]:
    """Return a run with its results as one JSON object, as the schema `export` says.

    Args:
        run: With texts where `with_text` asks for them.
        with_text: Also prompts, replies and the judge's words, which quote replies.
    """
    return {
        "format": EXPORT_FORMAT,
        "run": run_record(run.detail),
        "results": [_result(row, run.columns, with_text=with_text) for row in run.results],
    }


def json_export(run: RecordedRun, *, with_text: bool) -> str:
    """Return `export_document` as text."""
    return readable_json(export_document(run, with_text=with_text), indent=1) + "\n"


def csv_export(run: RecordedRun, *, with_text: bool) -> str:
    """Return one line per evaluation; a result without any (error, skipped) has one line.

    Unknown is an empty cell. A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    detail, columns = run.detail, run.columns
    fixed = {
        "run": detail.summary.id,
        "session": detail.summary.session_id,
        "benchmark": detail.summary.benchmark,
        "version": detail.summary.version,
        "benchmark_hash": detail.benchmark_hash,
        "model": detail.summary.model,
    }
    texts = ("justification", "prompt", "reply") if with_text else ()
    own = columns.cells(None, with_text=with_text)
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(
        (*fixed, "code", "repetition", "family", *_AXES, *_RESULT, *EVALUATION_FIELDS, *texts, *own)
    )
    for row in run.results:
        for evaluation in row.evaluations or (None,):
            cells = [*fixed.values(), *_csv_result(row), *_csv_evaluation(evaluation)]
            if with_text:
                cells += _csv_texts(row, evaluation)
            cells += columns.cells(row.words, with_text=with_text).values()
            writer.writerow([_cell(value) for value in cells])
    return stream.getvalue()


def _result(row: ResultRow, columns: OwnColumns, *, with_text: bool) -> dict[str, object]:
    record: dict[str, object] = {"code": row.code, "repetition": row.repetition, "family": row.family}
    record |= dict(zip(_AXES, _axes(row.code), strict=True))
    record |= {name: getattr(row, name) for name in _RESULT}
    record |= columns.cells(row.words, with_text=with_text)
    record["evaluations"] = [
        {name: getattr(evaluation, name) for name in EVALUATION_FIELDS}
        | ({"justification": evaluation.justification} if with_text else {})
        for evaluation in row.evaluations
    ]
    if with_text:
        record["messages"] = None if row.request is None else sent_messages(row.request)
        record["reply"] = row.reply
    return record


def _axes(code: str) -> Sequence[str | None]:
    """Return the components, behaviour and scenario in full: their short codes alone mean nothing."""
    parts = CaseCode.parse(code)
    if parts is None:
        return (None,) * len(_AXES)
    pillar, behaviour, scenario, *rest = parts.parts()
    return (pillar, f"{pillar}-{behaviour}", f"{pillar}-{behaviour}-{scenario}", *rest)


def _csv_result(row: ResultRow) -> Iterator[object]:
    yield from (row.code, row.repetition, row.family, *_axes(row.code))
    yield from (getattr(row, name) for name in _RESULT)


def _csv_evaluation(evaluation: EvaluationRow | None) -> Iterator[object]:
    yield from (None if evaluation is None else getattr(evaluation, name) for name in EVALUATION_FIELDS)


def _csv_texts(row: ResultRow, evaluation: EvaluationRow | None) -> list[str | None]:
    return [
        None if evaluation is None else evaluation.justification,
        None if row.request is None else "\n".join(prompt_lines(row.request)),
        row.reply,
    ]


def _cell(value: object) -> object:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = scrub(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
