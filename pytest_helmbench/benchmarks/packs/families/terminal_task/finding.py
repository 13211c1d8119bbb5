"""The finding on the workspace of a terminal task: verdict and reason."""

from __future__ import annotations

from dataclasses import field

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["CannotStartError", "TerminalFinding"]


@dataclass(frozen=True, slots=True)
class TerminalFinding:
    """The verdict over a workspace. Holds no hidden value.

    Args:
        verdict: Passed; failed for what the workspace is wrong in; error for what is the pack's or the sandbox's
            fault.
        reason: One word for tables, such as `check_failed`, `timeout`, `cannot_start`; None when it passed.
        message: For people; empty when it passed.
        output: End of what the checker wrote, scrubbed: the workspace's and the tests' own words.
        in_process: What is judged may have run beside what judges it, so that it could have forged the verdict.
        taken: Links, pipes and devices of the workspace that were taken away before the checker ran, for people.
    """

    verdict: Verdict
    reason: str | None = None
    message: str = ""
    output: str = ""
    in_process: bool = field(default=False, compare=False)
    taken: tuple[str, ...] = field(default=(), compare=False)

    @property
    def step(self) -> str:
        """Empty: a checker is one step."""
        return ""


class CannotStartError(HelmbenchError):
    """There is no checker to start: the pack's fault, or the image's."""
