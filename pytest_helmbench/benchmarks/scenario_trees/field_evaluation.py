"""A reply held to the field rule of its scenario: read as JSON, judged, told in a few words."""

from __future__ import annotations

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import FieldRule, field_value
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, excerpt
from pytest_helmbench.judging.json_replies import Reading, read_reply

__all__ = ["evaluate_fields"]


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
        passed = rule.passes(observed) is not inverted
        shown = rule.observed_text(observed)
    else:
        passed = False
        shown = _form_fault(reading)
    (rule_hash,) = rule.hashes()
    return (
        Evaluation(
            criterion="",
            rule=rule.type,
            rule_hash=rule_hash,
            passed=passed,
            credit=1.0 if passed else 0.0,
            reason=reading.reason,
            parse=reading.parse,
            expected=rule.expected_text(inverted=inverted),
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
