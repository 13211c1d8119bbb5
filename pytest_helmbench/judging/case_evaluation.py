"""Having a reply judged by a marking model, and what evaluations make of a case: its verdict and score."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from statistics import fmean

from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.core.scrub import REDACTED, excerpt
from pytest_helmbench.judging.judge import (
    JudgeTemplate,
    OffMenuError,
    judge_messages,
    judge_response_format,
    judged_text,
    judgement,
)
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

__all__ = [
    "AskJudge",
    "case_passed",
    "case_score",
    "evaluate_judged",
    "judged_outcome",
    "with_reply",
]

AskJudge = Callable[[Criterion, tuple[Message, ...], JsonObject], Awaitable[Reply]]
"""Sends a judge's messages with a response format; raises what keeps it from an answer."""


async def evaluate_judged(
    case: Case, reply: Reply, *, template: JudgeTemplate, judge_model: str, ask: AskJudge
) -> tuple[Evaluation, ...]:
    """Have every criterion of a case judged, all at once; one evaluation per criterion, in file order.

    Args:
        reply: Of the model under test, in whatever form it came.
        judge_model: Id of the marking model.

    Raises:
        TypeError: The case is not a judged one.
        OffMenuError: The judge's answer is none. This, like whatever `ask` raises, comes only after all
            criteria are answered, so that no answer that is paid for gets lost; the first one stands.
    """
    rule = case.rule
    if not isinstance(rule, JudgeRule):
        raise TypeError(f"{case.code}: a case with a field rule has no judge")
    inverted = rule.by_severity and case.severity < 0
    text, parse = judged_text(case, reply)

    async def judged(criterion: Criterion) -> Evaluation:
        messages = judge_messages(template, criterion, case, text)
        answer = await ask(criterion, messages, judge_response_format(criterion))
        rule_hash = rule.criterion_hash(criterion, template.hash, judge_model)
        try:
            found = judgement(criterion, answer, rule_hash=rule_hash, parse=parse, inverted=inverted)
        except OffMenuError:
            if not rule.hidden:
                raise
            raise OffMenuError("its answer is not on the menu, and hidden as its rubric is") from None
        return replace(found, justification=found.justification and REDACTED) if rule.hidden else found

    found = await asyncio.gather(*map(judged, rule.criteria), return_exceptions=True)
    evaluations: list[Evaluation] = []
    for item in found:
        if isinstance(item, BaseException):
            raise item
        evaluations.append(item)
    return tuple(evaluations)


def case_score(evaluations: Sequence[Evaluation]) -> float:
    """Return the mean credit, in [0, 1], of at least one evaluation."""
    return fmean(evaluation.credit for evaluation in evaluations)


def case_passed(evaluations: Sequence[Evaluation]) -> bool:
    """Return whether there are evaluations and all passed."""
    return bool(evaluations) and all(evaluation.passed for evaluation in evaluations)


def with_reply(outcome: Outcome, reply: Reply) -> Outcome:
    """Return the outcome with what the case's own reply took."""
    return replace(
        outcome,
        usage=reply.usage,
        latency_ms=reply.latency_ms,
        finish_reason=reply.finish_reason,
        reply_key=reply.key,
    )


def judged_outcome(reply: Reply, evaluations: tuple[Evaluation, ...]) -> Outcome:
    """Return what a reply and its evaluations make of a case."""
    passed = case_passed(evaluations)
    reasons = [evaluation.reason for evaluation in evaluations if evaluation.reason]
    outcome = Outcome(
        verdict=Verdict.PASSED if passed else Verdict.FAILED,
        reason=reasons[0] if reasons else None,
        evaluations=evaluations,
        score=case_score(evaluations),
        excerpt="" if passed else excerpt(reply.text),
    )
    return with_reply(outcome, reply)
