"""The command that tests a patch, run over a checkout, with the candidate and without."""

from __future__ import annotations

import asyncio
import os
import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.evidence.verdicts import Ran
from pytest_helmbench.benchmarks.packs.evidence.witnesses import WitnessSettings, opened_witness, with_path
from pytest_helmbench.benchmarks.packs.families.repo_patch.applying import Applying
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.checkout import Checkout, Git, opened_checkout
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import PatchPolicy, denial
from pytest_helmbench.benchmarks.packs.task import PackTask, PlannedFile
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.box import Command, Engine, Limits
from pytest_helmbench.sandbox.closed_programs import closed_programs
from pytest_helmbench.sandbox.workspace import Workspace

_MIB = 1024 * 1024
TEST_LIMITS = Limits(
    wall_s=1800.0,
    cpus=2.0,
    memory_bytes=4096 * _MIB,
    pids=512,
    output_bytes=4 * _MIB,
    disk_bytes=8192 * _MIB,
)
"""Bounds of the command that tests a patch; the row's own timeout takes the place of `wall_s`."""

_SAFE = (
    # Tests may ask git about the repository, whoever its files belong to.
    ("GIT_CONFIG_COUNT", "1"),
    ("GIT_CONFIG_KEY_0", "safe.directory"),
    ("GIT_CONFIG_VALUE_0", "*"),
)

FileMarks = Mapping[str, tuple[int, int, int]]
"""By path: what changes whenever a file is written to or replaced, and what no program can set back."""


def repository_environment(task: PackTask) -> tuple[tuple[str, str], ...]:
    """Return what commands of a task's repository find in their environment, beside the image's own."""
    home = (("HOME", "/tmp"),) if task.environment.image is None else ()
    return (*_SAFE, *home)


@dataclass(frozen=True, slots=True)
class Testing:
    """The tests of a row.

    Args:
        task: The row.
        tests: Of the row.
        engine: What runs them.
        assets: Public files of the row.
    """

    task: PackTask
    tests: PatchTests
    engine: Engine
    assets: Sequence[PlannedFile]

    async def run(self, checkout: Checkout, *, collects: bool = False) -> Ran:
        """Run the command over a checkout to which everything has been applied."""
        spec, check = checkout.spec, self.tests.command
        wall_s = check.timeout_s or self.task.environment.timeout_s or TEST_LIMITS.wall_s
        workdir = posixpath.normpath(posixpath.join(spec.workdir, check.workdir or ""))
        async with opened_witness(self.engine, spec.image, checkout.workspace.uid) as witness:
            closed = await closed_programs(self.engine, spec.image)
            mounted = replace(spec, mounts=(*spec.mounts, witness.mount, *closed))
            async with await self.engine.open(mounted) as box:
                witness.prepare(WitnessSettings(box.workdir, True, checkout.modules, collects))
                env = (*repository_environment(self.task), *witness.env(box), *self._plugins())
                argv = with_path(check.command, box.inside(witness.place))
                command = Command(argv, workdir, env, limits=replace(TEST_LIMITS, wall_s=wall_s))
                held = await asyncio.to_thread(held_files, checkout.workspace, self.tests.policy)
                with witness.listening():
                    ended = await box.run(command)
                changed = await asyncio.to_thread(changed_files, checkout.workspace, held)
            return Ran(ended, witness.seen(), changed)

    async def without(self, collects: bool) -> Ran:
        """Run the command over a fresh checkout with the pack's own patches, and without the candidate's."""
        async with opened_checkout(self.task, self.engine, self.assets) as checkout:
            async with await self.engine.open(checkout.spec) as box:
                with checkout.quiet():
                    applying = Applying(checkout, self.tests, Git(box))
                    applied = await applying.apply(None)
                    await applying.add_tests(applied.baseline)
                applying.done()
            return await self.run(checkout, collects=collects)

    def _plugins(self) -> tuple[tuple[str, str], ...]:
        """Return what leaves out plugins that this machine happens to have; those of an image belong to it."""
        return (("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),) if self.task.environment.image is None else ()


def held_files(workspace: Workspace, policy: PatchPolicy) -> FileMarks:
    """Return the marks of all files that a policy keeps from a candidate."""
    return {name: mark for name, mark in _marks(workspace, _names(workspace)) if denial(name, policy)}


def changed_files(workspace: Workspace, before: FileMarks) -> frozenset[str]:
    """Return which of them have been written to, replaced or removed."""
    after = dict(_marks(workspace, before))
    return frozenset(name for name, mark in before.items() if after.get(name) != mark)


def _names(workspace: Workspace) -> Iterator[str]:
    top = str(workspace.path)
    for folder, folders, files in os.walk(top):
        if folder == top:
            folders[:] = [name for name in folders if name != ".git"]
        yield from (os.path.relpath(os.path.join(folder, name), top) for name in files)  # noqa: PTH118 - half the time


def _marks(
    workspace: Workspace, names: Iterator[str] | FileMarks
) -> Iterator[tuple[str, tuple[int, int, int]]]:
    for name in names:
        try:
            found = (workspace.path / name).lstat()
        except OSError:
            continue
        yield name, (found.st_ino, found.st_ctime_ns, found.st_size)
