"""Rows that an agent works on: a place is laid out, the agent works in it, what it leaves is judged elsewhere."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pytest_helmbench.benchmarks.packs.agent.builtin import AGENT_LIMITS, AgentLimits, run_agent
from pytest_helmbench.benchmarks.packs.agent.external import (
    AgentCommand,
    AgentFailedError,
    ExternalTask,
    run_external,
)
from pytest_helmbench.benchmarks.packs.evaluation import row_evaluation
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.benchmarks.packs.families.repo_patch.finding import (
    CandidateFaultError,
    PackFaultError,
    PatchFinding,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.workplace import candidate_of, opened_workplace
from pytest_helmbench.benchmarks.packs.families.terminal_task.evaluation import Evaluator, evaluate_terminal
from pytest_helmbench.benchmarks.packs.families.terminal_task.finding import TerminalFinding
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import opened_place
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack
from pytest_helmbench.benchmarks.packs.task import ConfigError, Family, PackRule, PackTask
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.outcome import Event, Outcome, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome, with_sums
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.relay.conversation import Conversation, ItemLine
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.sandbox.box import BoxSpec, Engine, SandboxError
from pytest_helmbench.sandbox.workspace import Workspace

__all__ = ["AgentWork"]


@dataclass(frozen=True, slots=True)
class AgentWork:
    """Runs and judges the rows of the agent families.

    Args:
        pack: Whose rows they are.
        relay: Where external agents reach the model.
        command: The external agent; None for the built-in one.
        parity: By the published path rules.
        allow_commands: Dangerous commands that a row may need.
        limits: Of the agent.
    """

    pack: Pack
    relay: Relay
    command: AgentCommand | None
    parity: bool
    allow_commands: tuple[str, ...]
    limits: AgentLimits = AGENT_LIMITS

    async def run(self, case: Case, rule: PackRule, engine: Engine, context: CaseContext) -> Outcome:
        """Let the agent work, and judge what it leaves.

        Raises:
            UnjudgedError: Through no fault of the model, there is no verdict.
        """
        patience = context.gateway.patience
        # A case is one question elsewhere; here it is a whole piece of work.
        limits = replace(self.limits, wall_s=patience.case_timeout_s or self.limits.wall_s)
        patience = replace(patience, case_timeout_s=limits.wall_s)
        line = ItemLine(context.origin, context.entry, context.endpoint, "agent")
        session = _Session(self, case, rule, engine, limits)
        async with Conversation(context.gateway, line, CaseClock(patience), context.watch) as conversation:
            try:
                finding = await session.finding(conversation)
            except PackFaultError as error:
                finding = error.finding
            except CandidateFaultError as error:
                finding = error.finding
            except AgentFailedError as error:
                outcome = Outcome(Verdict.ERROR, "agent_failed", str(error))
                if error.run is not None:
                    outcome = replace(outcome, excerpt=error.run.stderr_tail, events=error.run.events())
                raise UnjudgedError(with_sums(outcome, conversation.sums)) from error
            except (SandboxError, ConfigError) as error:
                raise UnjudgedError(
                    with_sums(Outcome(Verdict.ERROR, "sandbox", str(error)), conversation.sums)
                ) from error
            return with_sums(_outcome(rule, finding, session), conversation.sums)


@dataclass(slots=True)
class _Session:
    """One row on its way."""

    work: AgentWork
    case: Case
    rule: PackRule
    engine: Engine
    limits: AgentLimits
    events: tuple[Event, ...] = ()
    open_faults: tuple[HelmbenchError, ...] = ()

    @property
    def task(self) -> PackTask:
        """The row."""
        return self.rule.task

    async def finding(self, conversation: Conversation) -> PatchFinding | TerminalFinding:
        """Return what came of the work."""
        assets = self.work.pack.plan_assets(self.task)
        if self.task.family is Family.REPO_PATCH:
            async with opened_workplace(self.task, self.engine, self.work.limits.command, assets) as place:
                said = await self._let_work(conversation, place.spec, place.workspace)
                patch = candidate_of(await place.patch(), said)
            return await evaluate_patch(self.task, patch, self.engine, parity=self.work.parity, assets=assets)
        plan = self.work.pack.plan_evaluator(self.task)
        allowed = self.work.allow_commands
        async with opened_place(self.task, self.engine, self.work.limits.command, assets, allowed) as ground:
            await self._let_work(conversation, ground.spec, ground.workspace)
            return await evaluate_terminal(
                self.task,
                ground.workspace,
                self.engine,
                evaluator=Evaluator(plan.files, plan.entry),
                assets=assets,
                allowed_commands=allowed,
            )

    async def _let_work(self, conversation: Conversation, spec: BoxSpec, workspace: Workspace) -> str:
        """Run the agent to its end; return what the built-in one said last.

        Raises:
            AgentFailedError: It broke down.
            UnjudgedError: The model could not be reached.
        """
        command = self.work.command
        if command is not None:
            address = await self.work.relay.open(conversation)
            message = "\n\n".join(part.content for part in self.case.messages)
            model, wall_s = conversation.line.entry.id, self.limits.wall_s
            run = await run_external(command, ExternalTask(message, workspace, address, model, wall_s))
            self.events = run.events()
            self.open_faults = conversation.sums.open_faults
            return ""
        async with await self.engine.open(spec) as box:
            transcript = await run_agent(self.case.messages, conversation, box, self.limits)
        self.events = transcript.events
        if transcript.fault is not None:
            outcome = replace(fault_outcome(transcript.fault), events=self.events)
            raise UnjudgedError(with_sums(outcome, conversation.sums))
        return transcript.final_text


def _outcome(rule: PackRule, finding: PatchFinding | TerminalFinding, session: _Session) -> Outcome:
    events = session.events
    if finding.verdict is Verdict.FAILED and session.open_faults:
        # An external agent that was left without answers has not failed by itself.
        return replace(fault_outcome(session.open_faults[0]), events=events)
    if finding.verdict is Verdict.ERROR:
        return Outcome(Verdict.ERROR, finding.reason, finding.message, events=events)
    passed = finding.verdict is Verdict.PASSED
    where = f"{finding.phase}: " if isinstance(finding, PatchFinding) and finding.phase else ""
    observed = (
        "they pass" if passed else f"{where}{finding.message.splitlines()[0] if finding.message else ''}"
    )
    evaluation = row_evaluation(rule, passed=passed, observed=observed, reason=finding.reason)
    return Outcome(
        verdict=finding.verdict,
        reason=finding.reason,
        evaluations=(evaluation,),
        score=evaluation.credit,
        excerpt="" if passed else excerpt(finding.output),
        events=events,
    )
