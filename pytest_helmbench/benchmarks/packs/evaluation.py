"""Rows of benchmark packs to evaluations: what of a verdict may be seen, and what names its rule."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

from pytest_helmbench.benchmarks.packs.families.code_completion.evaluation import CODE_RULES_VERSION
from pytest_helmbench.benchmarks.packs.families.text.rules import ANSWER_RULES_VERSION, evaluate_answer
from pytest_helmbench.benchmarks.packs.task import Family, PackRule, PackTask
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, REDACTED, excerpt, scrub

__all__ = ["evaluate_row", "pack_rule_hash", "row_evaluation", "wanted_text"]

_HASH_DIGITS = 16
_ANSWERS = {
    Family.MULTIPLE_CHOICE: "answer",
    Family.SHORT_ANSWER: "accepted_answers",
    Family.FREE_RESPONSE: "rubric",
}
_TESTS_PASS = "its tests pass"


def evaluate_row(rule: PackRule, reply: Reply, *, show_hidden: bool) -> Evaluation:
    """Hold a reply to a row of a text family.

    Args:
        rule: The row, and by which rules.
        reply: Of the model under test.
        show_hidden: The user wants to see the answers.

    Raises:
        ConfigError: The row is of another family, or incomplete.
    """
    task = rule.task
    if reply.refusal and not reply.text:
        return row_evaluation(rule, passed=False, observed="(a refusal)", reason="refusal", shows=show_hidden)
    finding = evaluate_answer(
        task.task_type, task.public(), task.evaluation(), reply.text, parity=rule.parity
    )
    reason = finding.reason
    if not finding.passed and reply.finish_reason == "length":
        reason = "truncated"
    return row_evaluation(
        rule, passed=finding.passed, observed=finding.statement, reason=reason, shows=show_hidden
    )


def row_evaluation(
    rule: PackRule,
    *,
    passed: bool,
    observed: str,
    reason: str | None = None,
    shows: bool = False,
    note: str | None = None,
) -> Evaluation:
    """Return the one evaluation of a row; hidden values stay out of it unless they are asked for.

    Args:
        rule: Of the row.
        passed: Right or wrong.
        observed: What came, for people.
        reason: Why it is wrong, in a word.
        shows: Hidden values are asked for.
        note: What else must be known of the verdict; the record keeps it as its justification.
    """
    return Evaluation(
        criterion="",
        rule=f"{rule.task.task_type} ({'parity' if rule.parity else 'default'})",
        rule_hash=pack_rule_hash(rule),
        passed=passed,
        credit=1.0 if passed else 0.0,
        reason=None if passed else reason,
        parse=None,
        expected=wanted_text(rule.task, shows=shows),
        observed=excerpt(scrub(observed), OBSERVED_LIMIT),
        justification=note,
    )


def wanted_text(task: PackTask, *, shows: bool) -> str:
    """Return for people what passes: `<redacted>` where it is hidden and nobody has asked to see it."""
    name = _ANSWERS.get(task.family) if task.family is not None else None
    if name is None:
        return _TESTS_PASS
    if not shows:
        return REDACTED
    value: Any = task.eval_value(name)
    if isinstance(value, dict):
        value = value.get("accepted_answers", value)
    return excerpt(scrub(json.dumps(value, ensure_ascii=False)), OBSERVED_LIMIT)


def pack_rule_hash(rule: PackRule) -> str:
    """Return 16 hex digits over everything that decides about a reply: the row's `eval`, the rules, their version."""
    decisive = [
        ANSWER_RULES_VERSION,
        CODE_RULES_VERSION,
        rule.task.task_type,
        rule.parity,
        rule.task.redacted(),
        rule.task.evaluation(),
    ]
    text = json.dumps(decisive, ensure_ascii=True, sort_keys=True, default=str)
    return sha256(text.encode()).hexdigest()[:_HASH_DIGITS]
