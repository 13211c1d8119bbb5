"""A reply held to the rule of its case."""

from __future__ import annotations

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.measured import UnmeasuredError
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict


def reply_evaluation(rule: ReplyRule, case: Case, strict_json: bool, reply: Reply) -> Evaluation | Outcome:
    """Return what a rule finds: no verdict where what is measured is not known.

    Args:
        rule: Of the case.
        case: The case.
        strict_json: No recovery of JSON from surrounding text.
        reply: To the case.
    """
    try:
        return rule.evaluate(case, reply, strict_json=strict_json)
    except UnmeasuredError as error:
        verdict = Verdict.SKIPPED if reply.recorded else Verdict.ERROR
        return Outcome(verdict, "no_measurement", str(error))
