"""Problems of input files: where, what, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass


class HelmbenchError(Exception):
    """Base of the errors that a user of the package may want to catch. All of them can be pickled."""

    def __reduce__(self) -> tuple[object, ...]:
        """Return how it is made again elsewhere: its message is not what it was made from."""
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(
    kind: type[HelmbenchError], args: tuple[object, ...], facts: dict[str, object]
) -> HelmbenchError:
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class HintedError(HelmbenchError):
    """Something is not there, or does not run.

    Args:
        code: In one word, such as `missing_dependency`.
        reason: Goes behind the name of what is meant, such as `needs docker`.
        hint: What to do; empty for nothing.
    """

    def __init__(self, code: str, reason: str, hint: str = "") -> None:
        self.code = code
        self.reason = reason
        self.hint = hint
        super().__init__(f"{reason}\n  hint: {hint}" if hint else reason)


class CaseError(HelmbenchError):
    """An item raises it when it has no verdict: a fault of the provider or a judge, a file that cannot be read.

    Reports tell it from a wrong answer by its class: `pytest.fail` is a failure to them.
    """


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with one file.

    Args:
        line: 1-based line, as an editor counts; None when the whole file is meant.
        message: What is wrong, with the offending value.
        hint: What to change; empty when there is nothing to add.
        cause: Name of another file whose problems cause this one; beside them it says nothing new.
    """

    path: Path
    line: int | None
    message: str
    hint: str = ""
    cause: str = ""

    def text(self, base: Path | None = None) -> str:
        """Return `file:line: message` and the hint on a line of its own.

        Args:
            base: Folder that the path is shown relative to, when it lies inside.
        """
        path = self.path
        if base is not None and path.is_relative_to(base):
            path = path.relative_to(base)
        where = f"{path}:{self.line}" if self.line is not None else str(path)
        lines = [f"{where}: {self.message}"]
        if self.hint:
            lines.append(f"  hint: {self.hint}")
        return "\n".join(lines)


def without_effects(problems: Sequence[Problem], among: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return problems without those whose cause is reported too."""
    if not any(problem.cause for problem in problems):
        return tuple(problems)
    names = {problem.path.name for problem in among if not problem.cause}
    return tuple(problem for problem in problems if problem.cause not in names)


class UnreadableBenchmarkError(HelmbenchError):
    """A whole file that everything depends on cannot be used.

    Args:
        problems: All that is wrong with it, in file order.
    """

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        self.problems = problems
        super().__init__("\n".join(problem.text() for problem in problems))
