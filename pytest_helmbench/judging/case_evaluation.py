"""A case and its reply to evaluations: one for a field rule, one per criterion for a judged case."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from pytest_helmbench.benchmarks.scenario_trees.field_rules import (
    FIELD_RULES,
    OBSERVED_LIMIT,
    expected_text,
    field_value,
    observed_text,
    rule_hash,
)
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.core.rule import Criterion, FieldRule, JudgeRule, Rule
from pytest_helmbench.core.scrub import REDACTED, excerpt
from pytest_helmbench.judging.json_replies import Reading, read_reply
from pytest_helmbench.judging.judge import (
    JudgeTemplate,
    OffMenuError,
    judge_messages,
    judge_response_format,
    judged_text,
    judgement,
)

__all__ = [
    "PermitRequest",
    "case_passed",
    "case_score",
    "evaluate_fields",
    "evaluate_judged",
    "judged_outcome",
    "judged_rule_hash",
    "rule_hashes",
    "with_reply",
]

PermitRequest = Callable[[Criterion, tuple[Message, ...], Mapping[str, Any]], Awaitable[Reply]]
"""Sends a judge's messages with a response format; raises what keeps it from an answer."""


def evaluate_fields(case: Case, reply: Reply, *, strict_json: bool) -> tuple[Evaluation, ...]:
    """Hold a reply to the field rule of its case: always one evaluation.

    A reply that cannot be read is wrong whatever the polarity.

    Raises:
        TypeError: The case is a judged one.
    """
    rule = case.rule
    if not isinstance(rule, FieldRule):
        raise TypeError(f"{case.code}: a judged case has no field rule")
    inverted = rule.by_severity and case.severity < 0
    reading = read_reply(reply.text, reply.finish_reason, reply.refusal, case.schema, strict=strict_json)
    if reading.reason is None:
        observed = field_value(reading.value, rule.field)
        passed = FIELD_RULES[rule.type](rule, observed) is not inverted
        shown = observed_text(rule, observed)
    else:
        passed = False
        shown = _form_fault(reading)
    return (
        Evaluation(
            criterion="",
            rule=rule.type,
            rule_hash=rule_hash(rule),
            passed=passed,
            credit=1.0 if passed else 0.0,
            reason=reading.reason,
            parse=reading.parse,
            expected=expected_text(rule, inverted=inverted),
            observed=shown,
        ),
    )


def _form_fault(reading: Reading) -> str:
    # No word of the reply: this text is also shown where replies are not.
    texts = {
        "refusal": "(a refusal)",
        "truncated": "(cut at the token limit)",
        "empty": "(empty)",
        "invalid_json": "(no readable JSON)",
    }
    return texts.get(reading.reason or "") or excerpt(
        f"(JSON against its schema, {reading.breach})", OBSERVED_LIMIT
    )


async def evaluate_judged(
    case: Case, reply: Reply, *, template: JudgeTemplate, judge_model: str, ask: PermitRequest
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
        rule_hash = judged_rule_hash(rule, criterion, template, judge_model)
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


def judged_rule_hash(rule: JudgeRule, criterion: Criterion, template: JudgeTemplate, judge_model: str) -> str:
    """Return the rule hash of a judged evaluation: criterion, polarity, template and judge."""
    polarity = ("by_severity",) if rule.by_severity else ()
    return rule_hash(criterion, template.hash, judge_model, *polarity)


def rule_hashes(rule: Rule, template: JudgeTemplate, judge_model: str) -> tuple[str, ...]:
    """Return the rule hash of every evaluation that a case with this rule gets, in order."""
    if isinstance(rule, FieldRule):
        return (rule_hash(rule),)
    return tuple(judged_rule_hash(rule, criterion, template, judge_model) for criterion in rule.criteria)


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
