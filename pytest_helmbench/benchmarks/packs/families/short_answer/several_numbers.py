"""Answers of two or more numbers in one form each: a range, a ratio, a set of solutions, however they are written.

`380-750 nm` is `between 380 and 750 nm`; `2:3` is `2 to 3`; `x = 2 and x = -2` is `±2`, in any order unless one is
asked for.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from itertools import islice, pairwise

from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.number_words import WRITTEN_NUMBERS, only_number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers, only_number
from pytest_helmbench.benchmarks.packs.families.text.plain import plain
from pytest_helmbench.benchmarks.packs.families.text.units import Unit, is_same_amount, unit_of

__all__ = ["same_numbers"]

_Amount = tuple[Number, Unit | None]

_MOST_TEXT = 600
_MOST_STARTS = 20
_ASIDE = re.compile(r"\s*\([^()]{0,100}\)")
_BEHIND_FIRST = r"\s*(?:[^\W\d][\w/^·²³]{0,14}(?:\sper\s\w{1,12})?|°[cf]?|%)?\s*"
_DIGITS = r"(?:\d[\d.,]*)?\d"
_ABOUT = r"(?:(?:about|approximately|around|roughly|nearly|some|~|≈)\s*)?[$€£]?\s*"
_TO = re.compile(rf"{_BEHIND_FIRST}(?:-|~|…|\.\.|(?<!\w)(?:up\s)?(?:to|until|till|through|bis)\s)\s*{_ABOUT}")
_BETWEEN = re.compile(rf"(?<!\w)between\s{_ABOUT}$")
_AND = re.compile(rf"{_BEHIND_FIRST}(?<!\w)and\s{_ABOUT}")
_ONE_RANGE = re.compile(rf"{_ABOUT}[-+]?{_DIGITS}{_BEHIND_FIRST}(?:-|to\s){_ABOUT}{_DIGITS}{_BEHIND_FIRST}")
_FACTOR = re.compile(r"\s?[a-z](?:\^\w+|[²³])?(?![\w/])")
"""A letter behind the first number: `3x^2 - 5` is no range, `5 m - 10 m` is one."""
_ASKS_FOR_RATIO = re.compile(r"(?<!\w)(?:ratios?|proportions?|odds|scale)(?!\w)")
_RATIO = re.compile(
    r"(?<![\w.,:/])(\d{1,9}(?:\.\d{1,9})?)\s?(?::|/|\sto\s)\s?(\d{1,9}(?:\.\d{1,9})?)(?![\w:/]|[.,]\d)"
)
_NUMBER = rf"\d{{1,9}}(?:\.\d{{1,9}})?|{'|'.join(WRITTEN_NUMBERS)}"
_NAMED = r"(?:\sparts?(?:\sof)?)?(?:\s(?P<{0}>[^\W\d]{{2,20}}))?"
_RATIO_OF_PARTS = re.compile(
    rf"(?<![\w.,:/-])(?P<first>{_NUMBER}){_NAMED.format('one')},?\s(?:to|and|for(?:\severy)?|there\s(?:is|are))"
    rf"\s(?P<second>{_NUMBER}){_NAMED.format('other')}(?![\w:/-]|[.,]\d)"
)
"""`five parts blue to three parts white`."""
_ASKS_FOR_LOWEST = re.compile(r"(?<!\w)(?:simplif\w+|simplest|lowest|reduced?)(?!\w)")
_ASKS_FOR_FACTORS = re.compile(r"(?<!\w)factor\w*(?!\w)")
_POWER = r"\d{1,9}(?:\^\{?\d{1,3}\}?)?"
_PRODUCT = re.compile(rf"(?<![\w.^]){_POWER}(?:\s?[*×·⋅x]\s?{_POWER})+(?![\w.^]\d)")
_FACTORS = re.compile(r"(\d+)(?:\^\{?(\d{1,3}))?")
_ASKS_FOR_ORDER = re.compile(
    r"(?<!\w)(?:order\w*|sort\w*|sequence|ascending|descending|respectively|first|next|last)(?!\w)"
)
_SET_START = re.compile(
    r"[:→⇒∈]|(?<!\w)(?:are|is|were|give|gives|giving|yields?|get|so|then|hence|thus|therefore|namely)(?!\w)\s*:?"
)
_BETWEEN_MEMBERS = re.compile(r"\s*(?:[,;](?!\d{3}(?!\d))\s*(?:and\s|or\s)?|\s(?:and|or)\s|&|∨)\s*")
_UNKNOWN = re.compile(r"(?:[a-z](?:_?\{?\d\}?)?\s*=\s*)")


def same_numbers(statement: str, answer: str, question: str, tolerance: float = 0.0) -> bool:
    """Return whether a statement gives the range, the ratio or the numbers that an accepted answer consists of.

    Args:
        statement: Plain.
        answer: As the row has it; one that is none of the three is met by nothing.
        question: As asked.
        tolerance: Of each number.
    """
    wanted, said, asked = lowered(plain(answer)), lowered(statement[-_MOST_TEXT:]), lowered(question)
    if _ASKS_FOR_RATIO.search(asked) is not None:
        return _same_ratio(said.replace("∶", ":"), wanted, asked)
    if _ASKS_FOR_FACTORS.search(asked) is not None and _PRODUCT.fullmatch(wanted.strip(" .")) is not None:
        return _same_product(said, wanted)
    if _ONE_RANGE.fullmatch(wanted.strip(" .")) is not None:
        return _same_range(said, wanted, tolerance)
    members = _members(wanted)
    return members is not None and _same_set(said, members, ordered=_ASKS_FOR_ORDER.search(asked) is not None)


def _same_ratio(said: str, wanted: str, asked: str) -> bool:
    one = _RATIO.fullmatch(wanted.strip(" ."))
    said = _ASIDE.sub("", said)
    found = [_terms(ratio) for ratio in _RATIO.finditer(said)] or [*_ratios_of_parts(said, asked)]
    if one is None or not found:
        return False
    mine, theirs = found[-1], _terms(one)
    exact = _ASKS_FOR_LOWEST.search(asked) is not None
    return mine == theirs if exact else mine[0] * theirs[1] == mine[1] * theirs[0] and mine[1] != 0


def _same_product(said: str, wanted: str) -> bool:
    """Return whether the last product of a text has the factors of another, in any order, as powers or written out."""
    found = _PRODUCT.findall(said)
    return bool(found) and _factors(found[-1]) == _factors(wanted)


def _factors(product: str) -> Counter[str]:
    factors: Counter[str] = Counter()
    for base, power in _FACTORS.findall(product):
        factors[base] += int(power or 1)
    return factors


def _ratios_of_parts(said: str, asked: str) -> Iterator[tuple[Fraction, Fraction]]:
    """Yield the ratios that a text gives by its parts, in the order in which the question names those."""
    for found in _RATIO_OF_PARTS.finditer(said):
        terms = _count(found["first"]), _count(found["second"])
        places = [asked.rfind(name or " ") for name in (found["one"], found["other"])]
        yield terms[::-1] if 0 <= places[1] < places[0] and found["one"] else terms


def _count(written: str) -> Fraction:
    number = only_number(written) or only_number_words(written)
    return Fraction(0) if number is None else number.values[0]


def _terms(found: re.Match[str]) -> tuple[Fraction, Fraction]:
    return Fraction(found[1]), Fraction(found[2])


def _same_range(said: str, wanted: str, tolerance: float) -> bool:
    """Return whether every range of a statement is the one that is wanted, in whatever unit."""
    one, found = next(_ranges(wanted), None), [*_ranges(said)]
    return one is not None and bool(found) and all(_same_ends(other, one, tolerance) for other in found)


def _ranges(low: str) -> Iterator[tuple[_Amount, _Amount]]:
    """Yield the ranges of a text; an end without a unit has the other one's."""
    text = _ASIDE.sub("", low)
    for first, last in pairwise(numbers(text)):
        link = text[first.end : last.start]
        between = _AND.fullmatch(link) is not None and _BETWEEN.search(text[: first.start]) is not None
        if between or _TO.fullmatch(link) is not None:
            units = unit_of(text, first), unit_of(text, last)
            factors = _factor(text, first), _factor(text, last)
            if factors[0] != factors[1] and (units[1] is None or (factors[0] and units[0] != units[1])):
                continue  # `3x^2 - 5` is a formula
            yield (first, units[0] or units[1]), (last, units[1])


