"""terminal_task: what a row holds, and the rule for a workspace."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.path_rules import path_fault, trimmed
from pytest_helmbench.benchmarks.packs.format.row_fields import (
    Field,
    Fields,
    Names,
    anything,
    check_place_and_time,
    check_source,
    command_check,
    not_an_object,
    text_or_object,
    timeout_of,
)
from pytest_helmbench.benchmarks.packs.task import CommandCheck, FileCheck, Visibility
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_command,
    check_text,
    check_texts,
    check_unknown,
    kind_of,
    named,
)
from pytest_helmbench.files.strict_json import a_mapping, a_text, texts


@dataclass(frozen=True, slots=True)
class TerminalTests:
    """The rule for a workspace.

    Args:
        checker: Exit 0 passes.
        needed_commands: Dangerous commands that the row needs (only `chroot` is known).
    """

    checker: CommandCheck | FileCheck
    needed_commands: tuple[str, ...] = ()


def terminal_tests(hidden: JsonObject) -> TerminalTests:
    """Return the rule for a row without faults; see `Family.compiled_check`."""
    checker = a_mapping(hidden.get("checker"))
    return TerminalTests(
        command_check(checker) if "command" in checker else _file_check(checker),
        texts(hidden.get("needed_commands")),
    )


def _file_check(checker: JsonObject) -> FileCheck:
    path = a_text(checker.get("path")) or ""
    return FileCheck(
        "script" if checker.get("source") == "script" else "pytest",
        trimmed(path),
        timeout_of(checker),
    )


CAPABILITIES = {"chroot": "SYS_CHROOT"}
"""By dangerous command that a row may ask for: what it takes."""
_COMMANDS_HINT = "the only dangerous command that a row may ask for is 'chroot'"
_FILES_HINT = 'name a file below the eval root as {"path": "…"}'
_CHECKER_HINT = 'write {"command": […]}, or {"source": "pytest", "path": "…"}'


def _checker(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, dict):
        not_an_object(faults, where, value, _CHECKER_HINT)
    elif "path" in value and "command" not in value:
        check_unknown(faults, where, value, ("source", "path", "timeout_seconds"))
        check_source(faults, where, value, ("pytest", "script"))
        _relative(faults, f"{where}.path", value["path"])
        check_place_and_time(faults, where, value)
    elif "command" in value:
        check_unknown(faults, where, value, ("source", "command", "workdir", "timeout_seconds"))
        if value.get("source") is not None:
            check_source(faults, where, value, ("command",))
        check_command(faults, f"{where}.command", value["command"])
        check_place_and_time(faults, where, value)
    else:
        faults.error(where, "there is neither 'command' nor 'path'", _CHECKER_HINT)


def _relative(faults: RowFaults, where: str, value: JsonValue) -> None:
    if not isinstance(value, str):
        faults.error(where, f"this is {kind_of(value)}, not text")
        return
    fault = path_fault(value)
    if fault:
        faults.error(where, f"the path {fault}", "write a relative POSIX path below the eval root")


def _files(faults: RowFaults, where: str, value: JsonValue) -> None:
    """Say of every text that it names no file: only an object does."""
    for number, item in enumerate(value) if isinstance(value, list) else (("", value),):
        if isinstance(item, str):
            place = where if number == "" else f"{where}[{number}]"
            faults.warn(place, "a text names no file: the checker will not have it", _FILES_HINT)


def _needed_commands(faults: RowFaults, where: str, value: JsonValue) -> None:
    before = len(faults.errors)
    check_texts(faults, where, value, may_be_empty=True)
    if len(faults.errors) == before and isinstance(value, list):
        for item in value:
            if item not in CAPABILITIES:
                faults.error(where, f"{named(item)} is not a command that is known here", _COMMANDS_HINT)


_INPUTS = Visibility.EVALUATION_INPUTS

INPUT_FIELDS: Fields = {
    "instructions": Field(check_text, required=True),
    "context": Field(text_or_object),
}
EVAL_FIELDS: Fields = {
    "checker": Field(_checker, required=True, visibility=_INPUTS),
    "run_tests": Field(_files, visibility=_INPUTS, names=Names.FILES),
    "test_files": Field(_files, visibility=_INPUTS, names=Names.FILES),
    "expected_state": Field(anything, names=Names.A_FILE),
    "needed_commands": Field(_needed_commands, visibility=_INPUTS),
}
