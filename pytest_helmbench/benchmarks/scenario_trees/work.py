"""How the cases of scenario trees are run and judged: one question, then the rule of its scenario or a judge."""

from __future__ import annotations

from pytest_helmbench.benchmarks.scenario_trees.field_evaluation import evaluate_fields
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.engine.questions import judged_evaluations, one_reply, usable_judge
from pytest_helmbench.engine.work import CaseContext
from pytest_helmbench.judging.case_evaluation import judged_outcome
from pytest_helmbench.judging.rubric import JudgeRule

__all__ = ["TreeWork"]


class TreeWork:
    """Asks once, and judges the reply."""

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        """See `Work.perform`."""
        judge = usable_judge(context) if isinstance(case.rule, JudgeRule) else None
        reply = await one_reply(case, context)
        if judge is not None:
            evaluations = await judged_evaluations(case, reply, judge, context)
        else:
            evaluations = evaluate_fields(case, reply, strict_json=context.settings.strict_json)
        return judged_outcome(reply, evaluations)