def _factor(text: str, number: Number) -> str:
    """Return the letter behind a number that is multiplied with it, with its power; empty for none."""
    found = _FACTOR.match(text, number.end)
    return "" if found is None else found[0].strip()


def _same_ends(mine: tuple[_Amount, _Amount], theirs: tuple[_Amount, _Amount], tolerance: float) -> bool:
    return all(_same(one, other, tolerance) for one, other in zip(mine, theirs, strict=True))


def _same(mine: _Amount, theirs: _Amount, tolerance: float) -> bool:
    if mine[1] is None or theirs[1] is None:
        return theirs[0].equals(mine[0], tolerance)
    return is_same_amount(mine[0], mine[1], theirs[0], theirs[1], tolerance)


def _same_set(said: str, wanted: tuple[Fraction, ...], *, ordered: bool) -> bool:
    """Return whether a statement, or what one of its verbs or arrows leads to, is nothing but the wanted numbers."""
    starts = [0, *(found.end() for found in islice(_SET_START.finditer(said), _MOST_STARTS))]
    listed = (_members(said[start:]) for start in starts)
    found = next((members for members in listed if members is not None), None)
    if found is None:
        return False
    return found == wanted if ordered else {*found} == {*wanted}


def _members(text: str) -> tuple[Fraction, ...] | None:
    """Return the numbers that a text lists, `±2` as two; None where it is no list of numbers alone."""
    parts = _BETWEEN_MEMBERS.split(text.strip(" .!{}()[]\n"))
    found: list[Fraction] = []
    for part in parts:
        written = _UNKNOWN.sub("", part, count=1).strip(" (){}")
        both = written.startswith(("±", "+/-", "+-"))
        number = only_number(written.lstrip("±+/-").strip() if both else written)
        if number is None:
            return None
        found += [number.values[0], -number.values[0]] if both else [number.values[0]]
    return tuple(found) if len(found) > 1 else None
