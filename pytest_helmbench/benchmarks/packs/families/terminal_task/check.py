"""terminal_task: the checker of a row, compiled: a command, or a file of the pack."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.command_checks import command_check, timeout_of
from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles
from pytest_helmbench.benchmarks.packs.format.path_rules import trimmed
from pytest_helmbench.benchmarks.packs.format.row_fields import object_in, text_in, texts_in
from pytest_helmbench.benchmarks.packs.task import CommandCheck, FileCheck
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["TerminalTests", "terminal_tests"]


@dataclass(frozen=True, slots=True)
class TerminalTests:
    """What a workspace is held to.

    Args:
        checker: Exit 0 passes.
        needed_commands: Dangerous commands that the row needs (only `chroot` is known).
    """

    checker: CommandCheck | FileCheck
    needed_commands: tuple[str, ...] = ()


def terminal_tests(hidden: JsonObject, files: PackFiles | None) -> TerminalTests:
    """Return what a row without faults is held to.

    Args:
        hidden: Its `eval`.
        files: Of its pack; None for a row without one.
    """
    checker = object_in(hidden, "checker")
    return TerminalTests(
        command_check(checker) if "command" in checker else _file_check(checker, files),
        texts_in(hidden, "needed_commands"),
    )


def _file_check(checker: JsonObject, files: PackFiles | None) -> FileCheck:
    path = text_in(checker, "path") or ""
    return FileCheck(
        "script" if checker.get("source") == "script" else "pytest",
        trimmed(path),
        timeout_of(checker),
        None if files is None else files.evaluator(path).path,
    )
