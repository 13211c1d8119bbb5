"""Files in the evaluator's folder of a terminal task: its checker and its evaluation inputs."""

from __future__ import annotations

from collections.abc import Sequence

from pytest_helmbench.benchmarks.packs.families.terminal_task.check import TerminalTests
from pytest_helmbench.benchmarks.packs.format.file_plans import (
    bounded,
    checked_source,
    contents,
    planned_files,
)
from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles
from pytest_helmbench.benchmarks.packs.task import (
    Asset,
    FileCheck,
    PackTask,
    PathPolicyError,
    PlannedFile,
    Visibility,
)
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Evaluator", "plan_evaluator"]


@dataclass(frozen=True, slots=True)
class Evaluator:
    """The files of a checker.

    Args:
        files: What lies in the evaluator's folder, in the order in which it can be laid out.
        entry: The checker in it, POSIX; `.` for the folder itself, None for a command.
    """

    files: Sequence[PlannedFile] = ()
    entry: str | None = None


def plan_evaluator(files: PackFiles, task: PackTask) -> Evaluator:
    """Return what the evaluator's folder of a task holds: its checker and its evaluation inputs.

    A checker that is a folder becomes the evaluator's folder itself; a checker that is a file lies in it
    under its own name. Hidden files are never in it.

    Raises:
        PathPolicyError: A path or mount leads where it must not.
        MaterializationError: A file is missing, cannot be read, or there is too much of it.
    """
    inputs = tuple(item for item in task.eval_files if item.visibility is Visibility.EVALUATION_INPUTS)
    planned = planned_files(files, inputs)
    checker = task.check.checker if isinstance(task.check, TerminalTests) else None
    if not isinstance(checker, FileCheck):
        return Evaluator(planned, None)
    asset = Asset(checker.path, checker.path, True, checker.file, Visibility.EVALUATION_INPUTS)
    source = checked_source(files, asset)
    entry = "." if source.is_dir() else source.name
    own = tuple(contents(asset, source, entry))
    taken = {item.target: item for item in own}
    for item in planned:
        first = taken.get(item.target)
        if first is not None and not (first.is_folder and item.is_folder):
            raise PathPolicyError(f"{item.target!r} is mounted over a file of the checker")
    return Evaluator(bounded(files.bounds, (*own, *planned)), entry)
