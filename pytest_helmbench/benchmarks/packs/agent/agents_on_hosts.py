"""Agents that work on the hosts of judges: what the session sends there, and what it answers meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path

from pytest_helmbench.benchmarks.packs.agent.agent_there import AgentThere, Worked
from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentMeans, AgentRow
from pytest_helmbench.benchmarks.packs.judge_host import SandboxWishes
from pytest_helmbench.benchmarks.packs.row_material import Material, MaterialSource, piece
from pytest_helmbench.benchmarks.packs.row_tools import RowTools
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.engine.host_lines import LineAddress, LineClosedError
from pytest_helmbench.engine.work import Evaluating, UnjudgedError
from pytest_helmbench.gateway.call import Watch
from pytest_helmbench.gateway.relay.attempts import Attempts, VoidAttemptError
from pytest_helmbench.gateway.relay.conversation import Conversation
from pytest_helmbench.sandbox.workspace import SandboxError

__all__ = ["AgentsOnHosts"]

_ATTEMPTS = 2
_TASKS = 4
"""Tasks for one item: its attempts, and as many that ended before they had begun one."""
_UNHEARD = (
    "none of its judges could ask the session\n"
    "  hint: `helmbench judges check` looks at them; see the log of their workers"
)
_LOST = (
    "its judge was lost while an agent worked, and so was the next one\n"
    "  hint: --helmbench-resume starts it over, and asks nothing again that is on record"
)
_STAY = "agents worked, and were checked, on this machine: "


class AgentsOnHosts:
    """The session's side.

    Args:
        wishes: Which sandboxes the user wants.
        unprotected: His own agent may run without a fence.
        note: Says something in the summary.
    """

    def __init__(
        self, wishes: SandboxWishes, unprotected: UsersWord[bool], note: Callable[[str], None]
    ) -> None:
        self._wishes = wishes
        self._unprotected = unprotected
        self._note = note
        self._noted = False
        self._source = MaterialSource()

    def take(self, means: AgentMeans, evaluations: Evaluating) -> bool:
        """Return whether agents work there; where judges are on hosts and agents stay nevertheless, it is said once."""
        if not evaluations.has_hosts:
            return False
        if not evaluations.has_lines:
            why = "from the judges' processes they cannot ask the session, as they can from Dask's"
        elif means.command is not None and self._unprotected:
            why = "one that may run without a fence (--helmbench-unprotected) is not sent to other hosts"
        else:
            return True
        if not self._noted:
            self._noted = True
            self._note(f"{_STAY}{why}")
        return False

    async def work_on(
        self,
        row: AgentRow,
        means: AgentMeans,
        tools: RowTools,
        conversation: Conversation,
        evaluations: Evaluating,
        watch: Watch,
    ) -> Outcome:
        """Have an agent work on a row there, and have judged there what it leaves.

        Raises:
            UnjudgedError: There is no verdict, through no fault of the model.
        """
        material, places = await self._material(row, tools)
        hosted = _HostedAgent(conversation, places)

        def there(address: LineAddress) -> AgentThere:
            return AgentThere(
                address,
                row.rule,
                row.messages,
                conversation.model_id,
                means,
                tools.settings,
                self._wishes,
                material,
            )

        for _ in range(_TASKS):
            worked: Worked = await evaluations.on_host_asking(hosted, there, watch)
            outcome = worked.outcome
            if outcome is not None and hosted.attempts.counts(worked.token):
                if worked.unjudged:
                    raise UnjudgedError(outcome)
                return outcome
            if hosted.attempts.refused:
                break
        why = _LOST if hosted.attempts.begun else _UNHEARD
        raise UnjudgedError(Outcome(Verdict.ERROR, "agent_failed", why))

    async def _material(self, row: AgentRow, tools: RowTools) -> tuple[Material, Mapping[str, Path]]:
        try:
            planned = row.family.files_for(row.rule.task, tools.files)
            return await asyncio.to_thread(self._source.material, tools.files, row.rule.task, planned)
        except SandboxError as error:
            raise UnjudgedError(Outcome(Verdict.ERROR, "sandbox", str(error))) from error


class _HostedAgent:
    """Answers an agent that works elsewhere. See `LineService`.

    Args:
        conversation: Of its item.
        places: Files that it may have, by their content.
    """

    def __init__(self, conversation: Conversation, places: Mapping[str, Path]) -> None:
        self.attempts = Attempts(conversation, _ATTEMPTS)
        self._conversation = conversation
        self._places = places

    async def answer(self, message: bytes) -> bytes:
        """See `LineService.answer`."""
        try:
            first, _, body = message.partition(b"\n")
            head = json.loads(first)
            if head.get("wanted") != "file":
                return await self.attempts.answer(head, body)
            self.attempts.check(head)
            place, offset = self._places.get(str(head["digest"])), int(head["offset"])
            return b"+" + (b"" if place is None else await asyncio.to_thread(piece, place, offset))
        except VoidAttemptError as error:
            raise LineClosedError from error
        except Exception as bug:
            self._conversation.fail(bug)  # it must reach the item, and not only the other host
            raise LineClosedError from bug
