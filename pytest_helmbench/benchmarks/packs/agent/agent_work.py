"""An agent at work on a row: its conversation with the model, its end, and the outcome of the case."""

from __future__ import annotations

import asyncio
import json
from base64 import b64decode, b64encode
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from urllib.parse import urlsplit

from pytest_helmbench.benchmarks.packs.agent.agent_family import (
    AgentFamily,
    AgentFinding,
    Desk,
    Place,
    Work,
)
from pytest_helmbench.benchmarks.packs.agent.builtin import AgentLimits, run_agent
from pytest_helmbench.benchmarks.packs.agent.external import (
    AgentCommand,
    AgentFailedError,
    AgentNeeds,
    ExternalTask,
    run_external,
)
from pytest_helmbench.benchmarks.packs.row_tools import RowTools, held_room
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackRule
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import json_object
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event, Outcome, Verdict
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, fault_outcome, with_totals
from pytest_helmbench.files.strict_json import texts
from pytest_helmbench.gateway.call import CaseClock
from pytest_helmbench.gateway.relay.conversation import CallTotals, Conversation, ItemLine
from pytest_helmbench.gateway.relay.refusals import BadRequestError
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.sandbox.box import Command, Ended, Limits, Shell
from pytest_helmbench.sandbox.fence import OpenPort
from pytest_helmbench.sandbox.owners import new_folder
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_NO_SHELL = "an agent reaches the box of this row by {shell}: put it into --helmbench-agent"
_STOPPED, _NO_BOX = 124, 125  # as the programs `timeout` and `docker exec` say it
_OUTPUT = 4 * 1024 * 1024
_ASKED_NOTHING = "the agent asked its model nothing and was judged by what it left"


@dataclass(frozen=True, slots=True)
class AgentSessions:
    """Runs the rows of the agent families.

    Args:
        relay: Where external agents reach the model.
        command: The external agent; None for the built-in one.
        needs: What the external agent needs beside its model.
    """

    relay: Relay
    command: AgentCommand | None = None
    needs: AgentNeeds = AgentNeeds()

    async def run(
        self,
        family: AgentFamily[Place, Work],
        rule: PackRule,
        messages: Sequence[Message],
        tools: RowTools,
        context: CaseContext,
    ) -> Outcome:
        """Let the agent work on a row, which `messages` put to it, and have judged what it leaves.

        Raises:
            UnjudgedError: Through no fault of the model, there is no verdict.
        """
        if family.in_living_box and self.command is not None and not self.command.wants_shell:
            return Outcome(Verdict.SKIPPED, "no_shell", _NO_SHELL)
        retry_policy = context.gateway.retry_policy
        # A case is one question elsewhere; here it is a whole piece of work.
        usual = AgentLimits()
        bounds = (retry_policy.case_timeout_s, family.agent_wall_s(rule.task))
        limits = replace(usual, wall_s=min(filter(None, bounds), default=usual.wall_s))
        clock = CaseClock(replace(retry_policy, case_timeout_s=limits.wall_s), context.clock.seconds)
        line = ItemLine(context.origin, context.entry, context.endpoint, "agent")
        async with (
            held_room(context.gateway, family.room_of(rule.task)),
            Conversation(context.gateway, line, clock, context.watch) as conversation,
        ):
            session = _Session(self, messages, limits, tools, conversation)
            try:
                outcome = await session.judged(family, rule)
            except UnjudgedError as stop:
                raise UnjudgedError(session.on_record(stop.outcome)) from stop
            return session.on_record(outcome)


