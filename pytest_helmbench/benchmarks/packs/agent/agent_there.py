"""An agent that works on the host of a judge, beside its sandbox there. What is here runs in that process alone."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFamily
from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentMeans, AgentRow, work_on
from pytest_helmbench.benchmarks.packs.families.registry import family_of
from pytest_helmbench.benchmarks.packs.judge_host import (
    SandboxWishes,
    host_loop,
    host_material,
    host_relay,
    host_sandboxes,
)
from pytest_helmbench.benchmarks.packs.row_material import Material
from pytest_helmbench.benchmarks.packs.row_tools import PackSettings, RowTools
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome, Reply
from pytest_helmbench.engine.host_lines import Line, LineAddress, LineClosedError
from pytest_helmbench.engine.line_opening import opened_line
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.gateway.relay.far_conversation import FarConversation, message_of
from pytest_helmbench.sandbox.workspace import remove_tree

__all__ = ["AgentThere", "Worked"]


@dataclass(frozen=True, slots=True)
class Worked:
    """What came of one attempt.

    Args:
        token: Of the attempt; empty for one that never began.
        outcome: None where the attempt does not count, or nobody answered it any more.
        unjudged: The outcome is no verdict.
    """

    token: str = ""
    outcome: Outcome | None = None
    unjudged: bool = False


@dataclass(frozen=True, slots=True)
class AgentThere:
    """A row on which an agent works. No key is in it, and no address but that of its own line.

    Args:
        address: Over which it asks.
        rule: The row.
        messages: The task.
        model_id: The model under test.
        means: Which agent.
        settings: How the session judges packs.
        wishes: Which sandboxes the user wants.
        material: What the row needs of its pack.
    """

    address: LineAddress
    rule: PackRule
    messages: Sequence[Message]
    model_id: str
    means: AgentMeans
    settings: PackSettings
    wishes: SandboxWishes
    material: Material
    shared: tuple[object, ...] = ()

    @property
    def group(self) -> str:
        """See `Evaluator.group`."""
        return self.rule.task.task_type

    def takes_time(self, _reply: Reply) -> bool:
        """See `Evaluator.takes_time`."""
        return True

    def evaluate(self, _reply: Reply) -> Worked:
        """See `Evaluator.evaluate`."""
        try:
            line = opened_line(self.address)
        except LineClosedError:
            return Worked()
        try:
            return host_loop().run(self._worked(line))
        finally:
            line.close()

    async def _worked(self, line: Line) -> Worked:
        try:
            async with asyncio.timeout(self.address.silence_s):
                conversation = await FarConversation.begin(line.ask, self.model_id)
        except (LineClosedError, TimeoutError):
            return Worked()
        if conversation is None:
            return Worked()
        working = asyncio.create_task(self._attempt(line, conversation))
        watching = asyncio.create_task(conversation.watch(self.address.silence_s))
        try:
            await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        finally:
            conversation.end()
            for task in (working, watching):
                if not task.done():
                    task.cancel()
            await asyncio.wait((working, watching))
        return Worked(conversation.token) if working.cancelled() else working.result()

    async def _attempt(self, line: Line, conversation: FarConversation) -> Worked:
        try:
            outcome, unjudged = await self._outcome(line, conversation), False
        except UnjudgedError as stop:
            outcome, unjudged = stop.outcome, True
        except LineClosedError:
            return Worked(conversation.token)
        if isinstance(conversation.bug, LineClosedError):
            return Worked(conversation.token)
        if conversation.bug is not None:
            raise conversation.bug
        return Worked(conversation.token, outcome, unjudged)

    async def _outcome(self, line: Line, conversation: FarConversation) -> Outcome:
        family = family_of(self.rule.task)
        if not isinstance(family, AgentFamily):
            raise TypeError(f"{self.rule.task.id}: no row that an agent works on")
        sandboxes = host_sandboxes(self.wishes)
        await sandboxes.remove_leftovers()

        async def fetch(digest: str, offset: int) -> bytes:
            head: JsonObject = {
                "wanted": "file",
                "digest": digest,
                "offset": offset,
                "token": conversation.token,
            }
            return (await line.ask(message_of(head)))[1:]

        root = await host_material().laid_out(self.material, fetch)
        try:
            rule = replace(self.rule, task=self.material.task_at(root, self.rule.task))
            tools = RowTools(self.settings, self.material.files_at(root), sandboxes)
            row = AgentRow(family, rule, self.messages)
            return await work_on(row, self.means, tools, host_relay(), conversation)
        finally:
            await asyncio.to_thread(remove_tree, root)
