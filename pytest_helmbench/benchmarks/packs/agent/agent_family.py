"""Families whose rows an agent works on: a place is laid out, it works there, what it leaves is judged elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Protocol

from pytest_helmbench.benchmarks.packs.families.family import Family
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask, PlannedFile
from pytest_helmbench.core.granted import NOTHING_NAMED, Granted
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Beside, Verdict
from pytest_helmbench.core.problem import HelmbenchError

if TYPE_CHECKING:  # reading rows needs no sandbox
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools
    from pytest_helmbench.sandbox.box import BoxSpec, Engine
    from pytest_helmbench.sandbox.workspace import Workspace

COMMAND_STEP = "command"
"""The step in which the tests run."""


@dataclass(frozen=True, slots=True)
class AgentFinding:
    """The verdict over an agent's work. Holds no hidden value.

    Args:
        verdict: Passed; failed for what the work is wrong in; error for what is the pack's or the sandbox's fault.
        reason: One word for tables, such as `tests_failed`, `path_denied`, `timeout`; None when it passed.
        message: For people; empty when it passed.
        output: End of what the checks wrote, scrubbed; it may show lines of hidden tests.
        step: The step that it ended in; empty when it passed, and where the family has no steps.
        removed: What was removed before it was judged, in sentences for people.
    """

    verdict: Verdict
    reason: str | None = None
    message: str = ""
    output: str = ""
    step: str = ""
    removed: tuple[str, ...] = field(default=(), compare=False)

    @property
    def beside(self) -> Beside | None:
        """The mark of the verdict: tests may import, or start, what they judge."""
        return Beside.IN_PROCESS if self.step in ("", COMMAND_STEP) else None


class FindingError(HelmbenchError):
    """Ends the judging of an agent's work with a finding: no further step can follow."""

    def __init__(self, verdict: Verdict, reason: str, message: str, step: str = "") -> None:
        self.finding = AgentFinding(verdict, reason, message, step=step)
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class AgentRow:
    """A row with all that it takes to lay it out and to judge the work on it.

    Args:
        engine: Runs the commands of the agent and of the tests.
        assets: The public files of the row, which lie in its workspace.
        parity: The published rules judge.
        allowed_commands: Dangerous commands that the user allows.
    """

    task: PackTask
    engine: Engine
    assets: tuple[PlannedFile, ...] = ()
    parity: bool = False
    allowed_commands: Granted[tuple[str, ...]] = NOTHING_NAMED


class AgentSession(Protocol):
    """An agent that is ready to work on a row."""

    async def work(self, spec: BoxSpec, workspace: Workspace) -> str:
        """Let the agent work to its end; return what its model has said last.

        Raises:
            AgentFailedError: It broke down.
            UnjudgedError: The model could not be reached.
        """


class AgentFamily(Family):
    """A family whose rows are a place to work in."""

    runs_code: ClassVar[bool] = True
    is_one_question: ClassVar[bool] = False
    not_rescored: ClassVar[str | None] = (
        "an agent worked on it in a workspace that is not kept: what it left cannot be judged again"
    )

    async def row(self, rule: PackRule, tools: RowTools) -> AgentRow:
        """Return a row, ready to be laid out.

        Raises:
            UnjudgedError: Nothing runs foreign code here.
            MaterializationError: A public file cannot be read.
        """
        assets = tools.files.plan(rule.task.assets)
        return AgentRow(rule.task, await tools.engine(), assets, rule.parity, tools.settings.allow_commands)

    @abstractmethod
    async def finding(self, row: AgentRow, session: AgentSession, tools: RowTools) -> AgentFinding:
        """Lay out a row, let the agent work on it, and judge what it leaves.

        Raises:
            FindingError: No agent or no judge can work on it.
            AgentFailedError: The agent broke down.
            UnjudgedError: The model could not be reached.
            ConfigError: The row cannot be laid out.
            SandboxError: A sandbox could not be made.
        """


def asset_list(public: JsonObject) -> str:
    """Return the public files of a row as its prompt names them, one per line."""
    listed = public.get("assets")
    assets = [asset for asset in listed if isinstance(asset, dict)] if isinstance(listed, list) else []
    return "\n".join(
        f"- {asset.get('mount')}{' (read-only)' if asset.get('read_only') else ''}" for asset in assets
    )
