"""The log of a run, made of Inspect AI's own types. Imported where such a log is written, and nowhere else."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from inspect_ai.log import (
    EvalConfig,
    EvalDataset,
    EvalError,
    EvalLog,
    EvalMetric,
    EvalResults,
    EvalSample,
    EvalScore,
    EvalSpec,
    EvalStats,
)
from inspect_ai.model import (
    ChatMessage,
    ChatMessageAssistant,
    ChatMessageSystem,
    ChatMessageTool,
    ChatMessageUser,
    ModelOutput,
    ModelUsage,
)
from inspect_ai.scorer import CORRECT, INCORRECT, Score
from inspect_ai.tool import ToolCall, ToolCallError

from pytest_helmbench.core.outcome import Evaluation
from pytest_helmbench.core.scrub import ShownTexts, full_observed
from pytest_helmbench.core.tools import BROKEN_ARGUMENTS, MadeCall
from pytest_helmbench.reports.cards import before_reply, numbered_calls, opening_length, sent_messages
from pytest_helmbench.reports.exports import AXES, axes_of
from pytest_helmbench.results.run_report import RecordedRun
from pytest_helmbench.store.read.results import ResultRow
from pytest_helmbench.store.read.runs import RunDetail

_SCORER = "helmbench"
_STATUS: Mapping[str, Literal["started", "success", "cancelled"]] = {
    "running": "started",
    "interrupted": "cancelled",
}
_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}
_UNKNOWN = "unknown"


def inspect_log(run: RecordedRun, texts: ShownTexts) -> EvalLog:
    """Return the log of a run: a sample per case and repetition (epoch), our numbers as metrics."""
    detail, summary = run.detail, run.detail
    codes = list(dict.fromkeys(row.code for row in run.results))
    return EvalLog(
        status=_STATUS.get(summary.status, "success"),
        eval=EvalSpec(
            run_id=summary.session_id,
            created=summary.started_at,
            task=summary.benchmark,
            task_version=summary.version,
            dataset=EvalDataset(name=summary.benchmark, samples=len(codes), sample_ids=codes),
            model=summary.model,
            model_base_url=detail.base_url,
            config=EvalConfig(epochs=max((row.repetition for row in run.results), default=1)),
            packages={"pytest-helmbench": detail.plugin_version},
            metadata=_about_run(detail),
        ),
        results=_numbers(run),
        stats=EvalStats(started_at=summary.started_at, completed_at=summary.completed_at or ""),
        samples=[_sample(row, summary.model, with_text=texts.of(row.outcome)) for row in run.results],
    )


def _about_run(detail: RunDetail) -> dict[str, object]:
    run = detail
    return {
        "helmbench_run": run.id,
        "helmbench_version": detail.plugin_version,
        "benchmark_hash": detail.benchmark_hash,
        "status": run.status,
        "scope": run.scope,
        "coverage": run.coverage,
        "cost_usd": run.cost_usd,
    }


def _numbers(run: RecordedRun) -> EvalResults:
    summary = run.detail
    judged = sum(bool(row.evaluations) for row in run.results)
    values = {
        "score": summary.score,
        "score_low": summary.score_low,
        "score_high": summary.score_high,
        "coverage": summary.coverage,
        "pass_rate": summary.pass_rate,
    }
    score = EvalScore(
        name=_SCORER,
        scorer=_SCORER,
        scored_samples=judged,
        unscored_samples=len(run.results) - judged,
        metrics={
            name: EvalMetric(name=name, value=value) for name, value in values.items() if value is not None
        },
    )
    return EvalResults(
        total_samples=len(run.results), completed_samples=judged, scores=[score] if judged else []
    )


def _sample(row: ResultRow, model: str, *, with_text: bool) -> EvalSample:
    expected = [evaluation.expected for evaluation in row.evaluations]
    usage = _usage(row)
    reply = row.reply if with_text and row.reply is not None else ""
    asked = [] if not with_text else list(_conversation(row, model)) or _messages(row)
    return EvalSample(
        id=row.code,
        epoch=row.repetition,
        input=(asked[: opening_length(row)] if row.conversation else asked) or row.code,
        target=expected[0] if len(expected) == 1 else expected,
        messages=[*asked, ChatMessageAssistant(content=reply, model=model)] if reply else asked,
        output=ModelOutput.from_content(model, reply) if reply else ModelOutput(model=model),
        scores=dict(_score(one, with_text=with_text) for one in row.evaluations) or None,
        metadata=_about(row),
        model_usage={} if usage is None else {model: usage},
        started_at=row.started_at,
        completed_at=row.completed_at,
        total_time=None if row.latency_ms is None else row.latency_ms / 1000,
        error=None if row.evaluations else _error(row),
    )


def _usage(row: ResultRow) -> ModelUsage | None:
    if row.prompt_tokens is None and row.completion_tokens is None:
        return None
    taken, given = row.prompt_tokens or 0, row.completion_tokens or 0
    return ModelUsage(
        input_tokens=taken,
        output_tokens=given,
        total_tokens=taken + given,
        input_tokens_cache_read=row.cached_tokens,
        reasoning_tokens=row.reasoning_tokens,
        total_cost=row.cost_usd,
    )


def _conversation(row: ResultRow, model: str) -> Iterator[ChatMessage]:
    """Yield what was said in a conversation before the reply; a scripted reply is input, and no model's."""
    for said, calls in numbered_calls(before_reply(row)):
        if said.role != "assistant":
            yield _ROLES[said.role](content=said.text)
            continue
        yield ChatMessageAssistant(
            content=said.text,
            tool_calls=[_call(identity, call) for identity, call in calls] or None,
            source="input" if said.is_scripted else "generate",
            model=None if said.is_scripted else model,
        )
        for identity, call in calls:
            error = ToolCallError("parsing" if call.fault == BROKEN_ARGUMENTS else "unknown", call.fault)
            yield ChatMessageTool(
                content=call.answer,
                tool_call_id=identity,
                function=call.name,
                error=error if call.fault else None,
            )


def _call(identity: str, call: MadeCall) -> ToolCall:
    if isinstance(call.arguments, dict):
        return ToolCall(identity, call.name, call.arguments)
    return ToolCall(identity, call.name, {}, parse_error=str(call.arguments))


def _messages(row: ResultRow) -> list[ChatMessage]:
    """Return the prompt as Inspect's messages; what is no plain text of these roles is left out."""
    found = None if row.request is None else sent_messages(row.request)
    return [
        _ROLES[str(message["role"])](content=message["content"])
        for message in (found if isinstance(found, list) else ())
        if isinstance(message, dict)
        and message.get("role") in _ROLES
        and isinstance(message.get("content"), str)
    ]


def _score(evaluation: Evaluation, *, with_text: bool) -> tuple[str, Score]:
    return evaluation.criterion or _SCORER, Score(
        value=CORRECT if evaluation.passed else INCORRECT,
        answer=full_observed(evaluation) if with_text else evaluation.observed,
        explanation=evaluation.justification,
        metadata={"rule": evaluation.rule, "expected": evaluation.expected, "credit": evaluation.credit},
    )


def _about(row: ResultRow) -> dict[str, object]:
    parts = dict(zip(AXES, axes_of(row.code), strict=True))
    return {
        **{name: part for name, part in parts.items() if part is not None},
        "outcome": row.outcome,
        "severity": row.severity,
        "difficulty": row.difficulty,
        "neutral": row.neutral,
    }


def _error(row: ResultRow) -> EvalError:
    return EvalError(message=f"{row.outcome}: {row.reason or _UNKNOWN}", traceback="", traceback_ansi="")
