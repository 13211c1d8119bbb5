"""Families whose rows an agent works on: a place is laid out, it works there, what it leaves is judged elsewhere."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field
from typing import TYPE_CHECKING, ClassVar, Generic, TypeVar

from pytest_helmbench.benchmarks.packs.families.family import Family, Trial
from pytest_helmbench.benchmarks.packs.families.text.text_family import leaves
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask, PlannedFile
from pytest_helmbench.core.granted import NOTHING_NAMED, Granted
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Beside, Event, Verdict
from pytest_helmbench.core.problem import HelmbenchError

if TYPE_CHECKING:  # reading rows needs no sandbox
    from collections.abc import AsyncIterator, Iterator
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from pytest_helmbench.benchmarks.packs.row_tools import RowTools
    from pytest_helmbench.sandbox.box import Engine, Shell
    from pytest_helmbench.sandbox.workspace import Workspace

Place = TypeVar("Place")
"""The type of the place that a family lays out."""

Work = TypeVar("Work")
"""The type of what an agent hands over."""

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
        mark: What the family says of the verdict; None where its step says it.
        credits: By criterion, in [0, 1]; empty where the verdict says it all.
    """

    verdict: Verdict
    reason: str | None = None
    message: str = ""
    output: str = ""
    step: str = ""
    removed: tuple[str, ...] = field(default=(), compare=False)
    mark: Beside | None = None
    credits: Mapping[str, float] = field(default_factory=dict)

    @property
    def beside(self) -> Beside | None:
        """The mark of the verdict: tests may import, or start, what they judge."""
        return self.mark or (Beside.IN_PROCESS if self.step in ("", COMMAND_STEP) else None)


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
        events: What is kept on record of its places, filled while it is worked on.
    """

    task: PackTask
    engine: Engine
    assets: tuple[PlannedFile, ...] = ()
    parity: bool = False
    allowed_commands: Granted[tuple[str, ...]] = NOTHING_NAMED
    events: list[Event] = field(default_factory=list, compare=False)


@dataclass(frozen=True, slots=True)
class Desk:
    """The part of a place that an agent reaches.

    Args:
        workspace: The folder of this machine that it works in; None where its place is a box that lives on.
        put: Copies folders of this machine into a box that lives on, each to a path of it; None for a workspace.
    """

    shell: Shell
    workspace: Workspace | None = None
    put: Callable[[Sequence[tuple[Path, str]]], Awaitable[None]] | None = None

    @property
    def lives_on(self) -> bool:
        """Whether processes and files outside of a workspace stay from one command to the next."""
        return self.workspace is None


AgentSession = Callable[[Desk], Awaitable[str]]
"""Works on a row to the end, and returns what was said last: an agent, the pack's own solution, or a trial.

It raises `AgentFailedError` where the agent breaks down, and `UnjudgedError` where its model is not reached.
"""


async def say_only(_desk: Desk, words: str = "") -> str:
    """Touch nothing, and say some last words."""
    return words


@dataclass(frozen=True, slots=True)
class Worker:
    """A worker whose verdict is known before it works.

    Args:
        label: What it is, without any hidden value.
    """

    label: str
    session: AgentSession
    must_pass: bool | None


class AgentFamily(Family, Generic[Place, Work]):
    """A family whose rows are a place to work in: it is laid out, worked in, handed over, and judged.

    Attributes:
        in_living_box: The place is a box that lives on, which agents of the user's reach by a shell alone.
    """

    runs_code: ClassVar[bool] = True
    in_living_box: ClassVar[bool] = False
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
    def place(self, row: AgentRow, tools: RowTools) -> AbstractAsyncContextManager[Place]:
        """Lay out a row for an agent, and remove it at the end.

        Raises:
            FindingError: No agent can work on it.
            ConfigError: The row cannot be laid out.
            SandboxError: A sandbox could not be made.
        """

    @abstractmethod
    def desk(self, place: Place) -> Desk:
        """Return the part of a place that the agent reaches."""

    @abstractmethod
    async def hand_over(self, place: Place, said: str) -> Work:
        """Take what the agent leaves out of its place; `said` are its last words.

        Raises:
            FindingError: It cannot be taken.
        """

    @abstractmethod
    async def judge(self, place: Place, work: Work) -> AgentFinding:
        """Judge what was handed over, where the agent never was."""

    def agent_wall_s(self, _task: PackTask) -> float | None:
        """Return the seconds that a row gives its agent; None where it says nothing."""
        return None

    @abstractmethod
    def workers(self, row: AgentRow, tools: RowTools) -> Iterator[Worker]:
        """Yield those by which a row proves itself."""

    def hidden_texts(self, task: PackTask, _tools: RowTools) -> Iterator[tuple[str, str]]:
        """Yield what no agent's box may hold, by name: long texts and files of `eval`."""
        for name, value in task.evaluation().items():
            for text in leaves(value):
                if "\n" in text:
                    yield f"eval.{name}", text
        for item in task.eval_files:
            if item.source.is_file():
                yield item.path, item.source.read_text("utf-8", "replace")

    def result_paths(self, _task: PackTask) -> tuple[str, ...]:
        """Return the files in which a row looks for results, by name."""
        return ()

    def files_of(self, _work: Work) -> Mapping[str, str]:
        """Return the files that were handed over, each with a word that changes with its content."""
        return {}

    async def finding(self, row: AgentRow, session: AgentSession, tools: RowTools) -> AgentFinding:
        """Lay out a row, let an agent work on it, and judge what it leaves.

        Raises:
            AgentFailedError: The agent broke down.
            UnjudgedError: The model could not be reached.
            ConfigError: The row cannot be laid out.
            SandboxError: A sandbox could not be made.
        """
        try:
            async with self.place(row, tools) as place:
                said = await session(self.desk(place))
                return await self.judge(place, await self.hand_over(place, said))
        except FindingError as error:
            return error.finding

    async def trials(self, rule: PackRule, tools: RowTools) -> AsyncIterator[Trial]:
        row = await self.row(rule, tools)
        for worker in self.workers(row, tools):
            found = await self.finding(row, worker.session, tools)
            why, _, hint = found.message.partition("\n  hint: ")
            in_own_box = found.beside is Beside.OWN_BOX
            yield Trial(worker.label, worker.must_pass, found.verdict, why, hint, in_own_box)
            if found.verdict is Verdict.ERROR:
                return  # the others would say the same


def asset_list(public: JsonObject) -> str:
    """Return the public files of a row as its prompt names them, one per line."""
    listed = public.get("assets")
    assets = [asset for asset in listed if isinstance(asset, dict)] if isinstance(listed, list) else []
    return "\n".join(
        f"- {asset.get('mount')}{' (read-only)' if asset.get('read_only') else ''}" for asset in assets
    )
