"""The number in a final statement of a short_answer reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied
from pytest_helmbench.benchmarks.packs.families.text.number_words import number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers
from pytest_helmbench.benchmarks.packs.families.text.units import Unit, is_same_amount, unit_of
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of
from pytest_helmbench.benchmarks.packs.families.text.wording import whole_places, words

__all__ = ["NumberFound", "last_number"]

_TAIL = 2000
"""Characters of a statement, from its end, that numbers are looked for in."""
_JOINING = any_of("and/or and or und oder et ou y o e и или as_well_as nor")
_ASIDE = re.compile(r"(?<=[^\s(])\s*\([^()]*\)")
_EXPLANATION = re.compile(
    r"\s"
    + any_of(
        "because since when where which if after before given due using at_a out_of per compared versus rather_than",
        "instead_of not so_that including as for weil porque parce_que потому",
    )
    + r"\s|(?<=\S)\s*,?\s*因为|\sat\s(?=\d[\d.]*\s?(?:atm|bar|k?pa)(?!\w))"
)
_BOUND = re.compile(r"(?:[<>≤≥]|≠)\s?=?\s?[-+]?\s?$")
_LEAD = re.compile(
    r"\W*(?:(?:it|that|there|they|he|she)(?:'s|\sis|\sare|\shas|\swas|\swere)\s)?"
    r"(?:(?:about|approximately|approx\.?|around|roughly|some|nearly|almost|exactly|only)\s)?[~≈$€£\s]*"
)
_DESCRIBED = re.compile(r"(?:\s?[^\W\d][^\s\d,;]*){0,3}\s*(?:[,;]|\s-)\s")
_CONCLUDES = re.compile(
    r"(?<!\w)"
    + any_of(
        "so thus therefore hence total totals makes give gives equals equal altogether is are then sum answer final",
        "actually rather correction no result wait or leaving left remain remains",
    )
    + r"(?!\w)"
)
_ABOUT = re.compile(
    r"[^\W\d]{0,12}\s*,?\s*(?:or\s|which is\s|that is\s|i\.e\.\s)?\s*(?:≈|≃|~|about|approximately|roughly|around)\s*"
)
_OF_WHICH = re.compile(r"(?<!\w)(?:of which|of them|including|plus)(?!\w)")
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
        unit: Of the number; None for none that is known.
        bound: It stands behind `<`, `>` and the like: it only bounds the value.
    """

    number: Number | None = None
    several: bool = False
    unit: Unit | None = None
    bound: bool = False


def last_number(statement: str, question: str) -> NumberFound:
    """Return the number a statement ends in, or begins with where words that only describe it follow a comma.

    Not what stands in brackets behind it or explains it, nor a number that the question gives with the word behind it
    (`14 pens`) where there is another. Number words count where there are no digits.
    """
    text = _essence(statement[-_TAIL:])
    low = lowered(text)
    found = [number for number in _numbers(text) if not number.uncertainty]
    asked = lowered(question)
    while len(found) > 1 and _is_given(low, found[-1], asked):
        found.pop()
    if not found:
        return NumberFound()
    last = found[-1]
    if len(found) > 1 and _begins_with(low, found[0]):
        last = found[0]
    elif len(found) > 1 and _is_rounded(low, found[-2], last):
        last = replace(found[-2], values=found[-2].values[:1] + last.values)
    elif len(found) > 1 and not last.equals(found[-2]) and _is_joined(low, found):
        if not _is_same_twice(low, found[-2], last):
            return NumberFound(several=True)
        last = found[-2]
    unit = unit_of(low, last)
    if last.scale and not any(spelling in words(asked) for spelling in _spellings(last.scale)):
        last = replace(last, values=last.values[:1])
    if is_denied(low, last.start, last.end):
        return NumberFound()
    return NumberFound(
        last, unit=unit, bound=_BOUND.search(low[max(0, last.start - 4) : last.start]) is not None
    )


def _numbers(text: str) -> list[Number]:
    """Return the numbers of a text; those written as words where it has no digits."""
    return [*numbers(text)] or [*number_words(lowered(text))]


def _spellings(scale: str) -> tuple[str, ...]:
    return scale, scale.rstrip("s"), f"{scale}s"


def _begins_with(low: str, number: Number) -> bool:
    """Return whether a statement gives its number first, and words that describe it behind a comma."""
    if _LEAD.fullmatch(low, 0, number.start) is None:
        return False
    behind = _DESCRIBED.match(low, number.end)
    if behind is None:
        return False
    rest = low[behind.end() :]
    if _OF_WHICH.search(rest) is not None:
        return True
    return (
        len([word for word in words(rest) if not word[0].isdigit()]) > 1
        and "=" not in rest
        and _CONCLUDES.search(rest) is None
    )


def _is_same_twice(low: str, one: Number, other: Number) -> bool:
    """Return whether two numbers are one amount in two units."""
    units = unit_of(low, one), unit_of(low, other)
    return units[0] is not None and units[1] is not None and is_same_amount(other, units[1], one, units[0])


def _is_rounded(low: str, exact: Number, rounded: Number) -> bool:
    """Return whether a number is only said to be about the one before it: `1/6 ≈ 16.7 %`."""
    if _ABOUT.fullmatch(low, exact.end, rounded.start) is None:
        return False
    return any(abs(one - other) <= abs(one) / 100 for one in exact.values[:1] for other in rounded.values)


def _essence(text: str) -> str:
    """Return a statement without asides and explanations of its number."""
    if _SUM_BEHIND.fullmatch(text) is not None:
        text = text.partition("=")[0]
    without_asides = _ASIDE.sub("", text)
    first = next(iter(_numbers(without_asides)), None)
    if first is not None:
        text = without_asides
    else:
        first = next(iter(_numbers(text)), None)
    low = lowered(text)
    explained = None if first is None else _EXPLANATION.search(low, first.end)
    if first is not None and explained is not None and explained[0].strip() == "per" and unit_of(low, first):
        explained = _EXPLANATION.search(low, explained.end())
    return text if explained is None else text[: explained.start()]


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
