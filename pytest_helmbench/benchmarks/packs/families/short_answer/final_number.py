"""The number in a final statement of a short_answer reply."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from pytest_helmbench.benchmarks.packs.families.short_answer.asides import with_asked_aside
from pytest_helmbench.benchmarks.packs.families.short_answer.asked_about import asked_clause
from pytest_helmbench.benchmarks.packs.families.short_answer.counted import (
    number_counted,
    number_in_a_word,
)
from pytest_helmbench.benchmarks.packs.families.short_answer.explained import essence, without_number_asides
from pytest_helmbench.benchmarks.packs.families.short_answer.number_found import NumberFound
from pytest_helmbench.benchmarks.packs.families.short_answer.numbers_said import numbers_said
from pytest_helmbench.benchmarks.packs.families.text.calendar_words import without_dates
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.denial import is_denied
from pytest_helmbench.benchmarks.packs.families.text.number_words import HAS_NUMBER, WRITTEN_NUMBERS
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers, only_number
from pytest_helmbench.benchmarks.packs.families.text.unit_symbols import symbols_behind
from pytest_helmbench.benchmarks.packs.families.text.units import (
    Unit,
    asked_unit,
    is_convertible,
    is_only_given,
    is_same_amount,
    unit_of,
)
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import any_of
from pytest_helmbench.benchmarks.packs.families.text.wording import whole_places, words

__all__ = ["last_number"]

_TAIL = 2000
"""Characters of a statement, from its end, that numbers are looked for in."""
_JOINING = any_of("and/or and or und oder et ou y o e и или as_well_as nor")
_BARE_END = re.compile(r"\s*(?:[.,;:!)]|\Z)")
_PART_OF = re.compile(r"(?:of|from|for|than)\s[$€£]?$")
_BOUND = re.compile(r"(?:[<>≤≥]|≠)\s?=?\s?[-+]?\s?$")
_HEDGED = re.compile(
    r"(?:about|approximately|approx\.?|around|roughly|some|nearly|almost|circa|ca\.|~|≈|close to|just (?:over|under))"
    r"\s?(?:the\s)?[$€£]?\s?$"
)
_SCIENTIFIC = re.compile(r"-?\d\.\d{2,}\s?[x×*·⋅]\s?10\^\S+|-?\d\.\d{2,}e\S+")
"""Rounded, whatever is said of it: `2.998 × 10^8`."""
_LEAD = re.compile(
    r"\W*(?:(?:it|that|there|they|he|she)(?:'s|\sis|\sare|\shas|\swas|\swere)\s)?"
    r"(?:(?:about|approximately|approx\.?|around|roughly|some|nearly|almost|exactly|only)\s)?[~≈$€£\s]*"
)
_DESCRIBED = re.compile(r"(?:\s?[^\W\d][^\s\d,;:]*){0,3}\s*(?:[,;:]|\s-)\s")
_CONCLUDES = re.compile(
    r"(?<!\w)"
    + any_of(
        "so thus therefore hence total totals makes give gives equals equal altogether is are then sum answer final",
        "actually rather correction no result wait or left remain remains",
    )
    + r"(?!\w)"
)
_ABOUT = re.compile(
    r"[^\W\d]{0,12}\s*[,(]?\s*(?:or\s|which is\s|that is\s|i\.e\.\s)?\s*(?:≈|≃|~|about|approximately|roughly|around)\s*"
)
_LEADS_TO = re.compile(
    r"(?:after|since|because|when|if|as|once|with|by|given|subtracting|adding|taking)\s[^.,;]{1,120},\s[^.;]{0,80}?\d"
)
"""`After eating two, he has 10.`"""
_OF_WHICH = re.compile(r"(?<!\w)(?:of which|of them|including|plus)(?!\w)")
_UNKNOWN = r"(?:[a-z]\s?=\s?)?[$€£¥]?\s*"
_JOINED = re.compile(
    rf"\s*[^\W\d]{{0,12}}(?:/\w{{1,3}})?\s*(?:,?\s*(?:{_JOINING}|to|bis|until|through|up to)\s|-|~|/|&)\s*{_UNKNOWN}"
)
_COMMA = re.compile(rf"\s*[^\W\d]{{0,3}}\s*[,;]\s*{_UNKNOWN}")
_CHANGE = re.compile(
    r"(?:increas|ris|rose|grow|grew|decreas|f[ae]ll|drop|chang|went|goes|go|rais|reduc|jump|climb)\w*"
    r"[^.]{0,40}\sfrom\s"
)
_ONLY_VALUES = re.compile(r"[\s\d.,;/&$€£¥%()+-]|and|or|[a-z]\s?=")
_RANGE = re.compile(r"\s*[^\W\d]{0,12}\s*(?:-|~|to|bis|until|through)\s*[$€£¥]?\s*")
_WORKS_ON = re.compile(
    rf"(?<!\w)(?:{any_of('so thus therefore hence then but or to actually rather wait no i.e')}(?!\w)"
    r"|(?:giv|mak|leav|add|total|plus|minus)\w*)|[=*×]|\s-\s"
)
"""Behind a number that counts what is asked: another one may be meant."""
_GOES_ON = re.compile(rf"{_WORKS_ON.pattern}|(?<!\w)(?:of (?:which|whom|them|those|these))(?!\w)")
"""Behind a total: something else may be meant."""
_IN_TOTAL = re.compile(r"(?:\s[^\W\d]+){0,2}\s(?:in total|altogether|in all)(?!\w)")
_TOTAL_BEHIND = re.compile(
    rf"[,;]\s(?:(?:or|for|so|i\.e\.|which is|that is)\s)?[\d.,]{{0,20}}\d{_IN_TOTAL.pattern}"
)
"""`23 pairs, 46 in total`: it belongs to the clause before it."""
_ROUNDED_IN_OTHER_UNIT = Fraction(5, 1000)
_YEARS = range(1000, 2200)
_ASKS_FOR_YEAR = re.compile(
    r"(?<!\w)(?:what|which|in what|in which)\syear(?!\w)|^when\s(?:is|was|were|did)\s"
)
_ASKS_FOR_START = re.compile(
    r"(?<!\w)(?:begin|began|begun|start|started|born|founded|break out|broke out|open|opened)(?!\w)"
)
_ASKS_FOR_END = re.compile(r"(?<!\w)(?:end|ended|finish|finished|die|died|close|closed|cease|ceased)(?!\w)")
_SAYS = re.compile(r"\s(?:is|are|was|were|equals)\s|=")
_CHECK = re.compile(r"(?<=[.\n])\s*(?:check|verification|proof):\s[^\n]*$", re.IGNORECASE)
_CHECKS = re.compile(
    r"(?:you can |we can |to |let me |let's )?(?:check|verify|verification|proof|confirm|explanation|note)"
)
_PER = re.compile(r"\s?[^\W\d]{1,12}\s(?:an?|per|each)\s(?P<of>[^\W\d]{2,20})(?=\W*$|[,.;)])")
_ASKS_PER = re.compile(r"(?<!\w)(?:per|each|every|rate|speed|fast|price of (?:an?|one))(?!\w)")
_SPAN = re.compile(r"\s?(?:-|to|and|through|until)\s?")
_OR_A_WORD = re.compile(rf"(?<![\w-])(?:{'|'.join(WRITTEN_NUMBERS)}),?\sor\s$", re.IGNORECASE)
_OR_ANOTHER_WORD = re.compile(rf",?\sor\s(?:{'|'.join(WRITTEN_NUMBERS)})(?![\w-])", re.IGNORECASE)
"""`Seven or 8`: words for numbers are no numbers beside digits."""
_IN_FORMULA = re.compile(r"(?:[√∛]|\\?sqrt\s?[({]?|(?<![a-z])\\?(?:ln|log|sin|cos|tan)\s?[({]?)\s?$")
_FORMULA_BEHIND = re.compile(r"\s?(?:/\s?)?(?:π|pi(?!\w)|[√∛]|\\?sqrt)")
"""A part of `√5` or `5π` is not what the reply comes to."""
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_ASKED_SCALE = re.compile(rf"(?<!\w)(?:how many|in) ({'|'.join(_SCALES)})s?(?!\w)")
"""`How many thousand tonnes?`: 70,000 is 70, too."""
_WITH_NEXT_WORD = re.compile(r"[\d.,]*\d\s[^\W\d]{2,}")


def last_number(statement: str, question: str) -> NumberFound:
    """Return the number a statement ends in, or begins with where words that only describe it follow a comma.

    Not what stands in brackets behind it or explains it, nor a number that the question gives with the word behind it
    (`14 pens`) where there is another. Number words count where there are no digits.
    """
    asked = lowered(question)
    whole = with_asked_aside(
        _first_sentence(without_dates(statement[-_TAIL:], asked), question), asked_unit(asked)
    )
    text = essence(whole)
    first = next(iter(numbers_said(text)), None)
    if first is not None and not _begins_with(lowered(text), first):
        text = essence(_asked_part(whole, question, asked) or whole)
    low = lowered(text)
    found = [number for number in numbers_said(text, asked) if not number.uncertainty]
    given = [*numbers(asked)]
    if len(found) > 2 and _is_given_range(low, found, asked, given):
        del found[-2:]
    while len(found) > 1 and (
        _is_given(low, found[-1], asked)
        or _is_rate(low, found[-1], asked)
        or _is_repeated(low, found, given)
        or is_denied(low, found[-1].start, found[-1].end)
    ):
        found.pop()
    found = _years(_of_asked_unit(low, found, asked_unit(asked), asked), asked)
    if not found:
        said = number_in_a_word(low, asked)
        return NumberFound() if said is None else NumberFound(Number((Fraction(said),)), guess=True)
    last = _chosen(low, found, asked)
    if isinstance(last, NumberFound):
        return last
    if _IN_FORMULA.search(low, max(0, last.start - 8), last.start) or _FORMULA_BEHIND.match(low, last.end):
        return NumberFound()
    unit = unit_of(low, last)
    scale = None if last.scale else _ASKED_SCALE.search(asked)
    if scale is not None:
        last = replace(last, values=(*last.values, last.values[0] / _SCALES[scale[1]]))
    if last.scale and not any(spelling in words(asked) for spelling in _spellings(last.scale)):
        last = replace(last, values=last.values[:1])
    if is_denied(low, last.start, last.end):
        return NumberFound()
    bound = _BOUND.search(low[max(0, last.start - 4) : last.start]) is not None
    about = _HEDGED.search(low[max(0, last.start - 20) : last.start]) is not None
    about = about or _SCIENTIFIC.fullmatch(low, last.start, last.end) is not None
    symbols, _ = symbols_behind(low, last.end)
    written = low[last.start : last.end]
    return NumberFound(last, unit=unit, bound=bound, written=written, about=about, symbols=symbols)


def _chosen(low: str, found: Sequence[Number], asked: str) -> Number | NumberFound:
    """Return the number that a text gives as its answer; of several that it offers what is found of them."""
    last = found[-1]
    main = _main(low, found, asked)
    if main is not None:
        return main
    if len(found) > 1 and _is_rounded(low, found[-2], last):
        return _exact(low, found)
    if len(found) > 1 and not last.equals(found[-2]) and _is_joined(low, found):
        return found[-2] if _is_same_twice(low, found[-2], last) else _of_several(low, found, asked)
    if _OR_A_WORD.search(low, max(0, last.start - 30), last.start) or _OR_ANOTHER_WORD.match(low, last.end):
        return NumberFound(several=True)
    return last


def _of_several(low: str, found: Sequence[Number], asked: str) -> NumberFound:
    """Return the one of joined numbers that the question counts, or the year that it asks for; else the list."""
    first, last = found[-2:]
    ends = last if _RANGE.fullmatch(low[first.end : last.start]) is not None else None
    chosen = None if ends is None else _asked_year(asked, first, last)
    chosen = chosen or number_counted(low, found, asked)
    if chosen is not None:
        return NumberFound(chosen, written=low[chosen.start : chosen.end], guess=True)
    return NumberFound(ends, several=True, other_end=first, unit=unit_of(low, last))


def _main(low: str, found: Sequence[Number], asked: str) -> Number | None:
    """Return the number of several that is said to be the total, that alone counts what is asked, or that is first.

    None for none of these.
    """
    total = [(one, said.end()) for one in found if (said := _IN_TOTAL.match(low, one.end)) is not None]
    if len(found) > 1 and len(total) == 1 and _GOES_ON.search(low, total[0][1]) is None:
        return total[0][0]
    if len(found) > 1 and not any(map(str.isdigit, asked)):
        counted = number_counted(low, found, asked)
        if counted is not None and _WORKS_ON.search(low, counted.end) is None:
            return counted
    return found[0] if len(found) > 1 and _begins_with(low, found[0]) else None


def _asked_part(whole: str, question: str, asked: str) -> str | None:
    """Return the clause that speaks of what is asked, unless another one alone has a number in the unit asked for."""
    part, unit = asked_clause(without_number_asides(whole), question, has_value=HAS_NUMBER), asked_unit(asked)
    if (
        part is not None
        and _ASKS_FOR_YEAR.search(asked) is not None
        and not any(map(_is_year, numbers(part)))
    ):
        return None
    if part is not None and _TOTAL_BEHIND.match(lowered(whole.partition(part)[2])) is not None:
        return None
    if part is None or unit is None:
        return part
    low, low_part = lowered(whole), lowered(part)
    has_unit = any(unit_of(low_part, one) == unit for one in numbers(part))
    return part if has_unit or not any(unit_of(low, one) == unit for one in numbers(whole)) else None


def _asked_year(asked: str, first: Number, last: Number) -> Number | None:
    """Return the year that a question asks for, of the two that something began and ended in; None for none."""
    if not all(map(_is_year, (first, last))):
        return None
    begins, ends = _ASKS_FOR_START.search(asked), _ASKS_FOR_END.search(asked)
    if (begins is None) == (ends is None):
        return None
    return last if begins is None else first


def _is_repeated(low: str, found: Sequence[Number], given: Sequence[Number]) -> bool:
    """Return whether the last number is the question's, of which another one is said: `45 is 3/4 of 60`."""
    if _PART_OF.search(low, max(0, found[-1].start - 8), found[-1].start) is None:
        return False
    news = [number for number in found if not any(number.equals(one) for one in given)]
    return bool(news) and any(found[-1].equals(one) for one in given)


