"""Questions that name two values to choose from (`Which is larger, Ladoga or Onega?`): which one a reply ends at."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice

from pytest_helmbench.benchmarks.packs.families.short_answer.asked_about import MOST_CLAUSES
from pytest_helmbench.benchmarks.packs.families.short_answer.opposites import says_opposite
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import denials
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, sentences, whole_places, words

__all__ = ["concludes_with_other"]

_OFFERED = re.compile(
    r"(?:[,:]|-|\sbetween)\s(?P<one>[^,:?]{1,60}?),?\s(?:or|and)\s(?P<other>[^,:?]{1,60})\?\W*$"
)
_CLAUSE = re.compile(r"[,;]\s(?=(?:so|therefore|thus|hence)(?!\w))")
_CONCLUDES = re.compile(r"\W*(?:so|therefore|thus|hence|in conclusion|this means|that means)(?!\w)")


def concludes_with_other(statement: str, accepted: Sequence[str], question: str) -> bool:
    """Return whether a statement says of the value that is not it what is asked: at its end (`So Onega is larger`), or
    in a first sentence that has both (`Onega is larger than Ladoga`).

    Args:
        statement: As written.
        accepted: Folded.
        question: As asked.
    """
    offered = _OFFERED.search(question)
    if offered is None:
        return False
    others = [
        one for one in map(folded, offered.groups()) if not any(_is_same(one, name) for name in accepted)
    ]
    if len(others) != 1:
        return False
    said = [*islice(sentences(statement), MOST_CLAUSES)]
    first, last = said[0], _CLAUSE.split(said[-1])[-1]
    if not _is_turned(first, question) and _is_more_than(folded(first), others[0], accepted):
        return True
    if _CONCLUDES.match(lowered(last)) is None or _is_turned(last, question):
        return False
    text = folded(last)
    return _is_said(others[0], text) and not any(_is_said(one, text) for one in accepted)


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
