"""Runs as JSON: codes and hashes, texts only where they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_type_hints

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.kind_words import OwnColumns
from pytest_helmbench.reports.cards import evaluation_record, run_record, sent_messages
from pytest_helmbench.reports.exports.exported import MAIN, Exported, ExportWish
from pytest_helmbench.reports.exports.flat_rows import AXES, RESULT_FIELDS, axes_of
from pytest_helmbench.reports.own_schemas import own_schema, part_of, schema_of
from pytest_helmbench.reports.readable_json import readable_json
from pytest_helmbench.results.run_report import RecordedRun
from pytest_helmbench.store.result_queries import ResultRow

__all__ = ["EXPORT_FORMAT", "export_document", "export_schema", "json_export"]

EXPORT_FORMAT = "helmbench-export/1"


def export_schema() -> dict[str, JsonValue]:
    """Return the JSON Schema of `export_document`; columns of which its file says no more have their types alone."""
    schema = own_schema("export")
    columns = part_of(schema, "$defs", "result", "properties")
    types = get_type_hints(ResultRow)
    for name in RESULT_FIELDS:
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


def json_export(runs: Sequence[RecordedRun], wish: ExportWish, /) -> Exported:
    """Return `export_document` as text; of several runs, a list of them."""
    documents = [export_document(run, with_text=wish.with_text) for run in runs]
    return {MAIN: readable_json(documents[0] if len(documents) == 1 else documents, indent=1) + "\n"}


def _result(row: ResultRow, columns: OwnColumns, *, with_text: bool) -> dict[str, object]:
    record: dict[str, object] = {"code": row.code, "repetition": row.repetition, "family": row.family}
    record |= dict(zip(AXES, axes_of(row.code), strict=True))
    record |= {name: getattr(row, name) for name in RESULT_FIELDS}
    record |= columns.cells(row.words, with_text=with_text)
    record["evaluations"] = [
        evaluation_record(evaluation, with_text=with_text) for evaluation in row.evaluations
    ]
    if with_text:
        record["messages"] = None if row.request is None else sent_messages(row.request)
        record["reply"] = row.reply
    return record
