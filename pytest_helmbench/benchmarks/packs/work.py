"""How rows of a pack are run and judged: rules for text, sandboxes for code, agents for workspaces."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_helmbench.benchmarks.packs.agent_work import AgentWork
from pytest_helmbench.benchmarks.packs.evaluation import evaluate_row, row_evaluation
from pytest_helmbench.benchmarks.packs.families.code_completion.evaluation import code_image, evaluate_code
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import denied_commands
from pytest_helmbench.benchmarks.packs.sandboxes import Sandboxes
from pytest_helmbench.benchmarks.packs.task import Family, PackRule, PackTask
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply, Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import CaseContext, UnjudgedError
from pytest_helmbench.sandbox.box import Engine, SandboxError, Unavailable

__all__ = ["PackSettings", "PackWork", "image_of"]

_IMAGE_NOT_USED = "image not used: this machine's Python ran the tests"
_AGENT_FAMILIES = frozenset({Family.REPO_PATCH, Family.TERMINAL_TASK})


@dataclass(frozen=True, slots=True)
class PackSettings:
    """How packs are run and judged.

    Args:
        parity: By the published rules instead of those made for what models really write.
        show_hidden: Verdicts may show hidden values.
    """

    parity: bool = False
    show_hidden: bool = False


class PackWork:
    """Runs and judges the rows of a pack.

    Args:
        settings: Of the session.
        sandboxes: Of the process.
        agents: For the families that an agent works on.
    """

    def __init__(self, settings: PackSettings, sandboxes: Sandboxes, agents: AgentWork) -> None:
        self.settings = settings
        self._sandboxes = sandboxes
        self._agents = agents

    async def obstacle(self, case: Case) -> Outcome | None:
        """See `Work.obstacle`."""
        rule = case.rule
        if not isinstance(rule, PackRule) or rule.task.family is None or not rule.task.family.runs_code:
            return None
        if rule.task.family is Family.TERMINAL_TASK:
            denied = denied_commands(rule.task, self._agents.allow_commands)
            if denied is not None:
                return Outcome(Verdict.SKIPPED, "denied_command", denied)
        engine = await self._sandboxes.engine()
        found = engine if isinstance(engine, Unavailable) else await engine.obstacle(image_of(rule.task))
        return None if found is None else Outcome(Verdict.SKIPPED, "no_sandbox", found.reason)

    async def evaluate(self, case: Case, reply: Reply) -> tuple[Evaluation, ...]:
        """See `Work.evaluate`."""
        rule = case.rule
        if not isinstance(rule, PackRule):
            raise TypeError(f"{case.code}: no row of a pack")
        if rule.task.family is Family.CODE_COMPLETION:
            return (await self._run_code(rule, reply),)
        return (evaluate_row(rule, reply, show_hidden=self.settings.show_hidden),)

    async def perform(self, case: Case, context: CaseContext) -> Outcome | None:
        """See `Work.perform`."""
        rule = case.rule
        if not isinstance(rule, PackRule) or rule.task.family not in _AGENT_FAMILIES:
            return None
        return await self._agents.run(case, rule, await self._engine(), context)

    async def _run_code(self, rule: PackRule, reply: Reply) -> Evaluation:
        engine = await self._engine()
        try:
            found = await evaluate_code(rule.task, reply.text, engine)
        except SandboxError as error:
            raise UnjudgedError(Outcome(Verdict.ERROR, "sandbox", str(error))) from error
        if found.verdict is Verdict.ERROR:
            raise UnjudgedError(Outcome(Verdict.ERROR, found.reason, found.message))
        passed = found.verdict is Verdict.PASSED
        observed = "they pass" if passed else excerpt(found.message)
        note = None if found.image_used else _IMAGE_NOT_USED
        return row_evaluation(rule, passed=passed, observed=observed, reason=found.reason, note=note)

    async def _engine(self) -> Engine:
        engine = await self._sandboxes.engine()
        if isinstance(engine, Unavailable):
            raise UnjudgedError(Outcome(Verdict.SKIPPED, "no_sandbox", engine.reason))
        return engine


def image_of(task: PackTask) -> str | None:
    """Return the container image that the boxes of a row need; None for programs of this machine."""
    return code_image(task) if task.family is Family.CODE_COMPLETION else task.environment.image
