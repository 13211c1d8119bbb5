"""The verdict over a candidate's patch, step by step; every step runs in a fresh sandbox."""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow, FindingError
from pytest_helmbench.benchmarks.packs.evidence.verdicts import CommandJudge, CommandRun, runs_tests
from pytest_helmbench.benchmarks.packs.evidence.witnesses import (
    CHECK_LIMITS,
    WitnessSettings,
    open_witness,
)
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.repo_patch.applier import Applied, PatchApplier
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchPhase, PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import (
    Checkout,
    open_checkout,
    open_git,
)
from pytest_helmbench.benchmarks.packs.families.repo_patch.patches import MalformedPatchError, read_patch
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import (
    PatchPolicy,
    denial,
    denials,
    special_denials,
)
from pytest_helmbench.benchmarks.packs.task import PackTask
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.workspace import EntryKind, Workspace

_MIB = 1024 * 1024
TEST_LIMITS = replace(CHECK_LIMITS, wall_s=1800.0, memory_bytes=4096 * _MIB, pids=512, disk_bytes=8192 * _MIB)
"""Bounds of the command that tests a patch; the row's own timeout takes the place of `wall_s`."""

_SAFE = (
    # Tests may ask git about the repository, whichever user owns its files.
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
)
_LARGEST_PATCH = 32 * _MIB
_MOST_SHOWN = 5
# In the words of Python from 3.7 on.
_LACKS = re.compile(
    r"No module named '([\w.]+)'|cannot import name '\w+' from (?:partially initialized module )?'([\w.]+)'"
)

FileMark = tuple[int, int, int] | None
"""It changes whenever a file is written to or replaced, and no program can set it back; None where there is none."""


def repository_environment(task: PackTask) -> tuple[tuple[str, str], ...]:
    """Return what commands of a task's repository find in their environment, beside the image's own."""
    return (*_SAFE, *((("HOME", "/tmp"),) if task.environment.image is None else ()))


async def evaluate_patch(row: AgentRow, candidate: str) -> AgentFinding:
    """Apply a candidate's patch to a fresh copy of the row's repository and run the row's tests.

    Args:
        candidate: The patch, or a reply with a patch in it; bytes that are not UTF-8 are surrogate-escaped.

    Raises:
        ConfigError: The row is of another family.
        SandboxError: The sandbox failed.

    Source:
        Benchmark packs, section 4, repo_patch.
    """
    testing = RowTests(row, check_of(row.task, PatchTests))
    try:
        if not candidate.strip():
            raise _failed(PatchPhase.EMPTY_PATCH, "empty_patch", "the patch is empty")
        async with open_checkout(row) as checkout:
            await testing.apply(checkout, _read(candidate))
            return await testing.finding(checkout)
    except FindingError as error:
        return error.finding


def _failed(phase: PatchPhase, reason: str, message: str) -> FindingError:
    return FindingError(Verdict.FAILED, reason, message, phase)


def _read(candidate: str) -> str:
    if len(candidate) > _LARGEST_PATCH:
        message = f"the patch has more than {_LARGEST_PATCH:,} characters"
        raise _failed(PatchPhase.CANDIDATE_PATCH, "too_large", message)
    try:
        return read_patch(candidate)
    except MalformedPatchError as error:
        raise _failed(PatchPhase.CANDIDATE_PATCH, "no_patch", str(error)) from error


