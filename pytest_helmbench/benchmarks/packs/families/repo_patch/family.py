"""repo_patch: a repository to change; the patch is applied to a fresh copy, where the row's tests run."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.packs.agent.agent_family import (
    AgentFamily,
    AgentFinding,
    AgentRow,
    Desk,
    SayOnly,
    Worker,
    asset_list,
)
from pytest_helmbench.benchmarks.packs.families.family import Trial
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import (
    EVAL_FIELDS,
    INPUT_FIELDS,
    PatchTests,
    patch_tests,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import gold_leaks
from pytest_helmbench.benchmarks.packs.families.repo_patch.workplace import (
    PatchWorkplace,
    artifact_path_of,
    open_workplace,
)
from pytest_helmbench.benchmarks.packs.format.pack_files import Found, RowPlace, check_found
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.format.row_fields import eval_text
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.files.field_values import RowFaults
from pytest_helmbench.files.strict_json import a_mapping

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools

_ARTIFACT_ENDING = (
    "Write your changes as a unified diff into the file {} of the working tree: that is your result."
)


class RepoPatch(AgentFamily[PatchWorkplace, str]):
    """Rows whose answer is a patch of a repository, which its tests judge."""

    name = "repo_patch"
    rules_version = 5
    input_fields = INPUT_FIELDS
    eval_fields = EVAL_FIELDS
    judged_by = ("tests", "candidate_policy")
    template = PromptTemplate(
        __package__,
        values={
            **{field: field_text(field) for field in ("repo", "base_commit", "instructions", "hints")},
            "assets": asset_list,
        },
        needed=("repo", "base_commit", "instructions"),
    )

    def prompt(self, task: PackTask, form: str | None = None) -> str:
        path = artifact_path_of(task)
        if path is None:
            return super().prompt(task, form)
        return self.template.render(task.public(), _ARTIFACT_ENDING.format(path))

    def check_across(self, faults: RowFaults, _public: JsonObject, hidden: JsonObject) -> None:
        inner, outer = a_mapping(hidden.get("tests")).get("candidate_policy"), hidden.get("candidate_policy")
        if inner is not None and outer is not None and inner != outer:
            where = "eval.candidate_policy"
            faults.error(where, "eval.tests.candidate_policy says something else", "keep one of them")

    def check_needs(self, faults: RowFaults, _hidden: JsonObject, place: RowPlace) -> None:
        repository = self.repository(place)
        if repository is not None:
            check_found(faults, "environment.repository", place.files, repository)
        elif not place.has_image:
            hint = "name an image, or give environment.repository the path of a git bundle"
            faults.error("environment.image", "there is neither an image nor a repository", hint)

    def repository(self, place: RowPlace) -> Found | None:
        """Return what a row's environment or assets name as its repository."""
        path = place.environment.get("repository")
        if isinstance(path, str):
            return place.files.repository(path)
        found = (place.files.public(path) for path in place.assets if not place.files.repository(path).fault)
        return next(found, None)

    def compiled_check(self, _public: JsonObject, hidden: JsonObject) -> PatchTests:
        return patch_tests(hidden)

    def place(self, row: AgentRow, _tools: RowTools) -> AbstractAsyncContextManager[PatchWorkplace]:
        return open_workplace(row)

    def desk(self, place: PatchWorkplace) -> Desk:
        return Desk(place.box, place.workspace)

    async def hand_over(self, place: PatchWorkplace, said: str) -> str:
        return await place.candidate(said)

    async def judge(self, place: PatchWorkplace, work: str) -> AgentFinding:
        return await evaluate_patch(place.row, work)

    def result_paths(self, task: PackTask) -> tuple[str, ...]:
        return tuple(filter(None, [artifact_path_of(task)]))

    def files_of(self, work: str) -> Mapping[str, str]:
        return dict.fromkeys(re.findall(r"^\+\+\+ b/([^\t\n]+)", work, re.MULTILINE), "")

    def workers(self, row: AgentRow, _tools: RowTools) -> Iterator[Worker]:
        gold = eval_text(row.task, "gold_patch")
        if gold is not None:
            yield Worker("eval.gold_patch", SayOnly(gold), must_pass=True)
        yield Worker("an empty patch", SayOnly(), must_pass=False)

    async def trials(self, rule: PackRule, tools: RowTools) -> AsyncIterator[Trial]:
        async for trial in super().trials(rule, tools):
            yield trial
        assets = tools.files.plan(rule.task.assets)
        for name in gold_leaks(rule.task, eval_text(rule.task, "gold_patch") or "", assets):
            label = f"an agent that reads {name}, where eval.gold_patch stands,"
            yield Trial(label, must_pass=False, verdict=Verdict.PASSED)


FAMILY = RepoPatch()
