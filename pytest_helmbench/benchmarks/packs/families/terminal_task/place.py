"""The workspace of a terminal task and its checker's folder: how they are made, and what comes back before judging."""

from __future__ import annotations

import asyncio
import posixpath
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentRow
from pytest_helmbench.benchmarks.packs.agent.hand_over import link_fault
from pytest_helmbench.benchmarks.packs.evidence.witnesses import CHECK_LIMITS, lay_out, system_free
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.terminal_task.check import CAPABILITIES, TerminalTests
from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles, bounded, contents
from pytest_helmbench.benchmarks.packs.task import (
    ConfigError,
    FileCheck,
    PackTask,
    PathPolicyError,
    PlannedFile,
    Visibility,
)
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import BoxSpec
from pytest_helmbench.sandbox.workspace import Entry, EntryKind, Workspace


@dataclass(frozen=True, slots=True)
class CheckerFiles:
    """The files of a checker.

    Args:
        files: What lies in the evaluator's folder, in the order in which it can be laid out.
        entry: The checker in it, POSIX; `.` for the folder itself, None for a command.
        inputs: What lies in the workspace under `EVALUATORS` while the checker runs.
    """

    files: Sequence[PlannedFile] = ()
    entry: str | None = None
    inputs: Sequence[PlannedFile] = ()


EVALUATORS = "securebench"
"""The folder of the workspace that belongs to the evaluator."""

_INPUTS = f"{EVALUATORS}/evaluation_inputs/"


def plan_checker_files(files: PackFiles, task: PackTask) -> CheckerFiles:
    """Return what the evaluator's folder of a task holds: its checker and its evaluation inputs.

    A checker that is a folder becomes the evaluator's folder itself, and so does the folder of a script; tests that
    are a file lie in it under their own name. Hidden files are never in it.

    Raises:
        PathPolicyError: A path or mount leads where it must not.
        MaterializationError: A file is missing, cannot be read, or there is too much of it.
    """
    named = tuple(item for item in task.eval_files if item.visibility is Visibility.EVALUATION_INPUTS)
    planned = files.plan(named)
    inputs = tuple(
        item if item.target.startswith(f"{EVALUATORS}/") else replace(item, target=f"{_INPUTS}{item.target}")
        for item in planned
    )
    checker = task.check.checker if isinstance(task.check, TerminalTests) else None
    if not isinstance(checker, FileCheck):
        return CheckerFiles(planned, None, inputs)
    source = files.source(checker.path, Visibility.EVALUATION_INPUTS)
    entry = "." if source.is_dir() else source.name
    top = source.parent if checker.source == "script" else source
    hidden = [item.source for item in task.eval_files if item.visibility is Visibility.HIDDEN]
    own = tuple(
        item
        for item in contents(checker.path, top, entry if top == source else ".", read_only=True)
        if not any(item.source.is_relative_to(path) for path in hidden)
    )
    taken = {item.target: item for item in own}
    for item in planned:
        first = taken.get(item.target, item)
        if first.source != item.source and not (first.is_folder and item.is_folder):
            raise PathPolicyError(f"{item.target!r} is mounted over a file of the checker")
    return CheckerFiles(bounded((*own, *planned)), entry, inputs)


_WORKDIR = "/workspace"


@asynccontextmanager
async def open_place(row: AgentRow) -> AsyncIterator[tuple[BoxSpec, Workspace]]:
    """Make the workspace of a row with the way its boxes are opened, and remove it at the end.

    Raises:
        ConfigError: The workspace cannot be where the environment says.
        SandboxError: The sandbox failed, or the image holds no such folder.
    """
    spec = spec_of(row)
    workspace = row.engine.new_workspace(spec.image)
    spec = replace(spec, workspace=workspace)
    try:
        await row.engine.open(
            replace(spec, fill_from_image=row.task.environment.materialize_workdir_from_image)
        )
        await asyncio.to_thread(lay_out, workspace, row.assets)
        yield spec, workspace
    finally:
        await asyncio.to_thread(workspace.close)


def spec_of(row: AgentRow) -> BoxSpec:
    """Return how boxes over the workspace of a row are made, without the workspace.

    Raises:
        ConfigError: It would hide a part of the system.
    """
    task = row.task
    image, stated = task.environment.image, task.environment.workdir or _WORKDIR
    workdir = system_free(stated)
    if workdir is None:
        raise ConfigError(f"{task.id}: environment.workdir: the workspace cannot be at {stated!r}")
    needed, allowed = check_of(task, TerminalTests).needed_commands, row.allowed_commands.value
    return BoxSpec(
        image=image,
        workdir=workdir,
        env=(("HOME", "/tmp"),) if image is None else (),
        limits=CHECK_LIMITS,
        label=task.id,
        capabilities=tuple(CAPABILITIES[name] for name in needed if name in allowed),
    )


def remove_strays(workspace: Workspace, workdir: str) -> tuple[str, ...]:
    """Open a workspace again if it was closed, and remove what leads out of it or is not a file; return what that was.

    Links to programs and libraries of the system may stay: virtual environments are made of them.

    Raises:
        SandboxError: Folders are nested too deep, or something cannot be removed.
    """
    workspace.path.chmod(0o755 if workspace.path.stat().st_mode & 0o055 else 0o700)
    found = [(entry.name, why) for entry in workspace.entries() if (why := _fault_of(entry, workdir))]
    for name, _ in found:
        workspace.remove(name)
    return tuple(f"{excerpt(name)} was taken away: {why}" for name, why in found)


def _fault_of(entry: Entry, workdir: str) -> str:
    """Return why an entry must not stay; empty when it may."""
    if entry.name == EVALUATORS:
        return "files of the evaluator lie there"
    if entry.kind is EntryKind.OTHER:
        return "it is a pipe, a socket or a device"
    if entry.kind is not EntryKind.LINK:
        return ""
    return link_fault(entry.target, posixpath.join(workdir, entry.name), (workdir,))
