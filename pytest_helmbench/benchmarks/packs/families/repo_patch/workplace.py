"""The repository as an agent gets it, and the patch that the agent leaves in it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.families.repo_patch.applying import Applying
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import (
    CandidateFaultError,
    PackFaultError,
    PatchPhase,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import (
    Checkout,
    Git,
    opened_checkout,
    patch_tests_of,
    said,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import (
    MalformedPatchError,
    has_signs_of_a_patch,
    read_patch,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.testing import repository_environment
from pytest_helmbench.benchmarks.packs.task import PackTask, PlannedFile
from pytest_helmbench.core.light_dataclass import dataclass
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
        # Whoever judges it says what is wrong with it.
        return final_text if has_signs_of_a_patch(final_text) else ""


@dataclass(frozen=True, slots=True)
class _Artifact:
    """Where an agent is to write its patch, and what stands there before it starts.

    Args:
        path: In the working tree.
        was_there: Something stands there: a file, a folder or a link.
        at_start: Of a file; None for no file.
    """

    path: str
    was_there: bool
    at_start: bytes | None


@dataclass(frozen=True, slots=True)
class PatchWorkplace:
    """A repository that an agent works on.

    Args:
        spec: The agent's boxes are opened with this.
        workspace: The working tree. Git's own folder in it ends at the base commit: no later history is there.
    """

    spec: BoxSpec
    workspace: Workspace
    _checkout: Checkout
    _engine: Engine
    _kept: Workspace
    _start: str
    _artifact: _Artifact | None

    @property
    def has_artifact(self) -> bool:
        """Whether the agent finds something where it is to write its patch file."""
        return self._artifact is not None and self._artifact.was_there

    def artifact(self) -> str | None:
        """Return the text of the patch file that the row asks for.

        Returns:
            None where it asks for none, where there is none, and where it is a link, blank, or as it was at the start.

        Raises:
            SandboxError: It is too large.
        """
        artifact = self._artifact
        found = None if artifact is None else _content(self.workspace, artifact.path)
        if artifact is None or found is None or found == artifact.at_start or not found.strip():
            return None
        return found.decode("utf-8", "surrogateescape")

    async def patch(self) -> str:
        """Return what differs from the start, as `git diff` tells it from a copy that the agent never saw.

        Git's own folder in the workspace is not read: whatever was done to it has no effect.

        Returns:
            Empty when nothing differs; bytes that are not UTF-8 are surrogate-escaped.

        Raises:
            CandidateFaultError: Git cannot tell, since there is too much of it or it takes too long.
            SandboxError: The sandbox failed.
        """
        async with await self._engine.open(_with_kept(self._checkout.spec, self._kept)) as box:
            ended = await Git(box, _KEPT).run(_DIFF, self._start)
        if ended.exit_code != 0 or ended.output_cut:
            why = "it is too large" if ended.output_cut else said(ended)
            message = f"the changes in the workspace cannot be made into a patch: {why}"
            raise CandidateFaultError(PatchPhase.CANDIDATE_PATCH, "no_diff", message)
        return ended.stdout.decode("utf-8", "surrogateescape")


@asynccontextmanager
async def opened_workplace(
    task: PackTask, engine: Engine, limits: Limits, assets: Sequence[PlannedFile] = ()
) -> AsyncIterator[PatchWorkplace]:
    """Lay out a task's repository for an agent, and remove it at the end.

    Args:
        task: Of repo_patch.
        engine: What runs git and the agent's commands.
        limits: Of the agent's commands.
        assets: Public files of the row, laid over the working tree.

    Raises:
        PackFaultError: There is no repository, or it is not at the base commit.
        SandboxError: The sandbox failed.
    """
    async with opened_checkout(task, engine, assets) as checkout:
        # The same user's, since git writes to both.
        kept = Workspace(engine.new_workspace(task.environment.image).path, uid=checkout.workspace.uid)
        try:
            await _set_up(task, checkout, engine)
            start = await _start(checkout, engine, kept)
            spec = replace(checkout.spec, limits=limits, env=repository_environment(task))
            artifact = await asyncio.to_thread(_artifact_of, task, checkout.workspace)
            yield PatchWorkplace(spec, checkout.workspace, checkout, engine, kept, start, artifact)
        finally:
            await asyncio.to_thread(kept.close)


def artifact_path_of(task: PackTask) -> str | None:
    """Return where a row wants the patch to be written; None where it does not say."""
    path = task.input_value("artifact_path")
    return path if isinstance(path, str) else None


def _artifact_of(task: PackTask, workspace: Workspace) -> _Artifact | None:
    path = artifact_path_of(task)
    if path is None:
        return None
    return _Artifact(path, os.path.lexists(workspace.path / path), _content(workspace, path))


def _content(workspace: Workspace, path: str) -> bytes | None:
    return workspace.get(path, limit_bytes=_LARGEST_ARTIFACT)


async def _set_up(task: PackTask, checkout: Checkout, engine: Engine) -> None:
    """Apply what the pack applies before the candidate's patch: it is a part of the task."""
    async with await engine.open(checkout.spec) as box:
        with checkout.quiet():
            await Applying(checkout, patch_tests_of(task), Git(box)).begin()


async def _start(checkout: Checkout, engine: Engine, kept: Workspace) -> str:
    """Make both copies of git's own folder; return the tree that the agent starts from."""
    with checkout.quiet():
        async with await engine.open(_with_kept(checkout.spec, kept)) as box:
            ended = await Git(box, _KEPT).run(_START)
    if ended.exit_code != 0:
        message = f"the repository cannot be made ready for an agent: {said(ended)}"
        raise PackFaultError(PatchPhase.BASELINE_COMMIT, "no_baseline", message)
    return ended.stdout.decode().strip()


def _with_kept(spec: BoxSpec, kept: Workspace) -> BoxSpec:
    return replace(spec, mounts=(*spec.mounts, Mount(kept.path, _KEPT, read_only=False)))
