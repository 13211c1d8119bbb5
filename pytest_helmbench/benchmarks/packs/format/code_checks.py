"""How code families are judged: the three generations of the format brought into one shape."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.packs.format.path_rules import trimmed
from pytest_helmbench.benchmarks.packs.task import (
    Check,
    CodeTests,
    CommandCheck,
    Family,
    FileCheck,
    PatchPolicy,
    PatchTests,
    TerminalTests,
)

__all__ = ["compiled_check", "language_of", "skip_reason_of"]

_PYTHON = frozenset({"python", "python3", "py"})


def compiled_check(
    family: Family, public: Mapping[str, Any], hidden: Mapping[str, Any], checker_file: Path | None
) -> Check | None:
    """Return how a row is judged; None for text families.

    Args:
        family: Of the row.
        public: Its `input`, without faults.
        hidden: Its `eval`, without faults.
        checker_file: Where the file of a terminal checker stands, if it has one.
    """
    if family is Family.CODE_COMPLETION:
        tests = hidden["tests"]
        command = _command_check(tests) if tests.get("command") is not None else None
        return CodeTests(tests["code"], language_of(public), command)
    if family is Family.REPO_PATCH:
        tests = hidden["tests"]
        policy = hidden.get("candidate_policy") or tests.get("candidate_policy") or {}
        return PatchTests(
            command=_command_check(tests),
            setup_patch=_patch(tests.get("setup_patch")),
            test_patch=_patch(tests.get("test_patch")),
            policy=PatchPolicy(
                tuple(policy.get("allow_paths") or ()), tuple(policy.get("allow_sensitive_paths") or ())
            ),
        )
    if family is Family.TERMINAL_TASK:
        checker = hidden["checker"]
        return TerminalTests(
            _command_check(checker) if "command" in checker else _file_check(checker, checker_file),
            tuple(hidden.get("needed_commands") or ()),
        )
    return None


def language_of(public: Mapping[str, Any]) -> str:
    """Return the language of a code row, lower-case; `python` where it names none."""
    language = str(public.get("language") or "python").strip().lower()
    return "python" if language in _PYTHON else language


def skip_reason_of(
    family: Family, public: Mapping[str, Any], hidden: Mapping[str, Any], *, has_image: bool
) -> str | None:
    """Return why a healthy row cannot be run here; None for one that can."""
    if family is not Family.CODE_COMPLETION:
        return None
    language = language_of(public)
    if language == "python":
        return None
    missing = [
        name
        for name, there in (
            ("environment.image", has_image),
            ("eval.tests.command", hidden["tests"].get("command") is not None),
        )
        if not there
    ]
    return f"the language {language!r} needs {' and '.join(missing)}" if missing else None


def _command_check(data: Mapping[str, Any]) -> CommandCheck:
    command = data["command"]
    timeout = data.get("timeout_seconds")
    return CommandCheck(
        ("sh", "-lc", command) if isinstance(command, str) else tuple(command),
        data.get("workdir"),
        None if timeout is None else float(timeout),
    )


def _file_check(data: Mapping[str, Any], file: Path | None) -> FileCheck:
    timeout = data.get("timeout_seconds")
    return FileCheck(data["source"], trimmed(data["path"]), None if timeout is None else float(timeout), file)


def _patch(value: str | Mapping[str, Any] | None) -> str | None:
    return value if value is None or isinstance(value, str) else str(value["patch"])