@dataclass(frozen=True, slots=True)
class RowTests:
    """The tests of a row."""

    row: AgentRow
    tests: PatchTests

    async def apply(self, checkout: Checkout, patch: str | None) -> None:
        """Apply the pack's own patches and the candidate's, if there is one; what is wrong is raised."""
        async with open_git(self.row.engine, checkout.spec) as git:
            applier = PatchApplier(checkout.workspace, self.tests, git)
            applied = await applier.apply(patch, self._check, parity=self.row.parity)
            if patch is not None:
                self._compare(applied)
            await applier.add_tests(applied.baseline)
        applier.done()

    def _check(self, paths: frozenset[str], phase: PatchPhase = PatchPhase.PATH_POLICY) -> None:
        why = denials(paths, self.tests.policy, parity=self.row.parity)
        if why:
            raise _failed(phase, "path_denied", why)

    def _compare(self, applied: Applied) -> None:
        """Hold what git has really changed to the announcement, and to the policy once more."""
        phase, changed, announced = PatchPhase.CHANGED_PATHS, applied.changed, applied.announced
        if not changed:
            raise _failed(phase, "no_changes", "the patch changes nothing")
        lines = [
            f"{what}: {_listed(paths)}"
            for what, paths in (
                ("announced, but not changed", announced - changed),
                ("changed, but not announced", changed - announced - applied.sources),
            )
            if paths
        ]
        if lines:
            raise _failed(phase, "other_paths", "\n".join(lines))
        self._check(changed | announced | applied.sources, phase)
        why = "" if self.row.parity else special_denials(applied.special, self.tests.policy)
        if why:
            raise _failed(phase, "path_denied", why)

    async def finding(self, checkout: Checkout) -> AgentFinding:
        """Run the command over a checkout to which everything has been applied; return the verdict."""
        ran = await self.run(checkout)

        def is_packs(without: CommandRun) -> bool:
            # Not where tests import what the repository does not have yet: that is what the patch was to add.
            lacks = [_LACKS.search(why) for _, why in without.seen.broken]
            modules = {(found[1] or found[2]).partition(".")[0] for found in lacks if found is not None}
            return modules.isdisjoint(checkout.modules)

        names_tests = runs_tests(self.tests.command.command)
        found = await CommandJudge("eval.tests.command", ran, self.without, names_tests, is_packs).finding()
        if found.verdict is not Verdict.PASSED:
            return replace(found, step=PatchPhase.COMMAND)
        if ran.changed and not self.row.parity:
            # Some tests write to files of the repository, whatever is tested.
            changed = ran.changed - (await self.without(False)).changed
            if changed:
                what = f"files of the tests were changed while they ran: {_listed(changed)}"
                raise _failed(PatchPhase.COMMAND, "tests_changed", f"eval.tests.command: {what}")
        return found

    async def run(self, checkout: Checkout, *, collects: bool = False) -> CommandRun:
        """Run the command over a checkout to which everything has been applied."""
        spec, check, workspace = checkout.spec, self.tests.command, checkout.workspace
        wall_s = check.timeout_s or self.row.task.environment.timeout_s or TEST_LIMITS.wall_s
        workdir = posixpath.normpath(posixpath.join(spec.workdir, check.workdir or ""))
        settings = WitnessSettings(True, checkout.modules, collects)
        async with open_witness(self.row.engine, spec, workspace, settings) as witness:
            marks = await asyncio.to_thread(_protected_files, workspace, self.tests.policy)
            argv, env = witness.with_path(check.command), repository_environment(self.row.task)
            ran = await witness.run(argv, workdir, env, replace(TEST_LIMITS, wall_s=wall_s))
            return replace(ran, changed=await asyncio.to_thread(_changed, workspace, marks))

    async def without(self, collects: bool) -> CommandRun:
        """Run the command over a fresh checkout with the pack's own patches, and without the candidate's."""
        async with open_checkout(self.row) as checkout:
            await self.apply(checkout, None)
            return await self.run(checkout, collects=collects)


def _protected_files(workspace: Workspace, policy: PatchPolicy) -> Mapping[str, FileMark]:
    """Return the marks of all files that a policy keeps from a candidate, by path."""
    names = (entry.name for entry in workspace.entries() if entry.kind is not EntryKind.FOLDER)
    return {
        name: _mark(workspace, name)
        for name in names
        if not name.startswith(".git/") and denial(name, policy)
    }


def _changed(workspace: Workspace, marks: Mapping[str, FileMark]) -> frozenset[str]:
    return frozenset(name for name, mark in marks.items() if _mark(workspace, name) != mark)


def _mark(workspace: Workspace, name: str) -> FileMark:
    try:
        found = (workspace.path / name).lstat()
    except OSError:
        return None
    return found.st_ino, found.st_ctime_ns, found.st_size


def _listed(paths: frozenset[str]) -> str:
    shown = ", ".join(repr(excerpt(path, 200)) for path in sorted(paths)[:_MOST_SHOWN])
    return shown + (f" and {len(paths) - _MOST_SHOWN} more" if len(paths) > _MOST_SHOWN else "")