def _of_asked_unit(low: str, found: list[Number], asked: Unit | None, question: str) -> list[Number]:
    """Return the numbers up to the last one in a unit of the kind that is asked for; all where none has one."""
    if asked is None:
        return found
    units = [unit_of(low, one) for one in found]
    last = units[-1] if units else None
    if last not in (None, asked) and last.kind == asked.kind and is_only_given(question, asked):
        return found
    if len({unit for unit in units if unit is not None}) > 1 and asked in units:
        return [one for one, unit in zip(found, units, strict=True) if unit == asked]
    kinds = [unit is not None and unit.kind == asked.kind for unit in units]
    is_bare = _BARE_END.match(low, found[-1].end) is not None if found else True
    if not any(kinds) or kinds[-1] or is_bare or asked.kind == "money":  # `$34 for 2`
        return found
    return found[: len(kinds) - kinds[::-1].index(True)]


def _years(found: list[Number], asked: str) -> list[Number]:
    """Return the years alone where a year is asked for and there is one."""
    if _ASKS_FOR_YEAR.search(asked) is None:
        return found
    return [one for one in found if _is_year(one)] or found


def _is_year(number: Number) -> bool:
    return number.values[0].denominator == 1 and number.values[0] in _YEARS


def _restated(text: str, question: str) -> str | None:
    """Return the first sentence where it says the question again with a number, and the rest concludes nothing."""
    first, _, rest = text.partition(". ")
    given = [*numbers(lowered(question))]
    concludes = "=" in rest or _CONCLUDES.search(lowered(rest)) is not None
    goes_on = any(not any(number.equals(one) for one in given) for number in numbers(rest))
    concludes = concludes or ("=" in first and (goes_on or _LEADS_TO.match(lowered(rest)) is not None))
    if not given or not rest or _SAYS.search(first) is None or concludes:
        return None
    said = [*numbers(first)]
    has_all = all(any(one.equals(other) for other in said) for one in given)
    has_new = any(not any(one.equals(other) for other in given) for one in said)
    return first if has_all and has_new and not _counts_first(rest, first, lowered(question)) else None


