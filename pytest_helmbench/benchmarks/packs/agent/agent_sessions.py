"""An agent at work on a row: its conversation with the model, its end, and the outcome that the case gets."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urlsplit

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFamily, AgentFinding
from pytest_helmbench.benchmarks.packs.agent.builtin import AGENT_LIMITS, AgentLimits, run_agent
from pytest_helmbench.benchmarks.packs.agent.external import (
    AgentCommand,
    AgentFailedError,
    AgentNeeds,
    ExternalTask,
    run_external,
)
from pytest_helmbench.benchmarks.packs.row_tools import RowTools
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event, Outcome, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome, with_sums
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.relay.client_errors import BadRequestError
from pytest_helmbench.gateway.relay.conversation import Conversation, ItemLine
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.gateway.relay.sums import Sums
from pytest_helmbench.sandbox.box import BoxSpec, Engine, Limits, SandboxError
from pytest_helmbench.sandbox.fence import Door, Fence
from pytest_helmbench.sandbox.workspace import Workspace

__all__ = ["AgentSessions"]


@dataclass(frozen=True, slots=True)
class AgentSessions:
    """Runs the rows of the agent families.

    Args:
        relay: Where external agents reach the model.
        command: The external agent; None for the built-in one.
        needs: What the external agent needs beside its model.
        limits: Of the agent.
    """

    relay: Relay
    command: AgentCommand | None
    needs: AgentNeeds = AgentNeeds()
    limits: AgentLimits = AGENT_LIMITS

    async def run(
        self, family: AgentFamily, case: Case, rule: PackRule, tools: RowTools, context: CaseContext
    ) -> Outcome:
        """Let the agent work, and have judged what it leaves.

        Raises:
            UnjudgedError: Through no fault of the model, there is no verdict.
        """
        engine = await tools.engine()
        fence = await tools.fence() if self.command is not None else None
        patience = context.gateway.patience
        # A case is one question elsewhere; here it is a whole piece of work.
        limits = replace(self.limits, wall_s=patience.case_timeout_s or self.limits.wall_s)
        patience = replace(patience, case_timeout_s=limits.wall_s)
        line = ItemLine(context.origin, context.entry, context.endpoint, "agent")
        clock = CaseClock(patience, context.clock.seconds)
        async with Conversation(context.gateway, line, clock, context.watch) as conversation:
            session = _Session(self, case, engine, fence, limits, conversation)
            try:
                finding = await family.finding(rule, engine, session, tools)
            except AgentFailedError as error:
                outcome = Outcome(Verdict.ERROR, "agent_failed", str(error))
                if error.run is not None:
                    outcome = replace(
                        outcome,
                        excerpt=error.run.stderr_tail,
                        excerpt_of="output",
                        events=error.run.events(),
                    )
                raise UnjudgedError(with_sums(outcome, conversation.sums)) from error
            except (SandboxError, ConfigError) as error:
                raise UnjudgedError(
                    with_sums(Outcome(Verdict.ERROR, "sandbox", str(error)), conversation.sums)
                ) from error
            shows = tools.settings.show_hidden
            return with_sums(_outcome(family, rule, finding, session, shows=shows), conversation.sums)


@dataclass(slots=True)
class _Session:
    """One row on its way."""

    sessions: AgentSessions
    case: Case
    engine: Engine
    fence: Fence | None
    limits: AgentLimits
    conversation: Conversation
    events: tuple[Event, ...] = ()
    open_faults: tuple[HelmbenchError, ...] = ()

    @property
    def command_limits(self) -> Limits:
        """See `AgentSession.command_limits`."""
        return self.limits.command

    async def work(self, spec: BoxSpec, workspace: Workspace) -> str:
        """See `AgentSession.work`."""
        command, conversation = self.sessions.command, self.conversation
        if command is not None:
            address = await self.sessions.relay.open(conversation)
            message = "\n\n".join(part.content for part in self.case.messages)
            model, wall_s = conversation.line.entry.id, self.limits.wall_s
            relay = self.sessions.relay
            door = Door(urlsplit(address.base_url).port or 0, relay.serve, relay)
            task = ExternalTask(
                message, workspace, address, model, wall_s, self.fence, (door,), self.sessions.needs
            )
            run = await run_external(command, task)
            self.events = run.events()
            sums = conversation.sums
            self.open_faults = sums.open_faults
            unjudged = _fault(sums)
            if unjudged is not None:
                raise UnjudgedError(with_sums(replace(unjudged, events=self.events), sums))
            return ""
        async with await self.engine.open(spec) as box:
            transcript = await run_agent(self.case.messages, conversation, box, self.limits)
        self.events = transcript.events
        if transcript.fault is not None:
            outcome = replace(fault_outcome(transcript.fault), events=self.events)
            raise UnjudgedError(with_sums(outcome, conversation.sums))
        return transcript.final_text


def _fault(sums: Sums) -> Outcome | None:
    """Return what an external agent gets whose work is not to be judged; None where it is."""
    refused = next((fault for fault in sums.open_faults if isinstance(fault, BadRequestError)), None)
    if refused is not None:
        return fault_outcome(refused)
    if sums.answered:
        return None
    if sums.open_faults:
        return fault_outcome(sums.open_faults[0])
    message = (
        "the agent ended, but its model has answered no request of this case"
        "\n  hint: it has to call the address in OPENAI_BASE_URL with OPENAI_API_KEY; {base_url} and {model} stand for"
        " address and model in --helmbench-agent"
    )
    return Outcome(Verdict.ERROR, "no_model_call", message)


def _outcome(
    family: AgentFamily, rule: PackRule, finding: AgentFinding, session: _Session, *, shows: bool
) -> Outcome:
    events = session.events
    if finding.verdict is Verdict.FAILED and session.open_faults:
        # An external agent that was left without answers has not failed by itself.
        return replace(fault_outcome(session.open_faults[0]), events=events)
    if finding.verdict is Verdict.ERROR:
        return Outcome(Verdict.ERROR, finding.reason, finding.message, events=events)
    passed = finding.verdict is Verdict.PASSED
    where = f"{finding.step}: " if finding.step else ""
    observed = (
        "they pass" if passed else f"{where}{finding.message.splitlines()[0] if finding.message else ''}"
    )
    note = "\n".join(finding.taken) or None
    evaluation = replace(
        family.row_evaluation(rule, passed=passed, observed=observed, reason=finding.reason, note=note),
        in_process=finding.in_process,
    )
    return Outcome(
        verdict=finding.verdict,
        reason=finding.reason,
        evaluations=(evaluation,),
        score=evaluation.credit,
        # What checks write shows lines of hidden tests.
        excerpt=excerpt(finding.output) if shows and not passed else "",
        excerpt_of="output",
        events=events,
    )
