"""Of which cases a report holds prompts, replies and the judge's words."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol

__all__ = ["HIDDEN_TEXT", "ShownTexts", "full_observed"]

HIDDEN_TEXT = "(text of the reply)"
"""Stands in `observed` where running text of a reply was observed."""


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


class _Evaluated(Protocol):
    @property
    def observed(self) -> str:
        """What came, without running text of a reply."""

    @property
    def observed_text(self) -> str | None:
        """That text; None for none."""


def full_observed(evaluated: _Evaluated) -> str:
    """Return what was observed, for where texts are shown."""
    return evaluated.observed if evaluated.observed_text is None else evaluated.observed_text
