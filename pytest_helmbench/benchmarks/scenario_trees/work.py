"""Running and judging scenario trees: one question, then the rule of its scenario or a judge."""

from __future__ import annotations

import asyncio

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.measured import UnmeasuredError
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.core.pattern_process import RuleTimeoutError
from pytest_helmbench.engine.questions import judged_evaluations, one_reply, usable_judges
from pytest_helmbench.engine.work import CaseContext, UnjudgedError
from pytest_helmbench.judging.case_evaluation import judged_outcome, with_reply

__all__ = ["TreeWork"]


class TreeWork:
    """Asks once, and judges the reply."""

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        """See `Work.perform`."""
        if isinstance(case.rule, ReplyRule):
            reply = await one_reply(case, context)
            strict_json = context.settings.strict_json
            return judged_outcome(
                reply, (await _evaluation(case.rule, case, reply, strict_json=strict_json),)
            )
        judges = usable_judges(context)
        reply = await one_reply(case, context)
        return judged_outcome(reply, await judged_evaluations(case, reply, judges, context))


async def _evaluation(rule: ReplyRule, case: Case, reply: Reply, *, strict_json: bool) -> Evaluation:
    """Hold a reply to a rule: in a thread where that may take time, so that other cases go on.

    Raises:
        UnjudgedError: It took too long, or measures what is not known.
    """
    try:
        if not rule.takes_time(case, reply):
            return rule.evaluate(case, reply, strict_json=strict_json)
        return await asyncio.to_thread(rule.evaluate, case, reply, strict_json=strict_json)
    except UnmeasuredError as error:
        verdict = Verdict.SKIPPED if reply.recorded else Verdict.ERROR
        raise UnjudgedError(with_reply(Outcome(verdict, "no_measurement", str(error)), reply)) from error
    except RuleTimeoutError as error:
        raise UnjudgedError(with_reply(Outcome(Verdict.ERROR, error.code, str(error)), reply)) from error