def _counts_first(rest: str, first: str, asked: str) -> bool:
    """Return whether a rest has a number of what the question counts, and the first sentence has none."""
    counted = (number_counted(lowered(part), [*numbers(part)], asked) for part in (rest, first))
    return next(counted) is not None and next(counted) is None


def _first_sentence(text: str, question: str) -> str:
    """Return a text without a check at its end; the first sentence alone where it answers the question."""
    text = _CHECK.sub("", text)
    restated = _restated(text, question)
    if restated is not None:
        return restated
    first, _, rest = text.partition(". ")
    if rest and not first[:-1].endswith(".") and only_number(first) is not None and len(first) > 1:
        return first if _CHECKS.match(lowered(rest)) is not None else text
    return text


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
        (rest.startswith("leaving ") or len([word for word in words(rest) if not word[0].isdigit()]) > 1)
        and "=" not in rest
        and _CONCLUDES.search(rest) is None
    )


def _is_same_twice(low: str, one: Number, other: Number) -> bool:
    """Return whether two numbers are one amount in two units."""
    units = unit_of(low, one), unit_of(low, other)
    if units[0] is None or units[1] is None:
        return False
    if is_same_amount(other, units[1], one, units[0]):
        return True
    if units[0] == units[1] or units[0].kind != units[1].kind or not is_convertible(units[0]):
        return False
    value, same = other.values[0] * units[1].factor, one.values[0] * units[0].factor
    return abs(value - same) <= abs(same) * _ROUNDED_IN_OTHER_UNIT


