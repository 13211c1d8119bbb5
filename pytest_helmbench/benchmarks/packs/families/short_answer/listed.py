"""Lists within a sentence: all that an accepted answer lists, side by side and with nothing else beside it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import islice, pairwise

from pytest_helmbench.benchmarks.packs.families.short_answer.named_values import SENTENCE_WORDS
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import folded, whole_places, words

__all__ = ["said_as_list", "without_asides"]

_MOST_MEMBERS = 8
_MOST_PLACES = 20
_LONGEST_MEMBER = 3
_ASIDE = re.compile(r"(?<=[\w\"'*])\s*\((?![^()]*(?<!\w)(?:not|no|wrong|incorrect)(?!\w))[^()]{1,60}\)")
_TITLE = r"(?:(?:river|lake|mount|mr|mrs|dr|sir|president|king|queen|saint|st)\s)?"
_BETWEEN = re.compile(
    rf"\s*(?:,\s*(?:(?:and|&)\s)?|\s(?:and|&|\+|plus|and also|as well as)\s|/)(?:(?:the|an?|both)\s)?{_TITLE}"
)
_AND = re.compile(r"(?<!\w)(?:and|plus|as well as)(?!\w)|[&+/]")
_GOES_ON = re.compile(r"\s*(?:(?:,\s*)?(?:and|or|as well as|plus)\s|/)(?P<next>[\w'-]+(?:\s[\w'-]+){0,2})")
_SMALL = SENTENCE_WORDS | word_set("of the a an")
_LEADS = word_set(
    "in at on by during under for when while since after before as according of today thus so overall"
)
"""What a phrase before a list begins with: `In the air, nitrogen and oxygen`."""
_BEFORE = re.compile(
    r"(?:^|[,:;.]\s*)(?P<piece>[^,:;.]{1,60}?)\s*(?:,\s*(?:and\s)?|\sand\s)(?:(?:the|an?)\s)?$"
)


def without_asides(statement: str, answer: str) -> str:
    """Return a statement without short brackets behind words (`sodium (Na)`), unless they hold an answer."""
    if "(" not in statement:
        return statement
    return _ASIDE.sub(
        lambda found: found[0] if any(whole_places(folded(found[0]), answer)) else "",
        statement,
    )


def said_as_list(text: str, members: Sequence[str]) -> str | None:
    """Return where a folded text lists the members side by side, in any order; None where it does not.

    Args:
        text: Folded.
        members: Folded.
    """
    if not 1 < len(members) <= _MOST_MEMBERS:
        return None
    for start, _ in islice(whole_places(text, members[0]), _MOST_PLACES):
        run = _run_around(text, start, members)
        if run is not None:
            return text[run[0] : run[1]]
    return None


def _run_around(text: str, place: int, members: Sequence[str]) -> tuple[int, int] | None:
    """Return where the list begins and ends that the first member stands in; None where it is another one."""
    reach = sum(map(len, members)) + 24 * len(members)
    begin = max(0, place - reach)
    near = text[begin : place + reach]
    places = [
        min(whole_places(near, one), key=lambda found: abs(found[0] - (place - begin)), default=None)
        for one in members
    ]
    spans = sorted(span for span in places if span is not None)
    if len(spans) < len(members):
        return None
    gaps = [near[one[1] : other[0]] for one, other in pairwise(spans)]
    if not all(_BETWEEN.fullmatch(gap) is not None for gap in gaps):
        return None
    start, end = begin + spans[0][0], begin + spans[-1][1]
    if is_denied(text, start, end) or _is_longer(text, start, end, joined=_AND.search(gaps[-1]) is not None):
        return None
    return start, end


def _is_longer(text: str, start: int, end: int, *, joined: bool) -> bool:
    """Return whether a list goes on before or behind its place; one with `and` before its last member is at its end."""
    if not joined and text[end : end + 1] == ",":
        return True
    behind = _GOES_ON.match(text, end)
    if behind is not None and not SENTENCE_WORDS.intersection(words(behind["next"])):
        return True
    before = _BEFORE.search(text, max(0, start - 80), start)
    if before is None:
        return False
    piece = words(before["piece"])
    if not piece or piece[0] in _LEADS:
        return False
    small = [place for place, word in enumerate(piece) if word in _SMALL]
    return 0 < len(piece[small[-1] + 1 :] if small else piece) <= _LONGEST_MEMBER
