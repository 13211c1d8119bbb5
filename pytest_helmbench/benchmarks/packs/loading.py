"""The packs of a session: loaded, and ready to be worked on. Imported when a session has a pack."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentMeans, AgentSessions
from pytest_helmbench.benchmarks.packs.agent.external import AgentCommand, AgentNeeds
from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.jobs import LoadedPack
from pytest_helmbench.benchmarks.packs.row_tools import PackSettings, RowTools
from pytest_helmbench.benchmarks.packs.sandboxes import Sandboxes
from pytest_helmbench.benchmarks.packs.self_check import self_check
from pytest_helmbench.benchmarks.packs.work import PackWork
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.engine.job import Target
from pytest_helmbench.gateway.relay.relay import Relay
from pytest_helmbench.options.declarations import Options

__all__ = ["PackLoader"]


class PackLoader:
    """Loads packs that share sandboxes and relay.

    Args:
        settings: Of the session.
        note: Says something in the summary.

    Raises:
        AgentCommandError: `--helmbench-agent` names nothing that can be started.
    """

    def __init__(self, settings: Options, note: Callable[[str], None]) -> None:
        given = settings.packs
        self._packs = PackSettings(
            parity=given.pack_rules == "parity",
            show_hidden=given.show_hidden,
            allow_commands=given.allow_commands,
            answer_form=given.answer_form,
        )
        self._cluster = given.cluster
        agent = None if given.agent is None else AgentCommand.parse(given.agent, Path.cwd())
        needs = AgentNeeds.parse(given.agent_env, given.agent_mount, given.agent_host, Path.cwd())
        self._sandboxes = Sandboxes(given.sandbox, pull=given.pull, note=note, unprotected=given.unprotected)
        self._relay = Relay()
        self._agents = AgentSessions(self._relay, AgentMeans(agent, needs))

    def load(self, root: Path, targets: tuple[Target, ...]) -> LoadedPack:
        """Return the pack at a folder.

        Raises:
            UnreadablePackError: Nothing of it can be used.
        """
        pack = load_pack(root, cluster=self._cluster)
        tools = RowTools(self._packs, pack.files, self._sandboxes)
        return LoadedPack(pack, targets, PackWork(tools, self._agents))

    async def self_check_all(self, root: Path) -> tuple[Sequence[Problem], Mapping[str, int]]:
        """Check every healthy row of a pack; return what is wrong, and how many were skipped by reason."""
        loaded = self.load(root, ())
        found = await asyncio.gather(*(self_check(loaded, row) for row in loaded.outline.rows.values()))
        skipped = Counter(one.skipped for one in found if one.skipped is not None)
        return [problem for one in found for problem in one.findings], skipped

    async def close(self) -> None:
        """Remove what was made for the rows."""
        await self._relay.close()
        await self._sandboxes.close()
