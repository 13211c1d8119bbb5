"""terminal_task: a workspace to bring into a state; the row's checker looks at it in a fresh sandbox."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.packs.agent.agent_family import (
    AgentFamily,
    AgentFinding,
    AgentRow,
    Desk,
    Worker,
    asset_list,
    say_only,
)
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.terminal_task.check import (
    EVAL_FIELDS,
    INPUT_FIELDS,
    TerminalTests,
    terminal_tests,
)
from pytest_helmbench.benchmarks.packs.families.terminal_task.evaluation import evaluate_terminal
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import (
    CheckerFiles,
    open_place,
    plan_checker_files,
)
from pytest_helmbench.benchmarks.packs.format.pack_files import RowPlace, check_found
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.task import PackTask
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import RowFaults
from pytest_helmbench.files.strict_json import a_mapping, a_text

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools
    from pytest_helmbench.sandbox.box import Box
    from pytest_helmbench.sandbox.workspace import Workspace


@dataclass(frozen=True, slots=True)
class TerminalPlace:
    """A workspace that an agent works in, and the files of its checker."""

    row: AgentRow
    evaluator: CheckerFiles
    box: Box
    workspace: Workspace


class TerminalTask(AgentFamily["TerminalPlace", "Workspace"]):
    """Rows whose answer is the state of a box that a program or agent left, which tests judge."""

    name = "terminal_task"
    rules_version = 4
    input_fields = INPUT_FIELDS
    eval_fields = EVAL_FIELDS
    template = PromptTemplate(
        __package__,
        values={
            "instructions": field_text("instructions"),
            "context": field_text("context"),
            "assets": asset_list,
        },
        needed=("instructions",),
    )

    def check_needs(self, faults: RowFaults, hidden: JsonObject, place: RowPlace) -> None:
        if place.environment.get("materialize_workdir_from_image") is True and not place.has_image:
            where = "environment.materialize_workdir_from_image"
            faults.error(where, "there is no image to copy from", "name one in environment.image")
        checker = a_mapping(hidden.get("checker"))
        path = a_text(checker.get("path"))
        if "command" not in checker and path is not None:
            found = place.files.evaluator(path)
            check_found(faults, "eval.checker.path", place.files, found)
            if checker.get("source") == "script" and not found.fault and found.path.is_dir():
                hint = "name the file in it that is to be run"
                faults.error("eval.checker.path", "this is a folder, and a script is a file", hint)

    def compiled_check(self, _public: JsonObject, hidden: JsonObject) -> TerminalTests:
        return terminal_tests(hidden)

    def denied(self, task: PackTask, allowed: Granted[tuple[str, ...]]) -> str | None:
        needed = check_of(task, TerminalTests).needed_commands
        missing = [name for name in needed if name not in allowed.value]
        if not missing:
            return None
        options = " ".join(f"--helmbench-allow-command={name}" for name in missing)
        return f"it needs {', '.join(missing)}, which {options} would allow"

    @asynccontextmanager
    async def place(self, row: AgentRow, tools: RowTools) -> AsyncIterator[TerminalPlace]:
        evaluator = plan_checker_files(tools.files, row.task)
        async with open_place(row) as (spec, workspace):
            yield TerminalPlace(row, evaluator, await row.engine.open(spec), workspace)

    def desk(self, place: TerminalPlace) -> Desk:
        return Desk(place.box, place.workspace)

    async def hand_over(self, place: TerminalPlace, _said: str) -> Workspace:
        return place.workspace

    async def judge(self, place: TerminalPlace, work: Workspace) -> AgentFinding:
        return await evaluate_terminal(place.row, work, place.evaluator)

    def workers(self, _row: AgentRow, _tools: RowTools) -> Iterator[Worker]:
        """Yield one that leaves the workspace as it is at the start: no row says what passes."""
        yield Worker("the untouched workspace", say_only, None)


FAMILY = TerminalTask()
