"""A run as a file for other programs: codes and hashes, texts only where they are asked for."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from typing import Any, TextIO

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BENCH_PACK
from pytest_helmbench.benchmarks.bench_packs.report_lines import (
    BENCH_PACK_COLUMNS,
    BENCH_PACK_TEXTS,
    bench_pack_cells,
    bench_pack_texts,
)
from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.cards import prompt_lines, run_record, sent_messages
from pytest_helmbench.store.queries import EvaluationRow, ResultRow, RunDetail

__all__ = ["EXPORT_FORMAT", "REPORT_SCHEMA_NAMES", "export_document", "report_schema", "write_csv"]

EXPORT_FORMAT = "helmbench-export/1"
REPORT_SCHEMA_NAMES = ("export", "report")

_AXES = ("pillar", "behaviour", "scenario", "condition", "user_context", "perturbation")
_RESULT = (
    "outcome",
    "reason",
    "score",
    "severity",
    "difficulty",
    "neutral",
    "latency_ms",
    "prompt_tokens",
    "completion_tokens",
    "cached_tokens",
    "reasoning_tokens",
    "cost_usd",
    "request_hash",
    "reply_hash",
    "node_id",
    "started_at",
    "completed_at",
)
_EVALUATION = ("criterion", "rule", "rule_hash", "passed", "credit", "parse", "expected", "observed")
_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")


def report_schema(name: str) -> dict[str, Any]:
    """Return the JSON Schema of one of our own outputs.

    Args:
        name: One of `REPORT_SCHEMA_NAMES`.
    """
    loaded: dict[str, Any] = json.loads(files(__package__).joinpath(f"{name}.json").read_text("utf-8"))
    return loaded


def export_document(detail: RunDetail, rows: Iterable[ResultRow], *, with_text: bool) -> dict[str, Any]:
    """Return a run with its results as one JSON object, as the schema `export` says.

    Args:
        detail: The run.
        rows: Its results, with texts where `with_text` asks for them.
        with_text: Also prompts, replies and the judge's words, which quote replies.
    """
    return {
        "format": EXPORT_FORMAT,
        "run": run_record(detail),
        "results": [_result(row, hosted=detail.kind == BENCH_PACK, with_text=with_text) for row in rows],
    }


def write_csv(stream: TextIO, detail: RunDetail, rows: Iterable[ResultRow], *, with_text: bool) -> None:
    """Write one line per evaluation; a result without any (error, skipped) has one line.

    Unknown is an empty cell. A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    run = detail.summary
    fixed = {
        "run": run.id,
        "session": run.session_id,
        "benchmark": run.benchmark,
        "version": run.version,
        "benchmark_hash": detail.benchmark_hash,
        "model": run.model,
    }
    hosted = detail.kind == BENCH_PACK
    texts = ("justification", "prompt", "reply") if with_text else ()
    own = (*BENCH_PACK_COLUMNS, *(BENCH_PACK_TEXTS if with_text else ())) if hosted else ()
    head = (*fixed, "code", "repetition", "family", *_AXES, *_RESULT, *_EVALUATION, *texts, *own)
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(head)
    for row in rows:
        for evaluation in row.evaluations or (None,):
            cells = [*fixed.values(), *_csv_result(row), *_csv_evaluation(evaluation)]
            if with_text:
                cells += _csv_texts(row, evaluation)
            if hosted:
                cells += _hosted(row, with_text=with_text).values()
            writer.writerow([_cell(value) for value in cells])


def _hosted(row: ResultRow, *, with_text: bool) -> dict[str, Any]:
    return {**bench_pack_cells(row.hosted), **(bench_pack_texts(row.hosted) if with_text else {})}


def _result(row: ResultRow, *, hosted: bool, with_text: bool) -> dict[str, Any]:
    record: dict[str, Any] = {"code": row.code, "repetition": row.repetition, "family": row.family}
    record |= dict(zip(_AXES, _axes(row.code), strict=True))
    record |= {name: getattr(row, name) for name in _RESULT}
    record |= _hosted(row, with_text=with_text) if hosted else {}
    record["evaluations"] = [
        {name: getattr(evaluation, name) for name in _EVALUATION}
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


def _csv_result(row: ResultRow) -> Iterator[Any]:
    yield from (row.code, row.repetition, row.family, *_axes(row.code))
    yield from (getattr(row, name) for name in _RESULT)


def _csv_evaluation(evaluation: EvaluationRow | None) -> Iterator[Any]:
    yield from (None if evaluation is None else getattr(evaluation, name) for name in _EVALUATION)


def _csv_texts(row: ResultRow, evaluation: EvaluationRow | None) -> list[str | None]:
    return [
        None if evaluation is None else evaluation.justification,
        None if row.request is None else "\n".join(prompt_lines(row.request)),
        row.reply,
    ]


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = scrub(value)
    return f"'{text}" if text.startswith(_FORMULA_STARTS) else text
