"""Accepted answers as parts of other names: `West Virginia`, `Lincoln's successor`."""

from __future__ import annotations

import re

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import words

__all__ = ["is_beside"]

_POSSESSIVE = re.compile(r"'s\s(?P<owned>\w+)(?:\s\w+){0,2}")
_ASKS_FOR_MAKER = re.compile(
    r"(?<!\w)(?:wrote|written|writer|author|compos\w+|paint\w+|direct\w+|sculpt\w+)(?!\w)"
)
_SIDE = re.compile(r"(?<!\w)(?P<side>(?:north|south|east|west)(?:ern)?|new|upper|lower)\s$")
_ASKS_FOR_PLACE = re.compile(
    r"(?<!\w)in (?:what|which) (?:[\w-]+ )?(?:country|state|nation|continent|province)(?!\w)"
)
_LIKE = re.compile(
    r"(?:^|[.;:,!?]\s)(?:but\s|just\s|much\s)?(?:like|similar\sto|as\swith|in\scontrast\sto|compared\s(?:to|with))\s"
    r"(?:the\s|an?\s)?$"
)
"""`Like malaria, it is spread by mosquitoes`."""
_ASKS_FOR_NOW = re.compile(
    r"^(?!.*(?<!\w)(?:was|were|did|had|former\w*|original\w*|first|replaced|[12]\d{3})(?!\w)).*(?<!\w)(?:is|are|does|do)\s",
    re.DOTALL,
)
_IS_OVER = re.compile(
    r"\s(?:was|were|(?:has|have|had)\sbeen)\s(?:\w+ly\s|later\s|then\s)?"
    r"(?:withdrawn|abolished|replaced|superseded|discontinued|dropped|scrapped|phased\sout|demolished|dissolved)(?!\w)"
)
_RELATIVES = word_set(
    "neighbour neighbours neighbor neighbors border borders",
    "wife husband son daughter brother sister father mother friend rival contemporary contemporaries successor teacher",
    "predecessor student pupil assistant mentor colleague partner cousin nephew uncle death lover",
)


def is_beside(statement: str, text: str, place: tuple[int, int], question: str) -> bool:
    """Return whether a folded text names a value beside what is asked for: a part of a name, an owner, a comparison.

    Nor is what was replaced or withdrawn the answer to what there is now.

    Args:
        statement: As written.
        text: Folded.
        place: Of the value in it.
        question: As asked.
    """
    asked = lowered(question)
    if _is_side_of(statement, text, place, question) or _owns_another(text, place[1], asked):
        return True
    if (
        text[place[1] : place[1] + 1] == ","
        and _LIKE.search(text, max(0, place[0] - 40), place[0]) is not None
    ):
        return True
    return _ASKS_FOR_NOW.search(asked) is not None and _IS_OVER.match(text, place[1]) is not None


def _is_side_of(statement: str, text: str, place: tuple[int, int], question: str) -> bool:
    """Return whether a name is only a part of another one: `West Virginia`, but not `northern Arizona`."""
    side = _SIDE.search(text, max(0, place[0] - 12), place[0])
    if side is None or side["side"] in lowered(question) or f"{side['side'].title()} " not in statement:
        return False
    if "continent" in question:
        return False
    if side["side"].endswith("ern") and _ASKS_FOR_PLACE.search(question) is not None:
        return False
    return not side["side"].endswith("ern") or len(words(text)) <= len(words(text[place[0] : place[1]])) + 1


def _owns_another(text: str, end: int, question: str) -> bool:
    """Return whether a value is named as the owner of something else than the question's: `Lincoln's successor`."""
    found = _POSSESSIVE.match(text, end)
    if found is None or found["owned"] in question or "whose" in question:
        return False
    if _ASKS_FOR_PLACE.search(question) is not None and _RELATIVES.isdisjoint(words(found[0])):
        return False  # what is in its capital is in it
    return not _RELATIVES.isdisjoint(words(found[0])) or _ASKS_FOR_MAKER.search(question) is None
