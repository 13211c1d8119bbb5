"""Questions that name two values to choose from (`Which is larger, Ladoga or Onega?`): which one a reply ends at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.asked_about import MOST_CLAUSES, clauses, content
from pytest_helmbench.benchmarks.packs.families.short_answer.opposites import says_opposite
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials
from pytest_helmbench.benchmarks.packs.families.text.stems import stem
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, sentences, whole_places, words

__all__ = ["compared_number", "concludes_with_other"]

_OFFERED = re.compile(
    r"(?:[,:]|-|\sbetween)\s(?P<one>[^,:?]{1,60}?),?\s(?:or|and)\s(?P<other>[^,:?]{1,60})\?\W*$"
)
_OFFERED_FIRST = re.compile(
    r"^(?:do|does|did|is|are|was|were|can|could|will|has|have)\s(?P<one>(?:the\s|an?\s)?[\w-]{1,30}(?:\s[\w-]{1,30})?)\sor\s"
    r"(?P<other>(?:the\s|an?\s)?[\w-]{1,30})\s(?P<says>[^?]{3,200})\?\W*$",
    re.IGNORECASE,
)
"""`Do arteries or veins carry blood away from the heart?`"""
_SUBJECT = re.compile(
    r"^.{0,80}?(?<!\w)(?:is|are|was|were|has|have|had|does|do|did)\s|^\W*(?:which|what)\s\w+\s", re.IGNORECASE
)
_TURNS = re.compile(
    r"(?<!\w)(?:but|however|actually|in fact|in reality|yet|no|wait|rather|sorry|correction)(?!\w)"
)
_CLAUSE = re.compile(r"[,;]\s(?=(?:so|therefore|thus|hence)(?!\w))")
_CONCLUDES_LATER = re.compile(r"(?<!\w)(?:so|therefore|thus|hence)(?!\w)")
_CONCLUDES = re.compile(r"\W*(?:so|therefore|thus|hence|in conclusion|this means|that means)(?!\w)")


_COMPARES = re.compile(
    r"(?P<one>\S+)\s(?:(?:is|are|was|were)\s(?P<how>[^\d]{1,40}?)\sthan|(?P<sign>[<>]))\s(?P<other>\S+?)(?=[.,;:]?(?:\s|$))"
)
_MORE = re.compile(
    r"(?<!\w)(?:larger|largest|greater|greatest|bigger|biggest|higher|highest|more|most)(?!\w)"
)
_LESS = re.compile(r"(?<!\w)(?:smaller|smallest|lesser|less|least|lower|lowest|fewer)(?!\w)")


def compared_number(statement: str, question: str) -> str | None:
    """Return which of two numbers that a question offers a statement says it of: `9.9` of `9.11 is less than 9.9`.

    Args:
        statement: As written.
        question: As asked: `Which is larger, 9.11 or 9.9?`

    Returns:
        The number, folded; None where no two numbers are offered, or the statement does not compare them.
    """
    offered = _OFFERED.search(question)
    if offered is None:
        return None
    names = [folded(offered["one"]), folded(offered["other"])]
    wants = _direction(lowered(question))
    found = _COMPARES.search(folded(statement))
    if not wants or found is None or not all(name[:1].isdigit() for name in names):
        return None
    if sorted((found["one"], found["other"])) != sorted(names) or _TURNS.search(statement.lower()):
        return None
    says = _direction(found["how"] or {"<": "less", ">": "more"}[found["sign"]])
    return found["one" if says == wants else "other"] if says else None


def _direction(text: str) -> int:
    """Return 1 for a text that asks for or says more, -1 for less, 0 for neither or both; a denial turns it."""
    more, less = _MORE.search(text) is not None, _LESS.search(text) is not None
    return 0 if more is less else (1 if more else -1) * (-1 if denials(text) % 2 else 1)


def concludes_with_other(statement: str, accepted: Sequence[str], question: str) -> bool:
    """Return whether a statement says of the value that is not it what is asked: at its end (`So Onega is larger`), in
    a first sentence that has both (`Onega is larger than Ladoga`) or has nothing else (`Onega.`), or in a clause of it.

    Args:
        statement: As written.
        accepted: Folded.
        question: As asked.
    """
    offered = _OFFERED.search(question) or _OFFERED_FIRST.match(question)
    if offered is None:
        return False
    others = [
        one
        for one in map(folded, (offered["one"], offered["other"]))
        if not any(_is_same(one, name) for name in accepted)
    ]
    if len(others) != 1:
        return False
    said = [*islice(sentences(statement), MOST_CLAUSES)]
    first, last = said[0], _CLAUSE.split(said[-1])[-1]
    if not _is_turned(first, question) and _is_more_than(folded(first), others[0], accepted):
        return True
    if (
        folded(first) == others[0]
        and not first.endswith("?")
        and not _comes_back(statement[len(first) :], accepted)
    ):
        return True
    if _is_said_of(others[0], statement, accepted, question):
        return True
    if _CONCLUDES.match(lowered(last)) is None or _is_turned(last, question):
        return False
    text = folded(last)
    return _is_said(others[0], text) and not any(_is_said(one, text) for one in accepted)


def _is_said_of(other: str, statement: str, accepted: Sequence[str], question: str) -> bool:
    """Return whether a clause begins with the other value and says all that is asked, and nothing takes it back."""
    says = _predicate(question)
    for part in clauses(statement):
        text = folded(part)
        if not says or not text.startswith(f"{other} ") or any(_is_said(one, text) for one in accepted):
            continue
        if not says <= {stem(word) for word in words(text)} or " than " in text or _is_turned(part, question):
            continue
        return not _comes_back(statement.partition(part)[2], accepted)
    return False


def _predicate(question: str) -> frozenset[str]:
    """Return the stems of what a question that offers two values asks of them: `farther north`."""
    first = _OFFERED_FIRST.match(question)
    offered = _OFFERED.search(question)
    asks = first["says"] if first is not None else question[: None if offered is None else offered.start()]
    return frozenset(map(stem, content(asks if first is not None else _SUBJECT.sub("", asks, count=1))))


def _comes_back(rest: str, accepted: Sequence[str]) -> bool:
    """Return whether a rest names an accepted value behind a word that takes back what was said, or concludes."""
    low = lowered(rest)
    found = _TURNS.search(low) or _CONCLUDES_LATER.search(low)
    return found is not None and any(_is_said(one, folded(rest[found.end() :])) for one in accepted)


def _is_turned(sentence: str, question: str) -> bool:
    """Return whether a sentence denies something, or says the opposite of what the question asks."""
    return denials(lowered(sentence)) > 0 or says_opposite(sentence, words(lowered(question)))


def _is_more_than(text: str, other: str, accepted: Sequence[str]) -> bool:
    """Return whether a folded sentence says the question of the other value, and `than` an accepted one behind it."""
    first, than, behind = text.partition(" than ")
    return bool(than) and _is_said(other, first) and any(_is_said(one, behind) for one in accepted)


def _is_same(one: str, other: str) -> bool:
    return _is_said(one, other) or _is_said(other, one)


def _is_said(name: str, text: str) -> bool:
    return next(whole_places(text, name), None) is not None