@dataclass(slots=True)
class _Session:
    """One row on its way."""

    agents: AgentSessions
    messages: Sequence[Message]
    limits: AgentLimits
    tools: RowTools
    conversation: Conversation
    events: tuple[Event, ...] = ()
    place_events: Sequence[Event] = ()
    open_faults: tuple[HelmbenchError, ...] = ()
    remarks: tuple[str, ...] = ()

    async def judged(self, family: AgentFamily[Place, Work], rule: PackRule) -> Outcome:
        """Return the outcome, without what `on_record` adds."""
        row = await family.row(rule, self.tools)
        self.place_events = row.events
        try:
            finding = await family.finding(row, self.work, self.tools)
        except AgentFailedError as error:
            outcome = Outcome(Verdict.ERROR, "agent_failed", str(error))
            if error.run is not None:
                self.events = error.run.events()
                outcome = replace(outcome, excerpt=error.run.stderr_tail, excerpt_of="output")
            raise UnjudgedError(outcome) from error
        except (SandboxError, ConfigError) as error:
            raise UnjudgedError(Outcome(Verdict.ERROR, "sandbox", str(error))) from error
        return self._outcome(family, rule, finding)

    def on_record(self, outcome: Outcome) -> Outcome:
        """Return an outcome with what was done for it, and what the agent's calls came to."""
        events = (*self.events, *self.place_events)
        return with_totals(replace(outcome, events=events), self.conversation.totals)

    async def work(self, desk: Desk) -> str:
        if self.agents.command is not None:
            return await self._work_outside(self.agents.command, desk)
        limits = replace(self.limits, lives_on=desk.lives_on)
        transcript = await run_agent(self.messages, self.conversation, desk.shell, limits)
        self.events = transcript.events
        if transcript.fault is not None:
            raise UnjudgedError(fault_outcome(transcript.fault))
        return transcript.final_text

    async def _work_outside(self, command: AgentCommand, desk: Desk) -> str:
        if desk.workspace is not None:
            return await self._work_in(command, desk.workspace)
        with Workspace(await asyncio.to_thread(new_folder)) as workspace:
            self.conversation.set_door(partial(_run_for_agent, desk.shell, self.limits.wall_s))
            try:
                return await self._work_in(command, workspace)
            finally:
                self.conversation.set_door(None)

    async def _work_in(self, command: AgentCommand, workspace: Workspace) -> str:
        relay, conversation = self.agents.relay, self.conversation
        fence, address = await self.tools.fence(), await relay.open(conversation)
        task = ExternalTask(
            "\n\n".join(part.content for part in self.messages),
            workspace,
            address,
            conversation.model_id,
            self.limits.wall_s,
            fence,
            (OpenPort(urlsplit(address.base_url).port or 0, relay.serve, relay),),
            self.agents.needs,
        )
        self.events = (await run_external(command, task)).events()
        self.open_faults = conversation.totals.open_faults
        unjudged = _fault(conversation.totals)
        if unjudged is not None:
            raise UnjudgedError(unjudged)
        if not conversation.totals.answered:
            self.remarks = (_ASKED_NOTHING,)
            self.tools.sandboxes.note(f"in some cases {_ASKED_NOTHING} (--helmbench-agent)")
        return conversation.last_text

    def _outcome(self, family: AgentFamily[Place, Work], rule: PackRule, finding: AgentFinding) -> Outcome:
        if finding.verdict is Verdict.FAILED and self.open_faults:
            # An external agent that was left without answers has not failed by itself.
            return fault_outcome(self.open_faults[0])
        if finding.verdict is Verdict.ERROR:
            return Outcome(Verdict.ERROR, finding.reason, finding.message)
        passed = finding.verdict is Verdict.PASSED
        # The output of tests shows lines of hidden ones.
        output = finding.output.strip() if self.tools.settings.show_hidden and not passed else ""
        observed = "they pass"
        if not passed:
            where = f"{finding.step}: " if finding.step else ""
            written = f": {' '.join(output.split())}" if output else ""
            observed = where + finding.message.partition("\n")[0] + written
        note = "\n".join((*self.remarks, *finding.removed, *((output,) if output else ()))) or None
        judged = family.row_evaluation(
            rule, passed=passed, observed=observed, reason=finding.reason, note=note
        )
        parts = finding.credits or {"": judged.credit}
        return Outcome(
            verdict=finding.verdict,
            reason=finding.reason,
            evaluations=tuple(
                replace(judged, criterion=name, passed=credit >= 1, credit=credit, beside=finding.beside)
                for name, credit in parts.items()
            ),
            score=sum(parts.values()) / len(parts),
            excerpt=excerpt(output),
            excerpt_of="output",
        )


async def _run_for_agent(shell: Shell, wall_s: float, sent: bytes) -> bytes:
    """Run what the program `{shell}` was called with; return how it ended.

    Raises:
        BadRequestError: The request is not one of that program's.
    """
    try:
        asked = json_object(json.loads(sent))
        argv, given = texts(asked.get("argv")), b64decode(str(asked.get("stdin")), validate=True)
    except (ValueError, RecursionError) as error:
        raise BadRequestError("only the program {shell} asks here") from error
    if not argv or any("\0" in word for word in argv):
        raise BadRequestError("argv is not a list of program and arguments")
    try:
        ended = await shell.run(Command(argv, stdin=given, limits=Limits(wall_s, output_bytes=_OUTPUT)))
    except SandboxError as error:
        ended = Ended(_NO_BOX, b"", f"{error}\n".encode(), False, False, "", 0.0)
    err = ended.stderr + (f"[stopped: {ended.reason}]\n".encode() if ended.exit_code is None else b"")
    code = _STOPPED if ended.exit_code is None else ended.exit_code
    said = {"stdout": b64encode(ended.stdout).decode(), "stderr": b64encode(err).decode()}
    return json.dumps({"exit_code": code, **said}).encode()


def _fault(totals: CallTotals) -> Outcome | None:
    """Return what an external agent gets whose work is not to be judged; None where it is."""
    refused = next((fault for fault in totals.open_faults if isinstance(fault, BadRequestError)), None)
    if refused is not None:
        return fault_outcome(refused)
    if totals.answered or not totals.open_faults:
        return None
    return fault_outcome(totals.open_faults[0])
