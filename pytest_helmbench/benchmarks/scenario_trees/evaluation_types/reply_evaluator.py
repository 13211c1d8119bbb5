"""A rule with the case that it is held against: what any process can judge a reply with."""

from __future__ import annotations

from dataclasses import replace

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.measured import UnmeasuredError
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.core.pattern_process import RuleTimeoutError

__all__ = ["ReplyEvaluator"]


@dataclass(frozen=True, slots=True)
class ReplyEvaluator:
    """See `Evaluator`.

    Args:
        rule: Of the case.
        case: Without its messages, which no rule reads.
        strict_json: No recovery of JSON from surrounding text.
    """

    rule: ReplyRule
    case: Case
    strict_json: bool

    @classmethod
    def of(cls, rule: ReplyRule, case: Case, *, strict_json: bool) -> ReplyEvaluator:
        """Return what judges a reply to a case."""
        return cls(rule, replace(case, messages=()), strict_json)

    @property
    def group(self) -> str:
        """See `Evaluator.group`."""
        return self.rule.type

    @property
    def shared(self) -> tuple[object, ...]:
        """See `Evaluator.shared`."""
        response_format = self.case.response_format
        return (self.rule,) if response_format is None else (self.rule, response_format)

    def takes_time(self, reply: Reply) -> bool:
        """See `Evaluator.takes_time`."""
        return self.rule.takes_time(self.case, reply)

    def evaluate(self, reply: Reply) -> Evaluation | Outcome:
        """See `Evaluator.evaluate`: no verdict where it takes too long, or what is measured is not known."""
        try:
            return self.rule.evaluate(self.case, reply, strict_json=self.strict_json)
        except UnmeasuredError as error:
            verdict = Verdict.SKIPPED if reply.recorded else Verdict.ERROR
            return Outcome(verdict, "no_measurement", str(error))
        except RuleTimeoutError as error:
            return Outcome(Verdict.ERROR, error.code, str(error))
