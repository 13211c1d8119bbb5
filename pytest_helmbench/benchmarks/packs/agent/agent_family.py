"""Families whose rows an agent works on: a place is laid out, it works there, what it leaves is judged elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Protocol

from pytest_helmbench.benchmarks.packs.families.family import Family
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackRule
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply, Verdict

if TYPE_CHECKING:  # reading rows needs no sandbox
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools
    from pytest_helmbench.sandbox.box import BoxSpec, Engine, Limits
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
        taken: What was taken away before it was judged, in sentences for people.
    """

    verdict: Verdict
    reason: str | None = None
    message: str = ""
    output: str = ""
    step: str = ""
    taken: tuple[str, ...] = field(default=(), compare=False)

    @property
    def in_process(self) -> bool:
        """Whether what is judged could run beside what judges it: tests may import, or start, what they judge."""
        return self.step in ("", COMMAND_STEP)


class AgentSession(Protocol):
    """An agent that is ready to work on a row."""

    @property
    def command_limits(self) -> Limits:
        """The limits of one command of the agent."""

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

    @abstractmethod
    async def finding(
        self, rule: PackRule, engine: Engine, session: AgentSession, tools: RowTools
    ) -> AgentFinding:
        """Lay out a row, let the agent work on it, and judge what it leaves.

        Raises:
            AgentFailedError: The agent broke down.
            UnjudgedError: The model could not be reached.
            ConfigError: The row cannot be laid out.
            SandboxError: A sandbox could not be made.
        """

    async def evaluate(self, rule: PackRule, _reply: Reply, _tools: RowTools) -> Evaluation:
        """Refuse: a reply alone is no work."""
        raise ConfigError(f"{rule.task.id}: an agent works on rows of {self.name}: no single reply is judged")


def asset_list(public: JsonObject) -> str:
    """Return the public files of a row as its prompt names them, one per line."""
    listed = public.get("assets")
    assets = [asset for asset in listed if isinstance(asset, dict)] if isinstance(listed, list) else []
    return "\n".join(
        f"- {asset.get('mount')}{' (read-only)' if asset.get('read_only') else ''}" for asset in assets
    )
