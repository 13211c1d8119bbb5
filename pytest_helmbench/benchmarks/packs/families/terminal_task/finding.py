"""The finding on the workspace of a terminal task: verdict and reason."""

from __future__ import annotations

from dataclasses import dataclass

from pytest_helmbench.core.outcome import Verdict

__all__ = ["TerminalFinding"]


@dataclass(frozen=True, slots=True)
class TerminalFinding:
    """The verdict over a workspace. Holds no hidden value.

    Args:
        verdict: Passed; failed for what the workspace is wrong in; error for what is the pack's or the sandbox's
            fault.
        reason: One word for tables, such as `check_failed`, `timeout`, `cannot_start`; None when it passed.
        message: For people; empty when it passed.
        output: End of what the checker wrote, scrubbed: the workspace's and the tests' own words.
    """

    verdict: Verdict
    reason: str | None = None
    message: str = ""
    output: str = ""

    @property
    def step(self) -> str:
        """Empty: a checker is one step."""
        return ""
