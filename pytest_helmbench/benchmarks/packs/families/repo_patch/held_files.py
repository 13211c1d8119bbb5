"""Files that a candidate may not patch: what becomes of them while its code runs beside its tests."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchPolicy
from pytest_helmbench.benchmarks.packs.families.repo_patch.paths import denial
from pytest_helmbench.sandbox.workspace import Workspace

__all__ = ["FileMarks", "changed_files", "held_files"]

FileMarks = Mapping[str, tuple[int, int, int]]
"""By path: what changes whenever a file is written to or replaced, and what no program can set back."""


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
