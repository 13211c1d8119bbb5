"""Agents of a session: their conversation with the model, and where they work."""

from __future__ import annotations

from dataclasses import replace

from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentMeans, AgentRow, work_on
from pytest_helmbench.benchmarks.packs.row_tools import RowTools
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.engine.work import CaseContext, UnjudgedError, with_sums
from pytest_helmbench.gateway.call import CaseClock
from pytest_helmbench.gateway.relay.conversation import Conversation, ItemLine
from pytest_helmbench.gateway.relay.relay import Relay

__all__ = ["AgentSessions"]


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
