"""Values in a final statement of a short_answer reply: its number, and whether it names several values."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of, word_set
from pytest_helmbench.benchmarks.packs.families.text.wording import (
    FUNCTION_WORDS,
    folded,
    sentences,
    whole_places,
    words,
)

__all__ = ["NumberFound", "last_number", "names_several"]

_TAIL = 2000
"""Characters of a statement, from its end, that numbers are looked for in."""
_VALUE_WORDS = 4
_SPRAY_WORDS = 4
_MOST_PLACES = 50
_MASK = "§"

_JOINING = any_of("and/or and or und oder et ou y o e и или as_well_as nor")
_SEPARATED = re.compile(
    rf"\s*[,;、，|]\s*(?:{_JOINING}\s+)?|\s+{_JOINING}\s+|\s*&\s*|(?<=[^\W\d]|{_MASK})\s*/\s*(?=[^\W\d]|{_MASK})"
    r"|\s*(?:和|或|以及|及)\s*"
)
_LABELLED = re.compile(rf"\A[^{_MASK}:]{{1,40}}:\s")
_OR_AFTER = re.compile(
    r"\s*,?\s*(?:or|oder|ou|или|或)\s*(?!(?:simply|rather|more|in other|else|so|just|less)\b)(?P<other>\S+)"
)
_OR_BEFORE = re.compile(r"(?P<other>\S+)\s*,?\s*(?:\bor|\boder|\bou|\bили|或)\s*(?:the\s|an?\s)?$")
_HEDGE = re.compile(rf"(?<!\w){any_of('could might may possibly perhaps maybe')}(?!\w)")

_FILLER = word_set(
    "of course obviously definitely certainly probably surely yes indeed likely clearly simply exactly please thanks"
)

_ASIDE = re.compile(r"(?<=[^\s(])\s*\([^()]*\)")
_EXPLANATION = re.compile(
    r"\s"
    + any_of(
        "because since when where which if after before given due using at_a out_of per compared versus rather_than",
        "instead_of not so_that as for weil porque parce_que потому",
    )
    + r"\s|(?<=\S)\s*,?\s*因为"
)
_UNKNOWN = r"(?:[a-z]\s?=\s?)?[$€£¥]?\s*"
_JOINED = re.compile(
    rf"\s*[^\W\d]{{0,12}}\s*(?:,?\s*(?:{_JOINING}|to|bis|until|through|up to)\s|-|~|/|&)\s*{_UNKNOWN}"
)
_COMMA = re.compile(rf"\s*[^\W\d]{{0,3}}\s*[,;]\s*{_UNKNOWN}")
_CHANGE = re.compile(
    r"(?:increas|ris|rose|grow|grew|decreas|f[ae]ll|drop|chang|went|goes|go|rais|reduc|jump|climb)\w*"
    r"[^.]{0,40}\sfrom\s"
)
_ONLY_VALUES = re.compile(r"[\s\d.,;/&$€£¥%()+-]|and|or|[a-z]\s?=")
_SUM_BEHIND = re.compile(r"\s*[$€£]?[-+]?[\d.,]+\s*=\s*[\d\s.,()]*[-+*/×÷·][\d\s.,()+*/×÷·-]*\.?\s*")
_WITH_NEXT_WORD = re.compile(r"[\d.,]*\d\s[^\W\d]{2,}")


@dataclass(frozen=True, slots=True)
class NumberFound:
    """The number that a statement ends in.

    Args:
        number: None when there is none, when it is denied, or one of several.
        several: It stands in a list or a range.
    """

    number: Number | None = None
    several: bool = False


def last_number(statement: str, question: str) -> NumberFound:
    """Return the number a statement ends in.

    Not what stands in brackets behind it or explains it, nor a number that the question gives with the word behind it
    (`14 pens`) where there is another.
    """
    low = _essence(lowered(statement[-_TAIL:]))
    found = [number for number in numbers(low) if not number.uncertainty]
    asked = lowered(question)
    while len(found) > 1 and _is_given(low, found[-1], asked):
        found.pop()
    if not found:
        return NumberFound()
    last = found[-1]
    if last.scale and last.scale.rstrip("s") not in asked:
        last = replace(last, values=last.values[:1])
    if len(found) > 1 and not last.equals(found[-2]) and _is_joined(low, found):
        return NumberFound(several=True)
    return NumberFound() if is_denied(low, last.start, last.end) else NumberFound(last)


def _essence(low: str) -> str:
    """Return a statement without asides and explanations of its number."""
    if _SUM_BEHIND.fullmatch(low) is not None:
        low = low.partition("=")[0]
    without_asides = _ASIDE.sub("", low)
    first = next(numbers(without_asides), None)
    if first is not None:
        low = without_asides
    else:
        first = next(numbers(low), None)
    explained = None if first is None else _EXPLANATION.search(low, first.end)
    return low if explained is None else low[: explained.start()]


def _is_given(low: str, number: Number, asked: str) -> bool:
    phrase = _WITH_NEXT_WORD.match(low, number.start)
    return phrase is not None and next(whole_places(asked, phrase[0]), None) is not None


def _is_joined(low: str, found: Sequence[Number]) -> bool:
    """Return whether the last number stands in a list or a range with the one before it."""
    between = low[found[-2].end : found[-1].start]
    if _JOINED.fullmatch(between) is not None:
        return " to " not in between or _CHANGE.search(low, 0, found[-2].start) is None
    if _COMMA.fullmatch(between) is None:
        return False
    if not _ONLY_VALUES.sub("", low).strip():
        return True
    return len(found) > 2 and _COMMA.fullmatch(low[found[-3].end : found[-2].start]) is not None


def names_several(text: str, accepted: Collection[str], question: str) -> bool:
    """Return whether a statement names other values beside an accepted one: a list, alternatives, a spray of words.

    Args:
        text: Folded.
        accepted: Folded answers, of which the text holds one at least.
        question: As asked.
    """
    masked = text
    for answer in sorted(accepted, key=len, reverse=True):
        for start, end in reversed([*whole_places(masked, answer)][:_MOST_PLACES]):
            masked = f"{masked[:start]}{_MASK}{masked[end:]}"
    question = folded(question)
    asked = frozenset(words(question))
    elements = [
        value
        for element in _SEPARATED.split(masked)
        if (value := _LABELLED.sub("", element).strip(" .:'\"()")) and not _FILLER.issuperset(words(value))
    ]
    others = [element for element in elements if _MASK not in element]
    if others and all(map(_is_valuelike, elements)):
        in_question = any(next(whole_places(question, answer), None) is not None for answer in accepted)
        return in_question or len(others) > 1 or not _qualifies(masked, others[0], asked)
    return _has_alternative(masked) or _is_spray(masked, asked)


def _is_valuelike(element: str) -> bool:
    found = words(element.replace(_MASK, ""))
    most = 1 if _MASK in element else _VALUE_WORDS
    return len(found) <= most and not any(word in FUNCTION_WORDS for word in found)


def _qualifies(masked: str, element: str, asked: Collection[str]) -> bool:
    """Return whether an element only describes the value before it: words of the question, or `a city`."""
    if re.search(rf"{_MASK}\W*,\s*{re.escape(element)}", masked) is None:
        return False
    return element.startswith(("a ", "an ")) or all(
        word in asked or word in ("the", "of") for word in words(element)
    )


def _has_alternative(masked: str) -> bool:
    """Return whether another value is offered in place of the accepted one: `either X or Y`, `maybe X. Maybe Y.`"""
    place = masked.find(_MASK)
    after = _OR_AFTER.match(masked, place + 1)
    before = _OR_BEFORE.search(masked, max(0, place - 60), place)
    if any(found is not None and _MASK not in found["other"] for found in (after, before)):
        return True
    guesses = [sentence for sentence in sentences(masked) if _HEDGE.search(sentence) is not None]
    return len({_MASK in sentence for sentence in guesses}) > 1


def _is_spray(masked: str, asked: Collection[str]) -> bool:
    """Return whether words are strung together without any that make a sentence."""
    said = words(masked.replace(_MASK, ""))
    if any(word in FUNCTION_WORDS or word in ("the", "of", "to", "and") for word in said):
        return False
    return (
        sum(word not in asked for word in said) >= _SPRAY_WORDS and re.search(r"[.,:;(\"-]", masked) is None
    )
