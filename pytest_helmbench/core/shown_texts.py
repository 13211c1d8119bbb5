"""Of which cases a report holds prompts, replies and the judge's words."""

from __future__ import annotations

from enum import StrEnum

__all__ = ["ShownTexts"]


class ShownTexts(StrEnum):
    """Of which cases texts are shown."""

    NONE = "none"
    FAILURES = "failures"
    ALL = "all"

    @property
    def any(self) -> bool:
        """Whether there is a text at all."""
        return self is not ShownTexts.NONE

    def of(self, outcome: str) -> bool:
        """Return whether the texts of a case with this outcome are shown."""
        return self is ShownTexts.ALL or (self is ShownTexts.FAILURES and outcome == "failed")
