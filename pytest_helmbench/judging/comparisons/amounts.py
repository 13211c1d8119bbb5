"""Numbers as replies write them, with the unit behind: exact values, in digits or in words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from fractions import Fraction
from functools import lru_cache

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.judging.comparisons.plain import folded

_DIGITS = r"(?:(?!0\d)(?:\d{1,3}(?:[, '_]\d{3})+(?!\d)|\d+))"
_AMOUNT = re.compile(
    r"(?:(?:about|approximately|around|roughly|approx\.?|ca\.?|circa|=|≈|~) ?)?"
    r"(?P<sign>[-+](?=[\d.$€£]))?(?:(?P<money>[$€£¥]|usd|eur|gbp) ?)?(?P<minus>-)?"
    rf"(?:(?:(?P<whole>\d+) )?(?P<above>\d+) ?/ ?(?P<below>\d+)|(?P<number>{_DIGITS}?(?:\.\d+)?))"
    r"(?: ?(?:e|\* ?10 ?\^ ?)\(?(?P<power>[-+]?\d{1,3})\)?)?"
    r"(?: ?(?P<scale>thousand|million|billion|trillion|dozen)(?!\w))?"
    r"(?P<percent> ?(?:%|percent|per cent)(?!\w))?(?P<unit> ?[^\d\s].*|)"
)
_POWER_OF_TEN = re.compile(r"(?<![\d.*])(?<!\* )10\^(?=-?\d)")
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12, "dozen": 12}
_SHARES = {
    "half": "1/2",
    "one half": "1/2",
    "one third": "1/3",
    "two thirds": "2/3",
    "one quarter": "1/4",
    "three quarters": "3/4",
}
_NO_UNIT = re.compile(r"(?<!\^)\d|[=<>?;,:]|(?<!\w)(?:or|and|to|not|of|than|more|less|is|was)(?!\w)")
_MOST_CHARACTERS = 120
_MOST_UNIT_WORDS = 4
_UNITS = """
m, metre, meter | km, kilometre, kilometer | cm, centimetre, centimeter | mm, millimetre, millimeter
nm, nanometre, nanometer | mi, mile | ft, foot, feet | in, inch, inche | yd, yard | g, gram, gramme
kg, kilogram, kilo | mg, milligram | t, tonne, ton | lb, lbs, pound | oz, ounce | s, sec, second
min, minute | h, hr, hrs, hour | d, day | wk, week | yr, year | ms, millisecond | l, litre, liter
ml, millilitre, milliliter | m^2, sq m, square metre, square meter
km^2, sq km, square kilometre, square kilometer | cm^2, sq cm, square centimetre, square centimeter
cm^3, cubic centimetre, cubic centimeter | mm^2, square millimetre | m^3, cubic metre, cubic meter
°c, c, degree celsius, celsius, degree centigrade | °f, f, degree fahrenheit, fahrenheit | k, kelvin
°, degree | m/s, metre per second, meter per second
km/h, kph, kmh, kilometre per hour, kilometer per hour, kilometre an hour | mph, mi/h, mile per hour
km/s, kilometre per second, kilometer per second | n, newton | j, joule | w, watt | kw, kilowatt | v, volt
a, amp, ampere | hz, hertz | pa, pascal | kcal, kilocalorie | mol, mole | b, byte | kb, kilobyte
mb, megabyte | am, a.m | pm, p.m | $, usd, dollar, us dollar | €, eur, euro | £, gbp, pound sterling
¥, jpy, yen
"""
_SHORTEST_PLURAL = 4
_MOST_WORDS = 3
_MONTH = r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DAY = r"\d{1,4}(?:st|nd|rd|th)?|of|(?:mon|tues|wednes|thurs|fri|satur|sun)day"
_DATE = rf"\d{{4}}-\d\d-\d\d|(?:(?:{_MONTH}|{_DAY})[\s,]*){{2,5}}"
_TIME = r"\d{1,2}[:.]\d\d\s*(?:[ap]\.?m\.?|h|hours)?|\d{1,2}\s*[ap]\.?m\.?"
_MOMENT = re.compile(rf"(?P<date>{_DATE})|(?P<time>{_TIME})", re.IGNORECASE)
_LONGEST_MOMENT = 60
Moment = tuple[int | None, ...]
"""Year, month, day of a date, or hour and minute of a time; None in the place of what it leaves out."""


@dataclass(frozen=True, slots=True)
class Amount:
    """A number and what it counts.

    Args:
        value: Exact; of `75 %` it is 75.
        percent: It is followed by a percent sign.
        unit: Folded words or signs around it; empty for none.
        fraction: As it is written, where it is one; empty for a decimal number.
    """

    value: Fraction
    percent: bool
    unit: str
    fraction: str


def amount(text: str) -> Amount | None:
    """Return the amount that a text is, and nothing but that; None for any other text."""
    if not 0 < len(text) <= _MOST_CHARACTERS or re.search(r"(?<![\w'])'\d\d(?!\d)", text):
        return None
    low = folded(text)
    if not any(map(str.isdigit, low)):
        low = _in_digits(low)
    found = _AMOUNT.fullmatch(_POWER_OF_TEN.sub("1e", low))
    if found is None or not (found["number"] or found["above"]):
        return None
    unit = f"{found['money'] or ''} {found['unit']}".strip(" ()")
    if len(unit.split()) > _MOST_UNIT_WORDS or _NO_UNIT.search(unit):
        return None
    value = _value(found)
    return (
        None
        if value is None
        else Amount(
            value,
            bool(found["percent"]),
            unit,
            f"{found['above']}/{found['below']}" if found["above"] else "",
        )
    )


def _value(found: re.Match[str]) -> Fraction | None:
    if found["above"]:
        if int(found["below"]) == 0:
            return None
        value = Fraction(int(found["above"]), int(found["below"])) + int(found["whole"] or 0)
    else:
        value = Fraction(re.sub(r"[, '_]", "", found["number"]))
    value *= Fraction(10) ** int(found["power"] or 0) * _SCALES.get(found["scale"] or "", 1)
    return -value if "-" in (found["sign"] or "") + (found["minus"] or "") else value


def _in_digits(low: str) -> str:
    """Return a folded text with its number words in digits."""
    if low in _SHARES:
        return _SHARES[low]
    if not low.isascii():  # no number word, and a lone surrogate would be refused
        return low
    from text_to_num import alpha2digit  # 10 ms, only where an answer has no digits

    said: str = alpha2digit(re.sub(r"^(?:negative|minus) ", "minus ", low), "en", threshold=0)
    said = re.sub(r"^one(?= |$)", "1", re.sub(r"^zero(?= |$)", "0", said))
    return re.sub(r"^a (?=\d)", "", re.sub(r"^minus (?=\d)", "-", said))


def same_unit(one: str, other: str) -> bool:
    """Return whether two folded names, empty for none, are those of one unit."""
    return _singular(one) == _singular(other) or (_unit(one) is not None and _unit(one) == _unit(other))


def names_unit(words: Sequence[str], unit: str) -> bool:
    """Return whether words name a unit, in the form that they are given or in another."""
    starts = range(len(words))
    return any(
        same_unit(" ".join(words[at : at + length]), unit)
        for at in starts
        for length in range(1, _MOST_WORDS + 1)
    )


def is_unit(word: str) -> bool:
    """Return whether a folded word is the name of a unit."""
    return _unit(word) is not None


def _singular(name: str) -> str:
    return " ".join(
        word.removesuffix("s") if len(word) >= _SHORTEST_PLURAL else word for word in name.strip(" .").split()
    )


@lru_cache(maxsize=1024)
def _unit(name: str) -> int | None:
    return _numbered().get(_singular(name))


@lru_cache(maxsize=1)
def _numbered() -> dict[str, int]:
    """Return units, each by all its names, in the singular."""
    units = [unit for line in _UNITS.strip().splitlines() for unit in line.split("|")]
    return {_singular(name): number for number, unit in enumerate(units) for name in unit.split(",")}


def moment(text: str) -> Moment | None:
    """Return the date or time that a text is, and nothing but that; None for any other text."""
    found = _MOMENT.fullmatch(text.strip(" .")) if len(text) <= _LONGEST_MOMENT else None
    if found is None or (found["date"] and not re.search(rf"-\d\d-|{_MONTH}", text, re.IGNORECASE)):
        return None
    from dateutil import parser  # 60 ms, only where an accepted answer and a reply are dates

    said = text
    if found["time"]:
        said = re.sub(
            r"\s*(?:h|hours)$|(?<=[ap])\.|\.$",
            "",
            re.sub(r"(?<=\d)\.(?=\d\d)", ":", text.strip()),
            flags=re.IGNORECASE,
        )
    try:
        one, other = (parser.parse(said, default=at) for at in (datetime(1904, 2, 3), datetime(1908, 5, 6)))  # noqa: DTZ001
    except (ValueError, OverflowError):
        return None
    if found["time"]:
        return one.hour, one.minute
    pairs = zip(one.timetuple()[:3], other.timetuple()[:3], strict=True)
    return tuple(a if a == b else None for a, b in pairs)
