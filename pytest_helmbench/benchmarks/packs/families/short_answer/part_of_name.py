"""Accepted answers as parts of other names: `West Virginia`, `Lincoln's successor`."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import words

__all__ = ["is_side_of", "owns_another"]

_POSSESSIVE = re.compile(r"'s\s(?P<owned>\w+)(?:\s\w+){0,2}")
_ASKS_FOR_MAKER = re.compile(
    r"(?<!\w)(?:wrote|written|writer|author|compos\w+|paint\w+|direct\w+|sculpt\w+)(?!\w)"
)
_SIDE = re.compile(r"(?<!\w)(?P<side>(?:north|south|east|west)(?:ern)?|new|upper|lower)\s$")
_ASKS_FOR_PLACE = re.compile(
    r"(?<!\w)in (?:what|which) (?:[\w-]+ )?(?:country|state|nation|continent|province)(?!\w)"
)
_RELATIVES = word_set(
    "neighbour neighbours neighbor neighbors border borders",
    "wife husband son daughter brother sister father mother friend rival contemporary contemporaries successor teacher",
    "predecessor student pupil assistant mentor colleague partner cousin nephew uncle death lover",
)


def is_side_of(statement: str, text: str, place: tuple[int, int], question: str) -> bool:
    """Return whether a name is only a part of another one: `West Virginia`, but not `northern Arizona`."""
    side = _SIDE.search(text, max(0, place[0] - 12), place[0])
    if side is None or side["side"] in lowered(question) or f"{side['side'].title()} " not in statement:
        return False
    if "continent" in question:
        return False
    if side["side"].endswith("ern") and _ASKS_FOR_PLACE.search(question) is not None:
        return False
    return not side["side"].endswith("ern") or len(words(text)) <= len(words(text[place[0] : place[1]])) + 1


def owns_another(text: str, end: int, question: str) -> bool:
    """Return whether a value is named as the owner of something else than the question's: `Lincoln's successor`."""
    found = _POSSESSIVE.match(text, end)
    if found is None or found["owned"] in question or "whose" in question:
        return False
    if _ASKS_FOR_PLACE.search(question) is not None and _RELATIVES.isdisjoint(words(found[0])):
        return False  # what is in its capital is in it
    return not _RELATIVES.isdisjoint(words(found[0])) or _ASKS_FOR_MAKER.search(question) is None
