"""Numbers as replies write them, with the unit behind: exact values, in digits or in words."""

from __future__ import annotations

import re
from fractions import Fraction

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
