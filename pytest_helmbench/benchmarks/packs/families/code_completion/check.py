"""code_completion: the tests of a row, compiled, and what they need to run."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.format.command_checks import command_check
from pytest_helmbench.benchmarks.packs.format.row_fields import object_in, text_in
from pytest_helmbench.benchmarks.packs.task import CommandCheck, PackTask
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["CodeTests", "code_tests", "code_tests_of", "language_of", "missing_for"]

_PYTHON = frozenset({"python", "python3", "py"})


@dataclass(frozen=True, slots=True)
class CodeTests:
    """What a code completion is held to.

    Args:
        code: Python (or what `language` says) that raises for a wrong candidate.
        language: Lower-case; `python` where the row names none.
        command: How an image runs the tests of another language; None for Python.
    """

    code: str
    language: str = "python"
    command: CommandCheck | None = None


def code_tests(public: JsonObject, hidden: JsonObject) -> CodeTests:
    """Return what a row without faults is held to."""
    tests = object_in(hidden, "tests")
    command = command_check(tests) if tests.get("command") is not None else None
    return CodeTests(text_in(tests, "code") or "", language_of(public), command)


def code_tests_of(task: PackTask) -> CodeTests:
    """Return what a row is held to.

    Raises:
        TypeError: The row is of another family.
    """
    if not isinstance(task.check, CodeTests):
        raise TypeError(f"{task.id}: no row of code_completion")
    return task.check


def language_of(public: JsonObject) -> str:
    """Return the language of a row, lower-case; `python` where it names none."""
    language = str(public.get("language") or "python").strip().lower()
    return "python" if language in _PYTHON else language


def missing_for(public: JsonObject, hidden: JsonObject, *, has_image: bool) -> str | None:
    """Return why a healthy row cannot be run here, in a sentence; None for one that can."""
    language = language_of(public)
    if language == "python":
        return None
    missing = [] if has_image else ["environment.image"]
    if object_in(hidden, "tests").get("command") is None:
        missing.append("eval.tests.command")
    return f"the language {language!r} needs {' and '.join(missing)}" if missing else None
