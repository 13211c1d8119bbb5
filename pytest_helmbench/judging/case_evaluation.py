"""Having a reply judged by a marking model, and what evaluations make of a case: its verdict and score."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Evaluation, Judgement, Outcome, Reply, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import REDACTED, excerpt
from pytest_helmbench.judging.judge import (
    JudgeTemplate,
    OffMenuError,
    judge_messages,
    judge_response_format,
    judged_text,
    judgement,
)
from pytest_helmbench.judging.panel import Settled, settled
from pytest_helmbench.judging.rubric import Criterion, JudgeRule, deciding_judges

__all__ = [
    "AskJudge",
    "JudgesDisagreeError",
    "case_passed",
    "case_score",
    "evaluate_judged",
    "judged_outcome",
    "with_reply",
]

AskJudge = Callable[[str, Criterion, tuple[Message, ...], JsonObject], Awaitable[Reply]]
"""Sends messages with a response format to a judge, by its id; raises what keeps it from an answer."""


class JudgesDisagreeError(HelmbenchError):
    """The judges say pass and fail of the same reply, and must agree.

    Args:
        message: Who said what.
        judgements: Of all criteria.
    """

    def __init__(self, message: str, judgements: tuple[Judgement, ...]) -> None:
        self.judgements = judgements
        super().__init__(message)


async def evaluate_judged(
    case: Case,
    reply: Reply,
    *,
    template: JudgeTemplate,
    judges: Sequence[str],
    ask: AskJudge,
    must_agree: bool = False,
) -> tuple[Evaluation, ...]:
    """Have every criterion of a case judged, all at once; one evaluation per criterion, in file order.

    Args:
        case: With a `JudgeRule`.
        reply: Of the model under test, in whatever form it came.
        template: The judges' wording.
        judges: Ids of the marking models, in order; see `panel.settled`.
        ask: Reaches them.
        must_agree: Two who disagree give no verdict.

    Raises:
        OffMenuError: A judge's answer is none. This, like whatever `ask` raises, comes only after all
            criteria are answered, so that no answer that is paid for gets lost; the first one stands.
        JudgesDisagreeError: They do, and must not.
    """
    rule = case.rule
    if not isinstance(rule, JudgeRule):
        raise TypeError(f"{case.code}: a case with a field rule has no judge")
    inverted = rule.by_severity and case.severity < 0
    text, parse = judged_text(case, reply)

    async def judged(criterion: Criterion) -> Settled:
        messages = judge_messages(template, criterion, case, text)
        rule_hash = rule.criterion_hash(criterion, template.hash, deciding_judges(judges))

        async def said(judge: str) -> Evaluation:
            answer = await ask(judge, criterion, messages, judge_response_format(criterion))
            try:
                return judgement(criterion, answer, rule_hash=rule_hash, parse=parse, inverted=inverted)
            except OffMenuError as error:
                why = "its answer is not on the menu, and hidden as its rubric is" if rule.hidden else error
                raise OffMenuError(f"the judge {judge} is at fault: {why}") from None

        return await settled(judges, _without_words(said) if rule.hidden else said)

    parts = await _all_of(map(judged, rule.criteria))
    if must_agree:
        _refuse_disagreement(parts)
    return tuple(part.evaluation for part in parts)


def _refuse_disagreement(parts: Sequence[Settled]) -> None:
    disputed = [part.evaluation for part in parts if not part.agreed]
    if disputed:
        said = (one for part in parts for one in part.evaluation.judgements)
        raise JudgesDisagreeError(
            _disagreement(disputed), tuple(replace(one, of_record=False) for one in said)
        )


def _without_words(said: Callable[[str], Awaitable[Evaluation]]) -> Callable[[str], Awaitable[Evaluation]]:
    """Return what has a judge speak whose words may quote a hidden rubric."""

    async def redacted(judge: str) -> Evaluation:
        found = await said(judge)
        return replace(found, justification=found.justification and REDACTED)

    return redacted


async def _all_of(parts: Iterable[Awaitable[Settled]]) -> list[Settled]:
    """Wait for all of them, whatever one raises; the first fault is raised then."""
    found = []
    for item in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(item, BaseException):
            raise item
        found.append(item)
    return found


def _disagreement(evaluations: Sequence[Evaluation]) -> str:
    """Return who said what, without what they have seen."""
    parts = []
    for evaluation in evaluations:
        said = ", ".join(
            f"{one.judge} says {'pass' if one.passed else 'fail'}" for one in evaluation.judgements
        )
        parts.append(f"{evaluation.criterion}: {said}" if evaluation.criterion else said)
    return f"the judges disagree, and must agree: {'; '.join(parts)}"


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
        excerpt="" if passed else excerpt(reply.text, indented=True),
    )
    return with_reply(outcome, reply)
