"""Runs with every result: as a table for spreadsheets, as JSON."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from io import StringIO

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.kind_words import OwnColumns
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts, scrub
from pytest_helmbench.reports.cards import (
    EVALUATION_FIELDS,
    evaluation_record,
    prompt_text,
    run_record,
    transcript_record,
)
from pytest_helmbench.reports.tables import readable_json
from pytest_helmbench.results.run_report import RecordedRun
from pytest_helmbench.store.read.results import ResultRow

ExportedFiles = Mapping[str, str | bytes]
"""Contents of the files of an export: `MAIN`, or several by their paths below a folder."""
MAIN = ""
"""The one file, which the user names, or standard output."""
AXES = ("pillar", "behaviour", "scenario", "condition", "user_context", "perturbation")
"""Parts of a case's code."""
# Columns that stand elsewhere in an export, and those that stand after all others of a result.
_ELSEWHERE = (
    *("id", "code", "repetition", "family", "scenario"),
    *("request", "reply", "conversation", "evaluations", "words"),
)
_LAST = ("node_id", "started_at", "completed_at")
_NAMES = [field.name for field in fields(ResultRow)]
RESULT_FIELDS = (*(name for name in _NAMES if name not in (*_ELSEWHERE, *_LAST)), *_LAST)
"""Columns of a result beside its code, its parts and its family."""
_RUN = ("run", "session", "benchmark", "version", "benchmark_hash", "model")
_TEXTS = ("justification", "prompt", "reply")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠", "|")
_SKIPPED = " \n\u00a0\u200b\u200c\u200d\u2060\u3000\ufeff"
"""Characters that some programs leave out before they look for a formula."""
EXPORT_FORMAT = "helmbench-export/1"


class ExportError(HelmbenchError):
    """An export that cannot be made; the text says why and what helps."""


Export = Callable[[Sequence[RecordedRun], ShownTexts, str], ExportedFiles]
"""Writes runs in one format, with the texts of some cases, to a file of this name (empty for standard output).

Raises:
    ExportError: These runs, or this file, cannot be written so.
"""


def axes_of(code: str) -> Sequence[str | None]:
    """Return the components, behaviour and scenario in full: their short codes alone mean nothing."""
    parts = CaseCode.parse(code)
    if parts is None:
        return (None,) * len(AXES)
    pillar, behaviour, scenario, *rest = parts.parts()
    return (pillar, f"{pillar}-{behaviour}", f"{pillar}-{behaviour}-{scenario}", *rest)


def column_names(runs: Sequence[RecordedRun], *, with_text: bool) -> tuple[str, ...]:
    """Return the columns of `flat_rows`; those of single kinds last."""
    own = [name for run in runs for name in run.columns.cells(None, with_text=with_text)]
    case = ("code", "repetition", "family", *AXES, *RESULT_FIELDS, *EVALUATION_FIELDS)
    return tuple(dict.fromkeys((*_RUN, *case, *(_TEXTS if with_text else ()), *own)))


def flat_rows(runs: Sequence[RecordedRun], texts: ShownTexts) -> Iterator[dict[str, object]]:
    """Yield one row per evaluation by column; a result without any (error, skipped) has one row.

    Columns that a row says nothing of are absent.
    """
    for run in runs:
        detail = run.detail
        names = (detail.id, detail.session_id, detail.benchmark, detail.version)
        of_run: dict[str, object] = dict(
            zip(_RUN, (*names, detail.benchmark_hash, detail.model), strict=True)
        )
        for row in run.results:
            with_text = texts.of(row.outcome)
            cells = of_run | _of_result(row, run.columns, with_text=with_text)
            if with_text:
                prompt = None if row.request is None else prompt_text(row)
                cells |= {"prompt": prompt, "reply": row.reply}
            for evaluation in row.evaluations:
                yield cells | evaluation_record(evaluation, with_text=with_text)
            if not row.evaluations:
                yield cells


def _of_result(row: ResultRow, columns: OwnColumns, *, with_text: bool) -> dict[str, object]:
    record: dict[str, object] = {"code": row.code, "repetition": row.repetition, "family": row.family}
    record |= zip(AXES, axes_of(row.code), strict=True)
    record |= {name: getattr(row, name) for name in RESULT_FIELDS}
    record["thoughts"] = row.thoughts if with_text else None
    return record | columns.cells(row.words, with_text=with_text)


def csv_export(runs: Sequence[RecordedRun], texts: ShownTexts, _name: str) -> ExportedFiles:
    """Return one line per evaluation.

    Unknown is an empty cell. A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    names = column_names(runs, with_text=texts.any)
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for row in flat_rows(runs, texts):
        writer.writerow([spreadsheet_cell(row.get(name)) for name in names])
    return {MAIN: stream.getvalue()}


def spreadsheet_cell(value: object) -> object:
    """Return a value for a cell: a text that a spreadsheet would run as a formula gets an apostrophe before it."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = scrub(value)
    return f"'{text}" if text.lstrip(_SKIPPED).startswith(_FORMULA_STARTS) else text


def json_export(runs: Sequence[RecordedRun], texts: ShownTexts, _name: str) -> ExportedFiles:
    """Return a run with its results as one JSON object, as the schema `export` says; of several runs a list."""
    documents = [
        {
            "format": EXPORT_FORMAT,
            "run": run_record(run.detail),
            "results": [_result(row, run.columns, with_text=texts.of(row.outcome)) for row in run.results],
        }
        for run in runs
    ]
    return {MAIN: readable_json(documents[0] if len(documents) == 1 else documents, indent=1) + "\n"}


def _result(row: ResultRow, columns: OwnColumns, *, with_text: bool) -> dict[str, object]:
    record = _of_result(row, columns, with_text=with_text)
    record["evaluations"] = [
        evaluation_record(evaluation, with_text=with_text) for evaluation in row.evaluations
    ]
    return record | (transcript_record(row) if with_text else {})
