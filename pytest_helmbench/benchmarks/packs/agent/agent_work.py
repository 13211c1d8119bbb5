"""An agent at work on a row: its conversation with the model, its end, and the outcome of the case."""

from __future__ import annotations

from collections.abc import Sequence
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
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event, Outcome, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome, with_sums
from pytest_helmbench.gateway.call import CaseClock
from pytest_helmbench.gateway.relay.conversation import Conversation, ItemLine
from pytest_helmbench.gateway.relay.exchanges import Sums
from pytest_helmbench.gateway.relay.refusals import BadRequestError
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.sandbox.box import BoxSpec, Engine, Limits
from pytest_helmbench.sandbox.fence import Door, Fence
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace


@dataclass(frozen=True, slots=True)
class AgentRow:
    """What an agent works on.

    Args:
        family: Of the row.
        rule: The row.
        messages: The task as it is put to the agent.
    """

    family: AgentFamily
    rule: PackRule
    messages: Sequence[Message]


@dataclass(frozen=True, slots=True)
class AgentMeans:
    """Which agent works, and within which bounds.

    Args:
        command: The external agent; None for the built-in one.
        needs: What the external agent needs beside its model.
        limits: Of the agent.
    """

    command: AgentCommand | None = None
    needs: AgentNeeds = AgentNeeds()
    limits: AgentLimits = AGENT_LIMITS


async def work_on(
    row: AgentRow, means: AgentMeans, tools: RowTools, relay: Relay, conversation: Conversation
) -> Outcome:
    """Let the agent work, and have judged what it leaves. What its calls came to is not in the outcome.

    Args:
        row: What it works on.
        means: Which agent.
        tools: Of the pack, with the sandboxes of this process.
        relay: Where an external agent reaches the model.
        conversation: Passes its requests on.

    Raises:
        UnjudgedError: Through no fault of the model, there is no verdict.
    """
    engine = await tools.engine()
    fence = await tools.fence() if means.command is not None else None
    session = _Session(row, means, engine, fence, relay, conversation)
    try:
        finding = await row.family.finding(row.rule, engine, session, tools)
    except AgentFailedError as error:
        outcome = Outcome(Verdict.ERROR, "agent_failed", str(error))
        if error.run is not None:
            outcome = replace(
                outcome,
                excerpt=error.run.stderr_tail,
                excerpt_of="output",
                events=error.run.events(),
            )
        raise UnjudgedError(outcome) from error
    except (SandboxError, ConfigError) as error:
        raise UnjudgedError(Outcome(Verdict.ERROR, "sandbox", str(error))) from error
    return _outcome(row, finding, session, shows=tools.settings.show_hidden)


@dataclass(slots=True)
class _Session:
    """One row on its way."""

    row: AgentRow
    means: AgentMeans
    engine: Engine
    fence: Fence | None
    relay: Relay
    conversation: Conversation
    events: tuple[Event, ...] = ()
    open_faults: tuple[HelmbenchError, ...] = ()

    @property
    def command_limits(self) -> Limits:
        """See `AgentSession.command_limits`."""
        return self.means.limits.command

    async def work(self, spec: BoxSpec, workspace: Workspace) -> str:
        """See `AgentSession.work`."""
        means, conversation = self.means, self.conversation
        if means.command is not None:
            return await self._work_outside(means.command, workspace)
        async with await self.engine.open(spec) as box:
            transcript = await run_agent(self.row.messages, conversation, box, means.limits)
        self.events = transcript.events
        if transcript.fault is not None:
            raise UnjudgedError(replace(fault_outcome(transcript.fault), events=self.events))
        return transcript.final_text

    async def _work_outside(self, command: AgentCommand, workspace: Workspace) -> str:
        means, relay, conversation = self.means, self.relay, self.conversation
        address = await relay.open(conversation)
        message = "\n\n".join(part.content for part in self.row.messages)
        door = Door(urlsplit(address.base_url).port or 0, relay.serve, relay)
        task = ExternalTask(
            message,
            workspace,
            address,
            conversation.model_id,
            means.limits.wall_s,
            self.fence,
            (door,),
            means.needs,
        )
        run = await run_external(command, task)
        self.events = run.events()
        sums = conversation.sums
        self.open_faults = sums.open_faults
        unjudged = _fault(sums)
        if unjudged is not None:
            raise UnjudgedError(replace(unjudged, events=self.events))
        return conversation.last_text


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


def _outcome(row: AgentRow, finding: AgentFinding, session: _Session, *, shows: bool) -> Outcome:
    events = session.events
    if finding.verdict is Verdict.FAILED and session.open_faults:
        # An external agent that was left without answers has not failed by itself.
        return replace(fault_outcome(session.open_faults[0]), events=events)
    if finding.verdict is Verdict.ERROR:
        return Outcome(Verdict.ERROR, finding.reason, finding.message, events=events)
    passed = finding.verdict is Verdict.PASSED
    # What checks write shows lines of hidden tests.
    output = finding.output.strip() if shows and not passed else ""
    where = f"{finding.step}: " if finding.step else ""
    message = finding.message.splitlines()[0] if finding.message else ""
    written = f": {' '.join(output.split())}" if output else ""
    observed = "they pass" if passed else f"{where}{message}{written}"
    note = "\n".join((*finding.taken, *((output,) if output else ()))) or None
    evaluation = replace(
        row.family.row_evaluation(
            row.rule, passed=passed, observed=observed, reason=finding.reason, note=note
        ),
        in_process=finding.in_process,
    )
    return Outcome(
        verdict=finding.verdict,
        reason=finding.reason,
        evaluations=(evaluation,),
        score=evaluation.credit,
        excerpt=excerpt(output),
        excerpt_of="output",
        events=events,
    )


@dataclass(frozen=True, slots=True)
class AgentSessions:
    """Runs the rows of the agent families.

    Args:
        relay: Where external agents reach the model.
        means: Which agent works.
    """

    relay: Relay
    means: AgentMeans

    async def run(self, row: AgentRow, tools: RowTools, context: CaseContext) -> Outcome:
        """Let the agent work, and have judged what it leaves.

        Raises:
            UnjudgedError: Through no fault of the model, there is no verdict.
        """
        patience = context.gateway.patience
        # A case is one question elsewhere; here it is a whole piece of work.
        wall_s = patience.case_timeout_s or self.means.limits.wall_s
        means = replace(self.means, limits=replace(self.means.limits, wall_s=wall_s))
        clock = CaseClock(replace(patience, case_timeout_s=wall_s), context.clock.seconds)
        line = ItemLine(context.origin, context.entry, context.endpoint, "agent")
        async with Conversation(context.gateway, line, clock, context.watch) as conversation:
            try:
                outcome = await work_on(row, means, tools, self.relay, conversation)
            except UnjudgedError as stop:
                raise UnjudgedError(with_sums(stop.outcome, conversation.sums)) from stop
            return with_sums(outcome, conversation.sums)
