"""The repository as an agent gets it, and the patch that the agent leaves in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentRow, FindingError
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.repo_patch.applier import PatchApplier
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchPhase, PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import (
    Git,
    ending_of,
    open_checkout,
    open_git,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import repository_environment
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import patch_in_reply
from pytest_helmbench.benchmarks.packs.task import PackTask
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.sandbox.box import Box, BoxSpec, Mount
from pytest_helmbench.sandbox.workspace import Workspace

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
        row: The row.
        box: The agent's commands run in it.
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
