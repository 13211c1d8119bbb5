"""Running and judging scenario trees: one question, then the rule of its scenario or a judge."""

from __future__ import annotations

from functools import partial

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_evaluator import reply_evaluation
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.engine.questions import judged_evaluations, one_reply, usable_judges
from pytest_helmbench.engine.rules import held
from pytest_helmbench.engine.work import CaseContext
from pytest_helmbench.judging.case_evaluation import judged_outcome

__all__ = ["TreeWork"]


class TreeWork:
    """Asks once, and judges the reply."""

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        """See `Work.perform`."""
        if isinstance(case.rule, ReplyRule):
            reply = await one_reply(case, context)
            rule = partial(reply_evaluation, case.rule, case, context.settings.strict_json)
            return judged_outcome(reply, (await held(rule, reply),))
        judges = usable_judges(context)
        reply = await one_reply(case, context)
        return judged_outcome(reply, await judged_evaluations(case, reply, judges, context))
