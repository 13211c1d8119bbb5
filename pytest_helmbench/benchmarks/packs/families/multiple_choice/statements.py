"""A place where a multiple_choice reply settles on a choice, and how much of the reply belongs to it."""

from __future__ import annotations

import re
from dataclasses import field
from typing import Final

from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import Choices
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["GUESS", "HEDGE", "LONGEST_CONTENT", "SHORT", "Statement", "reach", "rest_of_line"]

GUESS: Final = "guess"
"""How a statement with a hedge was recognised."""
HEDGE = re.compile(r"(?<!\w)(?:could|might|may|can|perhaps|possibly|maybe)(?!\w)")

SHORT = 400
"""A reply or last line up to this length may answer by mere mention."""
LONGEST_CONTENT = 400
_REACH = 120


@dataclass(frozen=True, slots=True, order=True)
class Statement:
    """One place where the reply settles on something. Statements are ordered by where they stand.

    Args:
        start: Where its words begin in the plain text.
        end: Where they end.
        picks: Indices of the choices; empty for an answer that is none of them.
        strategy: How it was recognised.
        final: It calls itself the final answer.
    """

    start: int
    end: int
    picks: frozenset[int] = field(compare=False)
    strategy: str = field(compare=False)
    final: bool = field(compare=False, default=False)


def reach(choices: Choices) -> int:
    """Return the number of characters before a word in which it may call a choice right."""
    return _REACH + min(choices.longest, 1000)


def rest_of_line(text: str, start: int, most: int) -> str:
    """Return the text from a place to the end of its line, but not more than this many characters."""
    end = text.find("\n", start, start + most)
    return text[start : end if end >= 0 else start + most]
