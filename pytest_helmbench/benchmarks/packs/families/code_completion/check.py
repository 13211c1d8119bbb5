"""code_completion: the rule for a row, the finding on a reply's code, and replies of known worth."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import field

from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import fenced
from pytest_helmbench.benchmarks.packs.format.row_fields import eval_text
from pytest_helmbench.benchmarks.packs.task import CommandCheck, MaterializationError, PackTask
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Beside, Verdict

_SOLUTIONS = ("reference_solution", "canonical_solution")


@dataclass(frozen=True, slots=True)
class CodeTests:
    """The rule for a code completion.

    Args:
        code: Python (or what `language` says) that raises for a wrong candidate.
        language: Lower-case; `python` where the row names none.
        command: How an image runs the tests of another language; None for Python.
    """

    code: str
    language: str = "python"
    command: CommandCheck | None = None


@dataclass(frozen=True, slots=True)
class CodeFinding:
    """The verdict over a reply's code. Holds no hidden value.

    Args:
        verdict: Passed; failed for what the code is wrong in; error for what is the pack's or the sandbox's fault.
        reason: One word for tables, such as `no_code`, `does_not_load`, `tests_failed`, `timeout`, `limit`,
            `not_expressible`, `unfit_tests`, `cannot_start`; None when it passed.
        message: For people, without a name that only the tests or a running reply know; empty when it passed.
        line: The line of the tests that it speaks of; the tests are hidden.
        full_message: The message with that name; the tests are hidden. Empty where there is none.
        beside: The mark of a verdict where code and tests shared a box; None where two boxes kept them apart.
        image_used: False where the row names an image and this machine's Python stood in for it.
    """

    verdict: Verdict
    reason: str | None = None
    message: str = ""
    image_used: bool = True
    line: str = ""
    full_message: str = ""
    beside: Beside | None = field(default=None, compare=False)

    def text(self, *, shows: bool) -> str:
        """Return the message for people; `shows`: with the name and the line of hidden tests that it speaks of."""
        if not shows:
            return self.message
        message = self.full_message or self.message
        return f"{message}: {self.line}" if self.line else message


def code_self_check(task: PackTask) -> list[tuple[str, str, bool]]:
    """Return the replies that a row is checked with: what each is, its text, and whether its tests must pass.

    Raises:
        MaterializationError: A solution is a file that cannot be read.
    """
    solutions = ((name, eval_text(task, name)) for name in _SOLUTIONS)
    replies = [(name, fenced(text), True) for name, text in solutions if text is not None]
    prompt = str(task.input_value("prompt") or "")
    starter = str(task.input_value("starter_code") or "")
    replies += [("an empty reply", "", False), ("'I do not know'", "I do not know", False)]
    echo = f"{prompt}\n\n{fenced(starter)}" if starter.strip() else prompt
    replies.append(("the prompt, echoed", echo, False))
    if starter.strip():
        replies.append(("the starter code, untouched", fenced(starter), False))
    return replies


def references(task: PackTask) -> tuple[str, ...]:
    """Return the solutions of a row that can be read."""
    found = []
    for name in _SOLUTIONS:
        with suppress(MaterializationError):
            found.append(eval_text(task, name))
    return tuple(text for text in found if text is not None)
