"""Results as one row per evaluation: what tables (CSV) are written from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields

from pytest_helmbench.core.codes import CaseCode
from pytest_helmbench.reports.cards import EVALUATION_FIELDS, evaluation_record, prompt_lines
from pytest_helmbench.results.run_report import RecordedRun
from pytest_helmbench.store.result_queries import EvaluationRow, ResultRow

__all__ = ["AXES", "RESULT_FIELDS", "axes_of", "column_names", "flat_rows"]

AXES = ("pillar", "behaviour", "scenario", "condition", "user_context", "perturbation")
"""Parts of a case's code."""

# What stands elsewhere in an export, and what stands after all other columns of a result.
_ELSEWHERE = ("id", "code", "repetition", "family", "scenario", "request", "reply", "evaluations", "words")
_LAST = ("node_id", "started_at", "completed_at")
_NAMES = [field.name for field in fields(ResultRow)]

RESULT_FIELDS = (*(name for name in _NAMES if name not in (*_ELSEWHERE, *_LAST)), *_LAST)
"""Columns of a result beside its code, its parts and its family."""

_RUN = ("run", "session", "benchmark", "version", "benchmark_hash", "model")
_TEXTS = ("justification", "prompt", "reply")


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


def flat_rows(runs: Sequence[RecordedRun], *, with_text: bool) -> Iterator[dict[str, object]]:
    """Yield one row per evaluation by column; a result without any (error, skipped) has one row.

    Columns that a row says nothing of are absent.

    Args:
        runs: With texts where `with_text` asks for them.
        with_text: Also prompts, replies and the judge's words.
    """
    for run in runs:
        of_run = _of_run(run)
        for row in run.results:
            of_result = of_run | _of_result(row) | run.columns.cells(row.words, with_text=with_text)
            if with_text:
                of_result |= {"prompt": _prompt(row), "reply": row.reply}
            for evaluation in row.evaluations or (None,):
                yield of_result | _of_evaluation(evaluation, with_text=with_text)


def _of_run(run: RecordedRun) -> dict[str, object]:
    summary = run.detail.summary
    values = (
        summary.id,
        summary.session_id,
        summary.benchmark,
        summary.version,
        run.detail.benchmark_hash,
        summary.model,
    )
    return dict(zip(_RUN, values, strict=True))


def _of_result(row: ResultRow) -> dict[str, object]:
    plain = {"code": row.code, "repetition": row.repetition, "family": row.family}
    axes = dict(zip(AXES, axes_of(row.code), strict=True))
    return plain | axes | {name: getattr(row, name) for name in RESULT_FIELDS}


def _of_evaluation(evaluation: EvaluationRow | None, *, with_text: bool) -> dict[str, object]:
    if evaluation is None:
        return {}
    return evaluation_record(evaluation, with_text=with_text)


def _prompt(row: ResultRow) -> str | None:
    return None if row.request is None else "\n".join(prompt_lines(row.request))
