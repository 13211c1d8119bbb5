"""Sure verdicts on free replies, told from those that are only guessed from words.

Sure to pass is a reply whose first sentence, or what stands before its colon or `because`, is an accepted entry, where
the rest denies, doubts and turns nothing; sure to fail in the same way by a rejected entry. Sure to fail is also a
single sentence of the very words of an accepted entry, but for a negation or for a number that is far from the entry's.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.free_response.tokens import Unit, is_numeric, unit
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of

__all__ = ["begins_with_entry", "begins_with_head", "is_misquoted"]

_TURNS = re.compile(
    r"(?<!\w)"
    + any_of(
        "but however although though actually wait myth unsure perhaps maybe might may rather instead correction or",
        "delete previous swap both other same opposite reverse contrary kidding joke fools made fiction hoax",
        "yet except unless sorry oops false wrong incorrect say says said claim claims believe believed think",
    )
    + r"(?!\w)|\?"
)
_HEAD_END = re.compile(r":\s|;\s|\s-\s|\sbecause\s")
_FEWEST_WORDS = 2
_FEWEST_HEAD_WORDS = 3
_FEWEST_OF_REASON = 4
_FAR = Fraction(20, 100)
_YEARS = range(1000, 2200)


def begins_with_entry(sentences: list[str], entries: Iterable[str], others: Iterable[str]) -> bool:
    """Return whether a reply begins with an entry as a sentence, or before a colon, and goes on in the same sense.

    What follows is read as an explanation where each sentence of it has a few words, and none that tells the entries
    of the other side.

    Args:
        sentences: Of the reply, folded.
        entries: Folded.
        others: Those of the other side, folded.
    """
    entries = [*entries]
    telling = {word for one in others for word in one.split()} - {
        word for one in entries for word in one.split()
    }
    if any(
        len(one.split()) < _FEWEST_OF_REASON or not telling.isdisjoint(one.split()) for one in sentences[1:]
    ):
        return False
    first, rest = sentences[0], " . ".join(sentences[1:])
    head = _HEAD_END.split(first, maxsplit=1)
    for entry in entries:
        length = len(entry.split())
        if first == entry and length >= _FEWEST_WORDS:
            return _goes_on(rest)
        if head[0] == entry and length >= _FEWEST_HEAD_WORDS:
            return _goes_on(f"{head[1]} . {rest}")
    return False


def begins_with_head(sentences: Sequence[str], entries: Iterable[str]) -> bool:
    """Return whether the first sentence is what an entry says before its colon: `Five` of `five: sight, hearing, …`."""
    return any(sentences[:1] == (_HEAD_END.split(entry)[0],) for entry in entries)


def is_misquoted(said: Unit, entries: Iterable[Unit]) -> bool:
    """Return whether a sentence has the words of an accepted entry, but for a negation or a number far from its own."""
    return any(_denies(said, entry) or _miscounts(said, entry) for entry in entries)


def _goes_on(rest: str) -> bool:
    """Return whether what follows an entry neither denies nor doubts anything."""
    return _TURNS.search(rest) is None and unit(rest).denials == 0


def _denies(said: Unit, entry: Unit) -> bool:
    mine, theirs = ([token for token in one.order if token != "not"] for one in (said, entry))
    return len(theirs) >= _FEWEST_WORDS and mine == theirs and said.denials % 2 != entry.denials % 2


def _miscounts(said: Unit, entry: Unit) -> bool:
    words = [[token for token in one.order if not is_numeric(token)] for one in (said, entry)]
    mine, theirs = said.numbers, entry.numbers
    if (
        words[0] != words[1]
        or not words[1]
        or len(mine) != len(theirs)
        or said.denials % 2 != entry.denials % 2
    ):
        return False
    return any(_are_far(Fraction(one), Fraction(other)) for one, other in zip(mine, theirs, strict=True))


def _are_far(one: Fraction, other: Fraction) -> bool:
    if one in _YEARS and other in _YEARS:
        return one != other
    return abs(one - other) > max(abs(one), abs(other)) * _FAR
