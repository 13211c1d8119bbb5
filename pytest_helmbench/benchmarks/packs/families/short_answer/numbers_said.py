"""Numbers of a short_answer statement, in digits or words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_helmbench.benchmarks.packs.families.short_answer.counted import number_counted, one_counted
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.number_words import number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers
from pytest_helmbench.benchmarks.packs.families.text.units import unit_of

__all__ = ["numbers_said"]


_LAST_WORD = re.compile(r"\s*(?:in (?:total|all)|altogether)?[\s.!*)]*\Z")
_NO_RESULT = re.compile(
    r"(?<!\w)(?:the|these|those|other|others|of|or|and|nor|by|in|into|per|for|than|from|between|all|both|only|up to"
    r"|another|each|every|last|first|next|grade|chapter|over|not|number|no\.|(?<!up )(?<!left )with"
    r"|times|plus|minus)\s(?:[^\W\d]+ed\s)?$|[-+*×÷/(]\s?$"
    r"|(?<!fixed )(?<!set )(?<!stands )(?<!stood )(?<!remained )(?<!stayed )(?<!\w)at\s$"
)
"""Before a number word: it says something beside the result."""


def numbers_said(text: str, asked: str = "") -> list[Number]:
    """Return the numbers of a text; those in words where it has no digits, and where they must be meant.

    That are fractions (`a fourth`), amounts in a unit, what a text ends with, and what counts the thing that a question
    counts where no number in digits does.

    Args:
        text: Plain.
        asked: The question in lower case; empty for none.
    """
    low = lowered(text)
    digits, spelled = [*numbers(text)], _spelled(low, [*numbers(text)], asked)
    if not digits:
        return spelled
    meant = [
        one
        for one in spelled
        if one.values[0].denominator != 1 or unit_of(low, one) is not None or _is_result(low, one)
    ]
    if asked and low[: digits[0].start].strip() and number_counted(low, digits, asked) is None:
        counted = number_counted(low, spelled, asked)
        meant += [counted] if counted is not None and counted not in meant else []
    return sorted([*digits, *meant], key=lambda one: one.start)


def _spelled(low: str, digits: Sequence[Number], asked: str) -> list[Number]:
    """Return the numbers in words, with a `one` that counts what the question counts where nothing else does."""
    spelled = [*number_words(low)]
    if not asked or number_counted(low, [*digits, *spelled], asked) is not None:
        return spelled
    one = one_counted(low, asked)
    if one is None or any(other.start == one.start for other in spelled):
        return spelled
    return sorted([*spelled, one], key=lambda number: number.start)


def _is_result(low: str, number: Number) -> bool:
    """Return whether a number in words is what a text ends with: `has to book six.`"""
    return _LAST_WORD.match(low, number.end) is not None and (
        _NO_RESULT.search(low, max(0, number.start - 30), number.start) is None
    )
