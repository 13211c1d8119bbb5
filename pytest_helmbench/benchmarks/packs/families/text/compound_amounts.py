"""Amounts in two or three units as one: `2 hours and 45 minutes` is `165 minutes`, `5 ft 11 in` is `71 inches`."""

from __future__ import annotations

import re
from fractions import Fraction
from functools import partial

from pytest_helmbench.benchmarks.packs.families.text.number_words import WRITTEN_NUMBERS, number_words
from pytest_helmbench.benchmarks.packs.families.text.numbers import only_number

__all__ = ["has_parts", "with_clock_as_minutes", "with_one_unit"]

_VALUE = (
    rf"(?:\d{{1,6}}(?:\.\d{{1,6}})?|(?:{'|'.join(WRITTEN_NUMBERS)})(?:-(?:{'|'.join(WRITTEN_NUMBERS)}))?)"
)
_JOIN = r"\s?,?\s?(?:and\s)?"


_PARTS_IN_WORDS = {
    "a half": "1/2",
    "a quarter": "1/4",
    "three quarters": "3/4",
    "a third": "1/3",
    "two thirds": "2/3",
}
_AND_PART = re.compile(
    rf"(?<![\w.,/])(?P<whole>\d{{1,6}})\sand\s(?P<part>{'|'.join(_PARTS_IN_WORDS)})(?!\w)", re.IGNORECASE
)
_NOUNS = (
    "hour|day|week|year|month|minute|mile|metre|meter|kilometre|kilometer|litre|liter|pound|kilo|dollar|euro"
)
_ONE_AND = re.compile(
    rf"(?<![\w-])(?P<one>an?|one|{'|'.join(WRITTEN_NUMBERS[2:13])}|\d{{1,4}})\s(?P<unit>{_NOUNS})s?\sand\s"
    rf"(?P<part>{'|'.join(_PARTS_IN_WORDS)})(?!\w)",
    re.IGNORECASE,
)
"""`an hour and a half`."""
_PART_OF_ONE = re.compile(
    rf"(?<![\w-])(?P<part>half|(?:three|two)-(?:quarter|third)s|{'|'.join(_PARTS_IN_WORDS)})\s(?:of\s)?(?:an?|one)\s(?P<unit>{_NOUNS})(?![\w-])",
    re.IGNORECASE,
)
"""`half an hour`, `three quarters of an hour`."""
_HAS_PART = re.compile("half|quarter|third", re.IGNORECASE)
_HALF_DOZEN = re.compile(r"(?<![\w-])half(?:\sa\s|[\s-])dozen(?!\w)", re.IGNORECASE)
_ONE_AND_MORE = re.compile(
    rf"(?<![\w-])an?\s(?P<unit>{_NOUNS})(?=,?\sand\s(?:\d|(?:{'|'.join(WRITTEN_NUMBERS)})(?!\w)))",
    re.IGNORECASE,
)
"""`an hour and 20 minutes`."""
_PENCE = re.compile(
    r"(?<![\w.,])(?:£\s?)?(?P<pounds>\d{1,6})(?:\spounds?)?\s?,?\s?(?:and\s)?(?P<pence>\d\d)\s?(?:pence|p)(?!\w)",
    re.IGNORECASE,
)
"""`6 pounds and 35 pence`."""


def _parts(*units: tuple[str, str]) -> re.Pattern[str]:
    """Return the pattern of amounts in a unit and one or more smaller ones."""
    first, *rest = (rf"(?P<{name}>{_VALUE})\s?-?(?:{spellings})(?!\w)" for name, spellings in units)
    behind = "".join(rf"(?:{_JOIN}{one})?" for one in rest)
    return re.compile(rf"(?<![\w.,])(?:{first}{behind})", re.IGNORECASE)


