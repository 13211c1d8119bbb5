"""Running and judging rows of a pack: whatever their family says, with what the session has for it."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFamily
from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentSessions
from pytest_helmbench.benchmarks.packs.families.family import Family
from pytest_helmbench.benchmarks.packs.families.registry import family_of
from pytest_helmbench.benchmarks.packs.families.text.text_family import TextFamily
from pytest_helmbench.benchmarks.packs.row_tools import PackSettings, RowTools
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.engine.questions import judged_evaluations, one_reply, usable_judges
from pytest_helmbench.engine.rules import apply_rule
from pytest_helmbench.engine.work import CaseContext, UnjudgedError
from pytest_helmbench.judging.judge import judged_outcome, with_reply
from pytest_helmbench.judging.rubric import Criterion, JudgeRule

_NO_JUDGE = "no judge: give --helmbench-marking-model, or --helmbench-pack-rules=parity to judge by the published rules"


class PackWork:
    """Runs and judges the rows of a pack.

    Args:
        tools: Of the pack.
        agents: For the families that an agent works on.
    """

    def __init__(self, tools: RowTools, agents: AgentSessions) -> None:
        self.tools = tools
        self._agents = agents

    @property
    def settings(self) -> PackSettings:
        """How the session runs and judges packs."""
        return self.tools.settings

    async def perform(self, case: Case, context: CaseContext) -> Outcome:
        if isinstance(case.rule, JudgeRule):
            judges = usable_judges(context)
            reply = await one_reply(case, context)
            return judged_outcome(reply, await judged_evaluations(case, reply, judges, context))
        family, rule = _rule_of(case)
        if family.needs_judge and not rule.parity:
            if not context.marking_models:
                return Outcome(Verdict.SKIPPED, "no_judge", _NO_JUDGE)
            usable_judges(context)
        obstacle = await self._obstacle(family, rule)
        if obstacle is not None:
            return obstacle
        if isinstance(family, AgentFamily):
            return await self._agents.run(family, rule, case.messages, self.tools, context)
        reply = await one_reply(case, context)
        fault = reply.form_fault
        if rule.parity:
            reply = replace(reply, text=reply.raw or reply.text)
            fault = fault if fault == "refusal" and not reply.text else None
        if fault is not None:
            by = "words" if isinstance(family, TextFamily) else "tests"
            observed = reply.form_fault_text(fault)
            found = family.row_evaluation(rule, passed=False, observed=observed, reason=fault, by=by)
            return judged_outcome(reply, (found,))
        if isinstance(family, TextFamily):
            return judged_outcome(reply, (await self._judged_by_text(family, case, rule, reply, context),))
        try:
            return judged_outcome(reply, (await family.evaluate(rule, reply, self.tools),))
        except UnjudgedError as stop:
            raise UnjudgedError(with_reply(stop.outcome, reply)) from stop

    async def _judged_by_text(
        self, family: TextFamily, case: Case, rule: PackRule, reply: Reply, context: CaseContext
    ) -> Evaluation:
        shows = self.settings.show_hidden
        if rule.judge:
            criterion = await apply_rule(partial(family.wants_reading, rule), reply)
            if criterion is not None:
                return await self._read(family, case, rule, criterion, reply, context)
        return await apply_rule(partial(family.evaluation, rule, shows=shows), reply)

    def asked_of_judge(self, family: Family, criterion: Criterion) -> JudgeRule:
        """Return what a marking model is asked about a reply whose words alone do not say enough."""
        hidden = not self.settings.show_hidden
        return JudgeRule((criterion,), hidden=hidden, of_answer=family.sends_statement)

    async def _read(
        self,
        family: TextFamily,
        case: Case,
        rule: PackRule,
        criterion: Criterion,
        reply: Reply,
        context: CaseContext,
    ) -> Evaluation:
        asked = replace(case, rule=self.asked_of_judge(family, criterion))
        (read,) = await judged_evaluations(asked, reply, usable_judges(context), context)
        found = family.read_evaluation(rule, read, reply, shows=self.settings.show_hidden)
        return replace(found, judgements=read.judgements)

    async def _obstacle(self, family: Family, rule: PackRule) -> Outcome | None:
        """Return why a row cannot be judged here, before its model is asked; None when it can."""
        obstacle = await self.tools.obstacle(family, rule.task)
        return None if obstacle is None else Outcome(Verdict.SKIPPED, obstacle.code, obstacle.reason)


def _rule_of(case: Case) -> tuple[Family, PackRule]:
    rule = case.rule
    family = family_of(rule.task) if isinstance(rule, PackRule) else None
    if not isinstance(rule, PackRule) or family is None:
        raise TypeError(f"{case.code}: no row of a pack")
    return family, rule
