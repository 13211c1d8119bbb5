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
_CONCLUDES = re.compile(r"\W*(?:so|therefore|thus|hence|in conclusion|this means|that means)(?!\w)")


def concludes_with_other(statement: str, accepted: Sequence[str], question: str) -> bool:
    """Return whether the last sentence of a statement concludes (`So Onega is larger`) with the value that is not it.

    Args:
        statement: As written.
        accepted: Folded.
        question: As asked.
    """
    offered = _OFFERED.search(question)
    if offered is None:
        return False
    last = [*islice(sentences(statement), MOST_CLAUSES)][-1]
    low, text = lowered(last), folded(last)
    if _CONCLUDES.match(low) is None or denials(low) or says_opposite(last, words(lowered(question))):
        return False
    others = [
        one for one in map(folded, offered.groups()) if not any(_is_same(one, name) for name in accepted)
    ]
    return len(others) == 1 and _is_said(others[0], text) and not any(_is_said(one, text) for one in accepted)


def _is_same(one: str, other: str) -> bool:
    return _is_said(one, other) or _is_said(other, one)


def _is_said(name: str, text: str) -> bool:
    return next(whole_places(text, name), None) is not None