_KILO = "kilo"
_DAYS, _HOURS, _MINUTES = ("a", "days?|d"), ("b", "hours?|hrs?|h"), ("c", "minutes?|mins?|m")
_KINDS: tuple[tuple[re.Pattern[str], tuple[int, ...], tuple[str, ...]], ...] = (
    (_parts(_HOURS, _MINUTES, ("d", "seconds?|secs?|s")), (3600, 60, 1), ("hours", "minutes", "seconds")),
    (_parts(_MINUTES, ("d", "seconds?|secs?|s")), (60, 1), ("minutes", "seconds")),
    (_parts(_DAYS, _HOURS, _MINUTES), (1440, 60, 1), ("days", "hours", "minutes")),
    (_parts(("a", "feet|foot|ft|'"), ("b", 'inches|inch|in|"')), (12, 1), ("feet", "inches")),
    (_parts(("a", "miles?"), ("b", "yards?|yds?")), (1760, 1), ("miles", "yards")),
    (_parts(("a", _KILO + "met(?:er|re)s?|km"), ("b", "met(?:er|re)s?|m")), (1000, 1), ("km", "metres")),
    (_parts(("a", "met(?:er|re)s?|m"), ("b", "centimet(?:er|re)s?|cm")), (100, 1), ("metres", "cm")),
    (_parts(("a", _KILO + "gram(?:me)?s?|kg"), ("b", "gram(?:me)?s?|g")), (1000, 1), ("kg", "grams")),
    (_parts(("a", "dollars?|euros?"), ("b", "cents?")), (100, 1), ("dollars", "cents")),
    (_parts(("a", "pounds?|lbs?"), ("b", "ounces?|oz")), (16, 1), ("pounds", "ounces")),
)
_SHORT_CLOCK = re.compile(r"(?<![\w.,])(\d{1,3})\s?h\s?([0-5]\d)(?![\w:]|[.,]\d)")
"""`2h15`."""
_UNITS = r"days?|d|hours?|hrs?|h|minutes?|mins?|m|feet|foot|ft|'|miles?|dollars?|euros?|pounds?|lbs?|km|kg"
_FIRST = re.compile(
    rf"(?<![\w.,]){_VALUE}\s?-?(?:{_UNITS}|kilo(?:met(?:er|re)|gram(?:me)?)s?|met(?:er|re)s?)(?!\w)",
    re.IGNORECASE,
)
"""What every one of them begins with, so that one look rules out them all."""
_CLOCK = re.compile(r"\s*(?P<hours>\d{1,3}):(?P<minutes>[0-5]\d)\s?(?:hours|hrs|h)?\.?\s*", re.IGNORECASE)


def with_one_unit(text: str) -> str:
    """Return a text whose amounts in several units are in the smallest that each of them has."""
    if _HAS_PART.search(text) is not None:
        text = _HALF_DOZEN.sub("six", text)
        text = _AND_PART.sub(lambda found: f"{found['whole']} {_PARTS_IN_WORDS[found['part'].lower()]}", text)
        text = _PART_OF_ONE.sub(_part_of_one, _ONE_AND.sub(_one_and_part, text))
    text = _ONE_AND_MORE.sub(r"1 \g<unit>", text) if " and " in text else text
    text = _PENCE.sub(r"£\g<pounds>.\g<pence>", text) if "pence" in text or "£" in text else text
    if _FIRST.search(text) is None:
        return text
    for pattern, factors, names in _KINDS:
        text = pattern.sub(partial(_joined, factors=factors, names=names), text)
    return text


def _one_and_part(found: re.Match[str]) -> str:
    one = found["one"].lower()
    whole = Fraction(1) if one in ("a", "an") else _amount(one)
    part = _PARTS_IN_WORDS[found["part"].lower()]
    return found[0] if whole is None else f"{whole} {part} {found['unit']}s"


def _part_of_one(found: re.Match[str]) -> str:
    return f"{_PARTS_IN_WORDS.get(found['part'].lower().replace('-', ' '), '1/2')} {found['unit']}"


def has_parts(text: str) -> bool:
    """Return whether a text is an amount in several units and nothing else."""
    return with_one_unit(text.strip(" .")) != text.strip(" .") and len(with_one_unit(text).split()) == 2


def with_clock_as_minutes(text: str) -> str:
    """Return a text with `2h15` in minutes, or hours and minutes with a colon where it is nothing else."""
    text = _SHORT_CLOCK.sub(lambda found: f"{60 * int(found[1]) + int(found[2])} minutes", text)
    found = _CLOCK.fullmatch(text)
    return text if found is None else f"{60 * int(found['hours']) + int(found['minutes'])} minutes"


def _joined(found: re.Match[str], factors: tuple[int, ...], names: tuple[str, ...]) -> str:
    given = [*found.groups()]
    least = max(place for place, value in enumerate(given) if value is not None)
    if sum(value is not None for value in given) < 2:
        return found[0]
    total = Fraction(0)
    for factor, value in zip(factors, given, strict=True):
        amount = Fraction(0) if value is None else _amount(value)
        if amount is None:
            return found[0]
        total += amount * factor
    total /= factors[least]
    return f"{total.numerator if total.denominator == 1 else float(total)} {names[least]}"


def _amount(written: str) -> Fraction | None:
    number = only_number(written) or next(iter(number_words(written.lower())), None)
    return None if number is None else number.values[0]
