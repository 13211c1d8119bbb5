"""The finding on a reply's code: verdict, reason, and the step that it ended in."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict

__all__ = ["CodeFinding", "CodePhase"]


class CodePhase(StrEnum):
    """The steps in their order; a finding names the one that it ended in."""

    EXTRACT = "extract"
    START = "start"
    LOAD = "load"
    TESTS = "tests"


@dataclass(frozen=True, slots=True)
class CodeFinding:
    """The verdict over a reply's code. Holds no hidden value.

    Args:
        verdict: Passed; failed for what the code is wrong in; error for what is the pack's or the sandbox's fault.
        reason: One word for tables, such as `no_code`, `does_not_load`, `tests_failed`, `timeout`, `limit`,
            `not_expressible`, `unfit_tests`, `cannot_start`; None when it passed.
        phase: Where it ended; None when it passed.
        message: For people, without a name that only the tests or a running reply know; empty when it passed.
        output: Words of the reply or of the tests about it, scrubbed.
        line: The line of the tests that it speaks of; the tests are hidden.
        named: The message with that name; the tests are hidden. Empty where there is none.
        in_process: Code and tests shared a container.
        image_used: False where the row names an image and this machine's Python stood in for it.
    """

    verdict: Verdict
    reason: str | None = None
    phase: CodePhase | None = None
    message: str = ""
    output: str = ""
    image_used: bool = True
    line: str = ""
    named: str = ""
    in_process: bool = field(default=False, compare=False)

    def told(self, *, shows: bool) -> str:
        """Return the message for people; `shows`: with the name and the line of hidden tests that it speaks of."""
        if not shows:
            return self.message
        return f"{self.named or self.message}: {self.line}" if self.line else self.named or self.message
