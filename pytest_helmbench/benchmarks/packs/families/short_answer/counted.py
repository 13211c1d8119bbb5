"""Numbers of the thing that a question counts (`How many cows`): the one with its word behind it, and none of it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from fractions import Fraction
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.text.numbers import Number
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import words

__all__ = ["number_counted", "number_in_a_word", "one_counted"]

_COUNTED = re.compile(
    r"(?<!\w)how many\s(?:(?:more|different|other|total|whole|full|of the)\s)?(?P<nouns>[^\W\d]+(?:\s[^\W\d]+)?)"
)
_BEHIND = re.compile(r"[\s-]*((?:[^\W\d]+\s){0,1}[^\W\d]+)")
_NONE = re.compile(
    r"\W*(?:none|nil|nought|zilch|no(?:t|ne)\s(?:a single one|one|any)|zero)(?!\w)|(?:n't|\snot)\shave\sany(?!\w)"
)
_HAS_NO = re.compile(
    r"(?<!\w)(?:no|zero|not a single|n't (?:have )?any|without any)\s(?:known\s|natural\s|such\s)?(?P<noun>[^\W\d]+)"
)
_ONE = re.compile(
    r"(?<![\w-])(?<!\bthis )(?<!\bthat )(?<!\beach )(?<!\bevery )(?<!\bno )(?<!\bthe )(?<!\bany )one(?![\w-]|\sof\s)"
)
_MOST_ONES = 20
_COUPLE = re.compile(
    r"(?:^\W*|(?<!\w)(?:is|are|has|have|had|was|were|of|just|only|exactly|about|takes?|needs?|makes?)\s)an?\s"
    r"(?:small |mere |tiny )?(?P<couple>pair|couple|trio)(?:\sof|$|(?=[\s.,;:]))"
)
"""`A pair of small ones`."""
_COUPLES = {"pair": 2, "couple": 2, "trio": 3}
_VERBS = word_set("does has is was")
_TIMES = {"once": 1, "twice": 2, "thrice": 3}
_HOW_OFTEN = re.compile(r"(?<!\w)how (?:many times|often)(?!\w)")
_OFTEN = re.compile(rf"(?<!\w)(?:{'|'.join(_TIMES)})(?!\w)")


def number_counted(low: str, found: Sequence[Number], asked: str) -> Number | None:
    """Return the only number of a statement that counts what the question counts; None for none or several.

    Args:
        low: The statement in lower case.
        found: Its numbers.
        asked: The question in lower case.
    """
    noun = _noun(asked)
    if noun is None:
        return None
    counted = []
    for number in found:
        behind = _BEHIND.match(low, number.end)
        if behind is not None and noun in {stem(word) for word in words(behind[1])}:
            counted.append(number)
    return counted[0] if len(counted) == 1 else None


def one_counted(low: str, asked: str) -> Number | None:
    """Return `one` where it counts what the question counts: `Earth has one moon`; None where none or several do.

    Args:
        low: The statement in lower case.
        asked: The question in lower case.
    """
    ones = [
        Number((Fraction(1),), found.start(), found.end()) for found in islice(_ONE.finditer(low), _MOST_ONES)
    ]
    return number_counted(low, ones, asked)


def number_in_a_word(low: str, asked: str) -> int | None:
    """Return the number that a statement without numbers says: 0 for `it has no moons`, 2 for `twice`, `a pair`."""
    if _HOW_OFTEN.search(asked) is not None:
        often = _OFTEN.findall(low)
        return _TIMES[often[0]] if len(often) == 1 else None
    noun = _noun(asked)
    if noun is None:
        return None
    if _NONE.match(low) is not None:
        return 0
    couples = [*_COUPLE.finditer(low)]
    if len(couples) == 1:
        return _COUPLES[couples[0]["couple"]]
    return 0 if any(stem(found["noun"]) == noun for found in _HAS_NO.finditer(low)) else None


def _noun(asked: str) -> str | None:
    """Return the stem of what a question counts; of `how many time zones` that of the second word."""
    found = _COUNTED.search(asked)
    if found is None:
        return None
    nouns = found["nouns"].split()
    plural = next((noun for noun in nouns if noun.endswith("s") and noun not in _VERBS), nouns[0])
    return stem(plural)
