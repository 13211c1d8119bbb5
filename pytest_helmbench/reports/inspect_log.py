"""The log of a run, made of Inspect AI's own types; imported only where such a log is written."""

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
from pytest_helmbench.reports.tables import UNKNOWN
from pytest_helmbench.results.run_report import RecordedRun
from pytest_helmbench.store.read.results import ResultRow

_SCORER = "helmbench"
_STATUS: Mapping[str, Literal["started", "success", "cancelled"]] = {
    "running": "started",
    "waiting": "started",
    "interrupted": "cancelled",
}
_ROLES = {"system": ChatMessageSystem, "user": ChatMessageUser, "assistant": ChatMessageAssistant}


def inspect_log(run: RecordedRun, texts: ShownTexts) -> EvalLog:
    """Return the log of a run: a sample per case and repetition (epoch), our numbers as metrics."""
    detail = run.detail
    codes = list(dict.fromkeys(row.code for row in run.results))
    return EvalLog(
        status=_STATUS.get(detail.status, "success"),
        eval=EvalSpec(
            run_id=detail.session_id,
            created=detail.started_at,
            task=detail.benchmark,
            task_version=detail.version,
            dataset=EvalDataset(name=detail.benchmark, samples=len(codes), sample_ids=codes),
            model=detail.model,
            model_base_url=detail.base_url,
            config=EvalConfig(epochs=max((row.repetition for row in run.results), default=1)),
            packages={"pytest-helmbench": detail.plugin_version},
            metadata={
                "helmbench_run": detail.id,
                "helmbench_version": detail.plugin_version,
                "benchmark_hash": detail.benchmark_hash,
                "status": detail.status,
                "scope": detail.scope,
                "coverage": detail.coverage,
                "cost_usd": detail.cost_usd,
            },
        ),
        results=_numbers(run),
        stats=EvalStats(started_at=detail.started_at, completed_at=detail.completed_at or ""),
        samples=[_sample(row, detail.model, with_text=texts.of(row.outcome)) for row in run.results],
    )


def _numbers(run: RecordedRun) -> EvalResults:
    judged = sum(bool(row.evaluations) for row in run.results)
    names = ("score", "score_low", "score_high", "coverage", "pass_rate")
    values = {name: getattr(run.detail, name) for name in names}
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
        error=None
        if row.evaluations
        else EvalError(message=f"{row.outcome}: {row.reason or UNKNOWN}", traceback="", traceback_ansi=""),
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
    """Yield what was said in a conversation before the reply; a scripted reply is input, not a model's."""
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
    """Return the prompt as Inspect's messages; messages without a plain text, or of other roles, are left out."""
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
