"""Logs of Inspect AI, read by Inspect itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from inspect_ai.log import EvalLog, EvalSample, read_eval_log
from inspect_ai.scorer import CORRECT, INCORRECT, NOANSWER, Score

from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.imports.documents import (
    ForeignCase,
    ForeignRun,
    ImportFileError,
    amount,
    check_file,
    time_text,
    whole,
)

_WORDS = {CORRECT: True, INCORRECT: False, NOANSWER: False}


def inspect_run(path: Path) -> ForeignRun:
    """Return the run of a log; the first scorer of a sample decides.

    Raises:
        ImportFileError: It is not a log, or holds no samples.
    """
    check_file(path)
    try:
        log: EvalLog = read_eval_log(str(path))
    except Exception as error:
        raise ImportFileError(f"{path}: Inspect cannot read it: {error}") from error
    samples = log.samples or []
    if not samples:
        raise ImportFileError(
            f"{path}: no samples in it\n  hint: {log.status} logs without samples say nothing"
        )
    at = path.stat().st_mtime
    return ForeignRun(
        tool=f"inspect {log.eval.packages.get('inspect_ai', '')}".strip(),
        benchmark=log.eval.task,
        version=str(log.eval.task_version),
        model=log.eval.model,
        started_at=time_text(log.stats.started_at or log.eval.created, at),
        completed_at=time_text(log.stats.completed_at or None, at),
        cases=tuple(_cases(samples)),
        settings={"status": log.status, "eval_id": log.eval.eval_id},
    )


def _cases(samples: list[EvalSample]) -> Iterator[ForeignCase]:
    for sample in samples:
        scorer, score = next(iter((sample.scores or {}).items()), ("", None))
        passed = None if score is None or sample.error is not None else _verdict(score)
        usages = list(sample.model_usage.values())
        costs = [usage.total_cost for usage in usages]
        yield ForeignCase(
            code=str(sample.id),
            repetition=max(1, sample.epoch),
            passed=passed,
            reason="" if passed is not None else "sample_error" if sample.error is not None else "no_verdict",
            rule=scorer or "inspect",
            expected=sample.target if isinstance(sample.target, str) else ", ".join(sample.target),
            observed="" if score is None else score.answer or "",
            usage=Usage(
                prompt_tokens=whole(sum(usage.input_tokens for usage in usages)) if usages else None,
                completion_tokens=whole(sum(usage.output_tokens for usage in usages)) if usages else None,
                cost_usd=amount(sum(cost or 0.0 for cost in costs)) if usages and None not in costs else None,
            ),
            latency_ms=None if sample.total_time is None else amount(1000 * sample.total_time),
        )


def _verdict(score: Score) -> bool | None:
    """Return right or wrong; None for a partial or continuous score, which is neither."""
    value = score.value
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _WORDS.get(value)
    return value == 1 if isinstance(value, int | float) and value in (0, 1) else None
