"""What an attempt finds that counts no more is no verdict, whoever brings it."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, cast

import pytest
from packs import write_pack
from relayed import converse
from scripted import task_row
from wired import Onlooker, wired

from pytest_helmbench.benchmarks.packs.agent.agent_there import AgentThere, Worked
from pytest_helmbench.benchmarks.packs.agent.agent_work import AgentMeans, AgentRow
from pytest_helmbench.benchmarks.packs.agent.agents_on_hosts import AgentsOnHosts
from pytest_helmbench.benchmarks.packs.families.terminal_task.family import FAMILY
from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.packs.judge_host import SandboxWishes
from pytest_helmbench.benchmarks.packs.row_tools import PackSettings, RowTools
from pytest_helmbench.benchmarks.packs.sandboxes import Sandboxes
from pytest_helmbench.benchmarks.packs.task import PackRule
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.core.users_word import NOT_ALLOWED, UsersWord
from pytest_helmbench.engine.evaluations import EvaluatedHere
from pytest_helmbench.engine.host_lines import LineAddress, LineService
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.gateway.call import Watch
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.relay.attempts import Begun
from pytest_helmbench.gateway.relay.far_conversation import message_of
from pytest_helmbench.judging.evaluator import Evaluator

T = TypeVar("T")

_PASSED = Outcome(Verdict.PASSED)


class _TwoAtOnce(EvaluatedHere):
    """An engine that starts a task twice without telling, and then gives what the first start found."""

    def __init__(self, which: int) -> None:
        self.which = which

    async def on_host_asking(
        self, service: LineService, evaluator: Callable[[LineAddress], Evaluator[T]], watch: Watch
    ) -> T:
        assert isinstance(evaluator(LineAddress("session", "key", 60.0)), AgentThere)
        begun: list[Begun] = [
            pickle.loads(await service.answer(message_of({"wanted": "begin"}))) for _ in "12"
        ]
        return cast("T", Worked(begun[self.which].token, _PASSED))


def _worked(tmp_path: Path, which: int) -> Outcome:
    write_pack(tmp_path / "benchmark", [task_row("t")])
    pack = load_pack(tmp_path / "benchmark")
    task = pack.task(pack.rows[0])
    wishes = SandboxWishes(UsersWord("bwrap"), NOT_ALLOWED)
    hosts = AgentsOnHosts(wishes, NOT_ALLOWED, lambda _note: None)
    sandboxes = Sandboxes(wishes.mode, pull=wishes.pull, note=lambda _note: None)
    tools = RowTools(PackSettings(), pack.files, sandboxes)

    async def run() -> Outcome:
        row = AgentRow(FAMILY, PackRule(task), ())
        async with (
            wired((ModelLimits("test/good", 8),)) as coordinator,
            converse(coordinator.gateway, "http://127.0.0.1:9/v1", journal=True) as conversation,
        ):
            engine = _TwoAtOnce(which)
            return await hosts.work_on(row, AgentMeans(), tools, conversation, engine, Onlooker())

    return asyncio.run(run())


def test_the_verdict_of_the_attempt_that_counts_is_taken(tmp_path: Path) -> None:
    assert _worked(tmp_path, 1) == _PASSED


def test_the_verdict_of_an_older_attempt_is_not(tmp_path: Path) -> None:
    with pytest.raises(UnjudgedError) as stopped:
        _worked(tmp_path, 0)
    assert stopped.value.outcome.reason == "agent_failed"
