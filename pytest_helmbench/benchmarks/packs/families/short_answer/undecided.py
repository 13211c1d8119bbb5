"""Failures of short_answer rows that no rule has read: the reply may say the accepted answer all the same.

So it is where the reply lists several answers; where it has the number, all words or a telling word of an accepted
answer, though not as its answer; where a number is asked for and it has none; and where yes or no is asked for and it
says neither. A failure is better founded where the reply has another number, or none of the answer's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import chain

from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.number_words import number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import numbers
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import FUNCTION_WORDS, folded, words

__all__ = ["is_undecided"]

_POLAR = word_set("yes no true false")
_SAYS_POLARITY = _POLAR | word_set("not")
_MOST_UNIT_WORDS = 2
"""An answer of a number and more words than these is a text that has a number in it."""


def is_undecided(row: ShortRow, accepted: Sequence[str], own: str) -> bool:
    """Return whether a reply that has failed may say an accepted answer in a way that no rule reads.

    Args:
        row: What was asked.
        accepted: Its answers, folded.
        own: All that the reply says.
    """
    text = folded(own)
    said = {*words(text)}
    if all(answer in _POLAR for answer in accepted):
        return _SAYS_POLARITY.isdisjoint(said)
    wanted = [_values(str(answer)) for answer in row.accepted]
    mine = _values(own)
    if any(values & mine for values in wanted):
        return True
    if all(wanted) and all(len(_letters(answer)) <= _MOST_UNIT_WORDS for answer in accepted):
        return not mine - _values(row.question)
    asked = {*words(folded(row.question))}
    telling = ({*_letters(answer)} - asked for answer in accepted)
    return not said.isdisjoint(chain.from_iterable(telling))


def _values(text: str) -> set[Fraction]:
    """Return all that the numbers of a text may mean, written in digits or in words."""
    found = chain(numbers(text), number_words(lowered(text)))
    return {value for number in found for value in number.values}


def _letters(text: str) -> list[str]:
    """Return the words of a folded text that are neither digits nor words of grammar."""
    return [word for word in words(text) if not word.isdigit() and word not in FUNCTION_WORDS]
