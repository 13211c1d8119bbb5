"""Failures of a Bench Pack, with a reason and in words for people."""

from __future__ import annotations

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import without_tokens

__all__ = ["REASONS", "PackFailedError"]

REASONS = frozenset(
    ("threw", "unhandled", "exited", "too_slow", "hung", "crashed", "malformed", "not_loadable")
)
"""Why a Bench Pack failed, in one word each."""

_NOT_OF_THE_PACK = ("node:internal", "node/inside/")


class PackFailedError(HelmbenchError):
    """A Bench Pack failed at what it was asked: nothing that a model did. No text of it holds a relay's token.

    Args:
        reason: One of `REASONS`.
        message: What happened, in one or two sentences; the pack's own words in it are scrubbed and cut.
        output: The end of what was printed, scrubbed: the item's own where that is known, else the process's.
        stack: Where it was thrown, as Node says, scrubbed; empty where nothing was thrown.
    """

    def __init__(self, reason: str, message: str, output: str = "", stack: str = "") -> None:
        self.reason = reason
        self.message = without_tokens(message)
        self.output = without_tokens(output)
        self.stack = without_tokens(stack)
        super().__init__(self.message)

    @property
    def words(self) -> str:
        """Where it was thrown, without the places that are Node's and ours, then what was printed."""
        lines = [
            line for line in self.stack.splitlines() if not any(word in line for word in _NOT_OF_THE_PACK)
        ]
        return "\n".join(filter(None, (*lines, self.output)))
