"""repo_patch: a repository to change; the patch is applied to a fresh copy, where the row's tests run."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.packs.agent.agent_family import (
    AgentFamily,
    AgentFinding,
    AgentRow,
    Desk,
    FindingError,
    Worker,
    asset_list,
    say_only,
)
from pytest_helmbench.benchmarks.packs.families.family import Trial, check_of
from pytest_helmbench.benchmarks.packs.families.repo_patch.applier import PatchApplier
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import (
    EVAL_FIELDS,
    INPUT_FIELDS,
    PatchPhase,
    PatchTests,
    patch_tests,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import (
    Git,
    ending_of,
    open_checkout,
    open_git,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import (
    evaluate_patch,
    repository_environment,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import gold_leaks, patch_in_reply
from pytest_helmbench.benchmarks.packs.format.pack_files import Found, RowPlace, check_found
from pytest_helmbench.benchmarks.packs.format.prompt_template import PromptTemplate, field_text
from pytest_helmbench.benchmarks.packs.format.row_fields import eval_text
from pytest_helmbench.benchmarks.packs.task import PackRule, PackTask
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.files.field_values import RowFaults
from pytest_helmbench.files.strict_json import a_mapping
from pytest_helmbench.sandbox.box import Box, BoxSpec, Mount
from pytest_helmbench.sandbox.workspace import Workspace

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.row_tools import RowTools

_ARTIFACT_ENDING = (
    "Write your changes as a unified diff into the file {} of the working tree: that is your result."
)
_KEPT = "/helmbench-git"
_LARGEST_ARTIFACT = 32 * 1024 * 1024

# Keeps a copy of git's own folder, then takes away from the agent's what lies beyond the base commit: the solution is
# there, as like as not.
_START = """
agent=$GIT_WORK_TREE/.git
cp -R "$agent/." "$GIT_DIR/"
rm -f "$GIT_DIR/index"
git read-tree HEAD
git add -A .
git write-tree
export GIT_DIR="$agent"
cd "$agent"
head=$(git rev-parse HEAD)
rm -rf refs logs worktrees packed-refs ./*_HEAD index objects/info/commit-graph objects/info/commit-graphs
rm -f objects/pack/*.keep objects/pack/*.bitmap objects/pack/multi-pack-index
mkdir -p refs/heads refs/tags
echo "$head" > HEAD
git read-tree HEAD
git repack -a -d -q
rm -f objects/info/alternates
git prune --expire=now
"""
_DIFF = """
git add -A . || {
  chmod -R u+rwX .
  git add -A --ignore-errors . || true
}
tree=$(git write-tree)
git diff --binary --full-index --no-renames --no-ext-diff --no-textconv --no-color --src-prefix=a/ --dst-prefix=b/ \
  "$1" "$tree"
"""


@dataclass(frozen=True, slots=True)
class PatchWorkplace:
    """A repository that an agent works on.

    Args:
        workspace: The working tree. Git's own folder in it ends at the base commit: no later history is there.
    """

    row: AgentRow
    box: Box
    workspace: Workspace
    _git_spec: BoxSpec
    _start: str
    _artifact_path: str | None
    _artifact_at_start: bytes | None

    async def candidate(self, final_text: str) -> str:
        """Return what an agent's run hands in; bytes that are not UTF-8 are surrogate-escaped.

        The patch file that the row asks for, else what was changed, else the patch in the last reply, else nothing.

        Args:
            final_text: The agent's last reply: a model that calls no tools can only write its patch down.

        Raises:
            FindingError: Git cannot say what was changed: there is too much of it, or it takes too long.
            SandboxError: The sandbox failed, or the patch file is too large.
        """
        return self.artifact() or await self.patch() or patch_in_reply(final_text)

    def artifact(self) -> str:
        """Return the text of the patch file that the row asks for.

        Returns:
            Empty where it asks for none, where there is none, and where it is a link, blank, or as it was at the start.
        """
        found = _content(self.workspace, self._artifact_path)
        if found is None or found == self._artifact_at_start or not found.strip():
            return ""
        return found.decode("utf-8", "surrogateescape")

    async def patch(self) -> str:
        """Return what differs from the start, as `git diff` prints it in a copy that the agent never saw.

        Git's own folder in the workspace is not read: whatever was done to it has no effect.
        """
        async with await self.row.engine.open(self._git_spec) as box:
            ended = await Git(box, _KEPT).run(_DIFF, self._start)
        if ended.exit_code != 0 or ended.output_cut:
            why = "it is too large" if ended.output_cut else ending_of(ended)
            message = f"the changes in the workspace cannot be made into a patch: {why}"
            raise FindingError(Verdict.FAILED, "no_diff", message, PatchPhase.CANDIDATE_PATCH)
        return ended.stdout.decode("utf-8", "surrogateescape")


@asynccontextmanager
async def open_workplace(row: AgentRow) -> AsyncIterator[PatchWorkplace]:
    """Lay out a row's repository for an agent, and remove it at the end.

    The setup patch of the pack is a part of the task.

    Raises:
        FindingError: The repository is missing, or is not at the base commit.
        SandboxError: The sandbox failed.
    """
    task, engine = row.task, row.engine
    async with open_checkout(row) as checkout:
        workspace = checkout.workspace
        # The same user's, since git writes to both.
        kept = Workspace(engine.new_workspace(task.environment.image).path, uid=workspace.uid)
        git_spec = replace(checkout.spec, mounts=(Mount(kept.path, _KEPT, read_only=False),))
        try:
            async with open_git(engine, checkout.spec) as git:
                await PatchApplier(workspace, check_of(task, PatchTests), git).begin()
            async with open_git(engine, git_spec, _KEPT) as git:
                ended = await git.run(_START)
            if ended.exit_code != 0:
                message = f"the repository cannot be made ready for an agent: {ending_of(ended)}"
                raise FindingError(Verdict.ERROR, "no_baseline", message, PatchPhase.BASELINE_COMMIT)
            start = ended.stdout.decode().strip()
            box = await engine.open(replace(checkout.spec, env=repository_environment(task)))
            path = artifact_path_of(task)
            before = await asyncio.to_thread(_content, workspace, path)
            yield PatchWorkplace(row, box, workspace, git_spec, start, path, before)
        finally:
            await asyncio.to_thread(kept.close)


def artifact_path_of(task: PackTask) -> str | None:
    """Return where a row wants the patch to be written; None where it does not say."""
    path = task.input_value("artifact_path")
    return path if isinstance(path, str) else None


def _content(workspace: Workspace, path: str | None) -> bytes | None:
    return None if path is None else workspace.get(path, limit_bytes=_LARGEST_ARTIFACT)


class RepoPatch(AgentFamily[PatchWorkplace, str]):
    """Rows whose answer is a patch of a repository, which its tests judge."""

    name = "repo_patch"
    rules_version = 5
    input_fields = INPUT_FIELDS
    eval_fields = EVAL_FIELDS
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
            yield Worker("eval.gold_patch", partial(say_only, words=gold), must_pass=True)
        yield Worker("an empty patch", say_only, must_pass=False)

    async def trials(self, rule: PackRule, tools: RowTools) -> AsyncIterator[Trial]:
        async for trial in super().trials(rule, tools):
            yield trial
        assets = tools.files.plan(rule.task.assets)
        for name in gold_leaks(rule.task, eval_text(rule.task, "gold_patch") or "", assets):
            label = f"an agent that reads {name}, where eval.gold_patch stands,"
            yield Trial(label, must_pass=False, verdict=Verdict.PASSED)


FAMILY = RepoPatch()
