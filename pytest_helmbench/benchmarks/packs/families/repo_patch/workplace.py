"""The repository as an agent gets it, and the patch that the agent leaves in it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.families.repo_patch.applying import Applying
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import (
    PatchFaultError,
    PatchPhase,
    patch_tests_of,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import (
    Git,
    opened_checkout,
    opened_git,
    said,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import repository_environment
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import (
    MalformedPatchError,
    has_signs_of_a_patch,
    read_patch,
)
from pytest_helmbench.benchmarks.packs.task import PackTask, PlannedFile
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.sandbox.box import BoxSpec, Engine, Limits, Mount
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


def candidate_of(patch: str, final_text: str, artifact: str | None = None) -> str:
    """Return what an agent's run hands in.

    The patch file that the row asks for, else what was changed, else the patch in the last reply, else nothing.

    Args:
        patch: Of the workplace.
        final_text: The agent's last reply: a model that calls no tools can only write its patch down. What seems to
            hold a patch and cannot be read is handed in as it is.
        artifact: Of the workplace.
    """
    if artifact is not None:
        return artifact
    if patch:
        return patch
    try:
        return read_patch(final_text)
    except MalformedPatchError:
        # The judge of the patch says what is wrong with it.
        return final_text if has_signs_of_a_patch(final_text) else ""


@dataclass(frozen=True, slots=True)
class PatchWorkplace:
    """A repository that an agent works on.

    Args:
        spec: The agent's boxes are opened with this.
        workspace: The working tree. Git's own folder in it ends at the base commit: no later history is there.
    """

    spec: BoxSpec
    workspace: Workspace
    _engine: Engine
    _git_spec: BoxSpec
    _start: str
    _artifact_path: str | None
    _artifact_at_start: bytes | None

    def artifact(self) -> str | None:
        """Return the text of the patch file that the row asks for.

        Returns:
            None where it asks for none, where there is none, and where it is a link, blank, or as it was at the start.

        Raises:
            SandboxError: It is too large.
        """
        found = _content(self.workspace, self._artifact_path)
        if found is None or found == self._artifact_at_start or not found.strip():
            return None
        return found.decode("utf-8", "surrogateescape")

    async def patch(self) -> str:
        """Return what differs from the start, as `git diff` tells it from a copy that the agent never saw.

        Git's own folder in the workspace is not read: whatever was done to it has no effect.

        Returns:
            Empty when nothing differs; bytes that are not UTF-8 are surrogate-escaped.

        Raises:
            PatchFaultError: Git cannot tell, since there is too much of it or it takes too long.
            SandboxError: The sandbox failed.
        """
        async with await self._engine.open(self._git_spec) as box:
            ended = await Git(box, _KEPT).run(_DIFF, self._start)
        if ended.exit_code != 0 or ended.output_cut:
            why = "it is too large" if ended.output_cut else said(ended)
            message = f"the changes in the workspace cannot be made into a patch: {why}"
            raise PatchFaultError(Verdict.FAILED, PatchPhase.CANDIDATE_PATCH, "no_diff", message)
        return ended.stdout.decode("utf-8", "surrogateescape")


@asynccontextmanager
async def opened_workplace(
    task: PackTask, engine: Engine, limits: Limits, assets: Sequence[PlannedFile] = ()
) -> AsyncIterator[PatchWorkplace]:
    """Lay out a task's repository for an agent, and remove it at the end.

    What the pack applies before the candidate's patch is a part of the task.

    Args:
        task: Of repo_patch.
        engine: What runs git and the agent's commands.
        limits: Of the agent's commands.
        assets: Public files of the row, laid over the working tree.

    Raises:
        PatchFaultError: There is no repository, or it is not at the base commit.
        SandboxError: The sandbox failed.
    """
    async with opened_checkout(task, engine, assets) as checkout:
        workspace = checkout.workspace
        # The same user's, since git writes to both.
        kept = Workspace(engine.new_workspace(task.environment.image).path, uid=workspace.uid)
        git_spec = replace(checkout.spec, mounts=(Mount(kept.path, _KEPT, read_only=False),))
        try:
            async with opened_git(engine, checkout.spec, workspace) as git:
                await Applying(workspace, patch_tests_of(task), git).begin()
            async with opened_git(engine, git_spec, workspace, _KEPT) as git:
                ended = await git.run(_START)
            if ended.exit_code != 0:
                message = f"the repository cannot be made ready for an agent: {said(ended)}"
                raise PatchFaultError(Verdict.ERROR, PatchPhase.BASELINE_COMMIT, "no_baseline", message)
            start = ended.stdout.decode().strip()
            spec = replace(checkout.spec, limits=limits, env=repository_environment(task))
            path = artifact_path_of(task)
            before = await asyncio.to_thread(_content, workspace, path)
            yield PatchWorkplace(spec, workspace, engine, git_spec, start, path, before)
        finally:
            await asyncio.to_thread(kept.close)


def artifact_path_of(task: PackTask) -> str | None:
    """Return where a row wants the patch to be written; None where it does not say."""
    path = task.input_value("artifact_path")
    return path if isinstance(path, str) else None


def _content(workspace: Workspace, path: str | None) -> bytes | None:
    return None if path is None else workspace.get(path, limit_bytes=_LARGEST_ARTIFACT)
