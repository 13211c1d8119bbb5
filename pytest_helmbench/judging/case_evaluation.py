"""Having a reply judged by a marking model, and what evaluations make of a case: its verdict and score."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.outcome import Evaluation, Judgement, Outcome, Parse, Reply, Verdict
from pytest_helmbench.core.scrub import REDACTED, excerpt
from pytest_helmbench.judging.json_replies import read_reply
from pytest_helmbench.judging.judge import (
    JudgeTemplate,
    OffMenuError,
    asked_again,
    is_on_menu,
    judge_messages,
    judgement,
)
from pytest_helmbench.judging.rubric import Criterion, JudgeRule, deciding_judge

_LONGEST_ANSWER = 300

AskJudge = Callable[[str, Criterion, tuple[Message, ...], bool], Awaitable[Reply]]
"""Sends messages to a judge, by its id, for the last time or not; raises what keeps it from an answer."""


async def evaluate_judged(
    case: Case,
    reply: Reply,
    *,
    template: JudgeTemplate,
    judges: Sequence[str],
    ask: AskJudge,
) -> tuple[Evaluation, ...]:
    """Have every criterion of a case judged, all at once; one evaluation per criterion, in file order.

    Args:
        case: With a `JudgeRule`.
        reply: Of the model under test, in whatever form it came.
        template: The judges' wording.
        judges: Ids of the marking models, in order: the verdict of the first stands.
        ask: Reaches them.

    Raises:
        OffMenuError: A judge's answer is none, and neither is the one to the question asked once more. This, like
            whatever `ask` raises, comes only after all criteria are answered, so that no answer that is paid for gets
            lost; the first one stands.
    """
    rule = case.rule
    if not isinstance(rule, JudgeRule):
        raise TypeError(f"{case.code}: a case with a field rule has no judge")
    inverted = rule.by_severity and case.severity < 0
    text, parse = judged_text(case, reply)

    async def judged(criterion: Criterion) -> Evaluation:
        messages = judge_messages(template, criterion, case, text)
        rule_hash = rule.criterion_hash(criterion, template.hash, deciding_judge(judges))

        async def said(judge: str) -> Evaluation:
            answer = await ask(judge, criterion, messages, False)
            if not is_on_menu(criterion, answer):
                answer = await ask(judge, criterion, asked_again(messages), True)
            try:
                found = judgement(criterion, answer, rule_hash=rule_hash, parse=parse, inverted=inverted)
            except OffMenuError as error:
                why = "its answer is not on the menu, and hidden as its rubric is" if rule.hidden else error
                raise OffMenuError(f"the judge {judge} is at fault: {why}") from None
            return replace(found, justification=found.justification and REDACTED) if rule.hidden else found

        found = await _all_of(map(said, judges))
        return replace(found[0], judgements=_side_by_side(judges, found)) if len(found) > 1 else found[0]

    return tuple(await _all_of(map(judged, rule.criteria)))


def judged_text(case: Case, reply: Reply) -> tuple[str, Parse | None]:
    """Return what the judge sees of a reply, and how JSON was found where it sees only a part.

    That is the `response` field where the schema has one and the reply can be read, the stated answer where the rule
    asks about that (at most 300 characters), else the whole text; the provider's refusal stands in for a text that is
    empty.
    """
    text = reply.text if reply.text.strip() else (reply.refusal or reply.text)
    if isinstance(case.rule, JudgeRule) and case.rule.of_answer:
        from pytest_helmbench.judging.comparisons.stated import end_of, stated_answer

        return stated_answer(text).text[:_LONGEST_ANSWER] or end_of(text), None
    schema = case.schema
    properties = None if schema is None else schema.get("properties")
    if not isinstance(properties, dict) or "response" not in properties:
        return text, None
    reading = read_reply(reply, schema, strict=False)
    response = reading.value.get("response") if isinstance(reading.value, dict) else None
    return (response, reading.parse) if isinstance(response, str) else (text, None)


def _side_by_side(judges: Sequence[str], found: Sequence[Evaluation]) -> tuple[Judgement, ...]:
    """Return what each judge said; the first is of record."""
    return tuple(
        Judgement(
            criterion=one.criterion,
            judge=judge,
            place=place,
            passed=one.passed,
            credit=one.credit,
            observed=one.observed,
            justification=one.justification,
            of_record=place == 1,
        )
        for place, (judge, one) in enumerate(zip(judges, found, strict=True), start=1)
    )


async def _all_of(parts: Iterable[Awaitable[Evaluation]]) -> list[Evaluation]:
    """Wait for all of them, whatever one raises; the first fault is raised then."""
    found = []
    for item in await asyncio.gather(*parts, return_exceptions=True):
        if isinstance(item, BaseException):
            raise item
        found.append(item)
    return found


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
