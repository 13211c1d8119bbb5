"""task_folder: a Harbor task folder; what the agent leaves in its box is judged by the tests of the folder."""

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
)
from pytest_helmbench.benchmarks.packs.families.task_folder.check import (
    EVAL_FIELDS,
    INPUT_FIELDS,
    FolderTask,
    check_files,
    folder_task,
    unknown_needs,
)
from pytest_helmbench.benchmarks.packs.format.pack_files import RowPlace
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.engine.work import UnjudgedError
from pytest_helmbench.files.field_values import RowFaults

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools

_NOT_YET = Outcome(Verdict.SKIPPED, "no_sandbox", "task folders do not run yet")


class TaskFolder(AgentFamily[Desk, None]):
    """Rows that are folders in the format of Harbor: their task.toml was checked when it was read."""

    name = "task_folder"
    input_fields = INPUT_FIELDS
    eval_fields = EVAL_FIELDS
    judged_by = ("task", "digest", "has", "words")
    template = PromptTemplate(
        __package__, values={"instruction": field_text("instruction")}, needed=("instruction",)
    )

    def check_needs(self, faults: RowFaults, hidden: JsonObject, _place: RowPlace) -> None:
        if not unknown_needs(hidden):
            check_files(faults, hidden)

    def skip_reason(self, _public: JsonObject, hidden: JsonObject, _place: RowPlace) -> str | None:
        needs = unknown_needs(hidden)
        return f"it needs {', '.join(needs)}, unknown here" if needs else None

    def compiled_check(self, _public: JsonObject, hidden: JsonObject) -> FolderTask:
        return folder_task(hidden)

    @asynccontextmanager
    async def place(self, _row: AgentRow, _tools: RowTools) -> AsyncIterator[Desk]:
        raise UnjudgedError(_NOT_YET)
        yield

    def desk(self, place: Desk) -> Desk:
        return place

    async def hand_over(self, _place: Desk, _said: str) -> None:
        return None

    async def judge(self, _place: Desk, _work: None) -> AgentFinding:
        raise UnjudgedError(_NOT_YET)

    def workers(self, _row: AgentRow) -> Iterator[Worker]:
        yield from ()


FAMILY = TaskFolder()