def _is_rounded(low: str, exact: Number, rounded: Number) -> bool:
    """Return whether a number is only said to be about the one before it: `1/6 ≈ 16.7 %`."""
    if _ABOUT.fullmatch(low, exact.end, rounded.start) is None:
        return False
    return any(abs(one - other) <= abs(one) / 100 for one in exact.values[:1] for other in rounded.values)


def _exact(low: str, found: Sequence[Number]) -> Number:
    """Return the number that the last ones only round, in all its meanings: 4/36 of `4/36 ≈ 0.1111, about 11.11%`."""
    place, values = len(found) - 1, found[-1].values
    while place > 0 and _is_rounded(low, found[place - 1], found[place]):
        place -= 1
        values = found[place].values[:1] + values
    return replace(found[place], values=values)


def _is_given(low: str, number: Number, asked: str) -> bool:
    phrase = _WITH_NEXT_WORD.match(low, number.start)
    return phrase is not None and next(whole_places(asked, phrase[0]), None) is not None


def _is_rate(low: str, number: Number, asked: str) -> bool:
    """Return whether a number is said per something that the question does not speak of: `about two cents an acre`."""
    found = _PER.match(low, number.end)
    return found is not None and _ASKS_PER.search(asked) is None and found["of"] not in asked


def _is_given_range(low: str, found: Sequence[Number], asked: str, given: Sequence[Number]) -> bool:
    """Return whether the last two numbers are a range that the question gives: `64.5 % are from 18 to 64`."""
    if _SPAN.fullmatch(low[found[-2].end : found[-1].start]) is None:
        return False
    return any(
        one.equals(found[-2]) and other.equals(found[-1]) and _SPAN.fullmatch(asked[one.end : other.start])
        for one, other in pairwise(given)
    )


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
