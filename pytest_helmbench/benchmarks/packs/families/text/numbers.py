"""Numbers as replies write them: separators, exponents, fractions, percent, scale words, units behind them.

Number words (`twelve`) are found by `number_words`. Digits of a version, a time, a date or a name (`B12`, `H2O`,
`1.2.3`, `10:30`) are no numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.text.vocabulary import UNSPACED_SCRIPTS, one_of
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Number", "from_value", "numbers", "only_number"]

_MOST_DIGITS = 400
"""A number with more digits, or a greater exponent, is none: nobody counts that far."""

_BODY = (
    r"(?:\d{1,3}(?P<group>[ ,.'])\d{3}(?:(?P=group)\d{3})*+(?:[.,]\d++)?+(?!\d)"  # 1,234.5  1 234,5  1.234.567
    r"|\d{1,2}(?:,\d{2}){1,8},\d{3}(?:\.\d++)?+(?!\d)"  # 12,34,567
    r"|\d++(?:[.,]\d++)?+|\.\d++)"
)
_DIGIT = re.compile(r"\d")  # every body has one
# Of scripts that put spaces around numbers.
_LETTER_OR_DIGIT = rf"[^\W_{UNSPACED_SCRIPTS}]"
_SCALES = {
    "thousand": 3,
    "thousands": 3,
    "tausend": 3,
    "mille": 3,
    "mil": 3,
    "тысяч": 3,
    "million": 6,
    "millions": 6,
    "millionen": 6,
    "millón": 6,
    "millones": 6,
    "mn": 6,
    "миллионов": 6,
    "billion": 9,
    "billions": 9,
    "milliarden": 9,
    "milliards": 9,
    "bn": 9,
    "trillion": 12,
}
_MYRIADS = {"万": 4, "亿": 8}
_LETTERS = {"M": 10**6, "B": 10**9, "T": 10**12}
_NUMBER = re.compile(
    r"(?:(?<!\w)(?P<minus>minus|negative|moins|menos)\s+)?"
    rf"(?<!{_LETTER_OR_DIGIT})(?<![\^_])(?<!\d[.:,])(?<![^\W\d]-)(?<!\^-)"
    r"(?P<sign>(?<![\w)\]])[-+])?(?:(?<=[-+])\s?[€£¥₹])?"
    rf"(?P<body>{_BODY})(?![.:,]\d|-\d+-\d)"
    r"(?:"
    r"(?P<mixed>\s\d{1,9}/\d{1,9}(?![\d/]))"
    r"|\s?/\s?(?P<below>\d{1,30}+(?:\.\d{1,30}+)?+)(?!\s?/\s?\d)"
    r"|(?P<exponent>[eE][-+]?\d{1,9}+)(?!\d)"
    r"|\s?(?:×|x|X|\*|·|⋅)\s?10\s?(?:\^|\*\*)\s?[({]?(?P<ten>[-+]?\d{1,9}+)[)}]?"
    r"|\s?(?:\^|\*\*)\s?[({]?(?P<power>[-+]?\d{1,9}+)[)}]?"
    r")?"
    r"(?P<percent>\s?(?:%|per\s?cent\b|pct\b|prozent\b|por\s?ciento\b|pour\s?cent\b|процент))?"
    rf"(?:(?P<kilo>k)\b|(?P<letter>(?-i:M|B|T))(?!\w)|\s(?P<scale>{one_of(_SCALES)})\b|\s?(?P<myriad>{one_of(_MYRIADS)}))?",
    re.IGNORECASE,
)
# Three numbers with slashes, dates, times, versions, addresses: digits that count nothing.
_NO_NUMBER = re.compile(
    r"\b\d{4}-\d{1,2}-\d{1,2}\b|\b\d{1,2}[/.]\d{1,2}[/.]\d{2,4}\b(?![,.]?\d)|\b\d{1,2}:\d{2}(?::\d{2})?\b"
    r"|(?<![\d.])\d+(?:\.\d+){3,}(?![\d.])|(?<![\d,.])\d{4,}(?:[.,]\d+){2,}|(?<![\d.])\d+\.\d{1,2}\.\d+(?![.\d])"
)
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+|[1-9]\d?(?:,\d{2})+,\d{3}")
_PLAIN = re.compile(r"-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?")


@dataclass(frozen=True, slots=True)
class Number:
    """A number in a text.

    Args:
        values: What it may mean: `50 %` is 50 and 0.5, `1.5 million` is 1,500,000 and 1.5.
        start: Where it begins in its text.
        end: Where it ends, percent sign and scale word included.
        uncertainty: It stands behind `±` and measures another number.
        scale: Its scale word, in lower case; empty for none.
    """

    values: tuple[Fraction, ...]
    start: int = 0
    end: int = 0
    uncertainty: bool = False
    scale: str = ""

    def equals(self, other: Number, tolerance: float = 0.0) -> bool:
        """Return whether any two meanings are equal, but for the tolerance and the ninth digit.

        Two percentages, or two numbers with scale words, are compared as such.

        Source:
            |a − b| ≤ max(tolerance, 1e-9 × max(|a|, |b|)), in exact fractions of the decimals as written.
        """
        if math.isinf(tolerance):
            return True
        bound = Fraction(str(tolerance))
        alike = len(self.values) > 1 and len(other.values) > 1
        return any(
            abs(mine - theirs) <= max(bound, max(abs(mine), abs(theirs)) / 10**9)
            for mine in (self.values[:1] if alike else self.values)
            for theirs in (other.values[:1] if alike else other.values)
        )


def numbers(text: str) -> Iterator[Number]:
    """Yield the numbers of a plain text in order."""
    if _DIGIT.search(text) is None:
        return
    if _NO_NUMBER.search(text) is not None:
        text = _NO_NUMBER.sub(lambda found: "#" * len(found[0]), text)
    for found in _NUMBER.finditer(text):
        values = _values(found)
        if values is not None:
            before = text[max(0, found.start() - 4) : found.start()].rstrip()
            scale = (found["scale"] or found["myriad"] or found["kilo"] or "").lower()
            yield Number(values, found.start(), found.end(), before.endswith(("±", "+/-", "+-")), scale)


def only_number(text: str) -> Number | None:
    """Return the number that a text consists of, a currency sign and brackets apart; else None."""
    text = text.strip(" \t\n\"'().,;:~≈=$€£¥₹")
    if not text or len(text) > 2 * _MOST_DIGITS:
        return None
    if text[:1] in "-+" and text[1:2] in "$€£¥₹":
        text = text[0] + text[2:]
    found = next(numbers(text), None)
    return found if found is not None and found.start == 0 and found.end == len(text) else None


def from_value(value: str | int | float) -> Number | None:
    """Return a number of a pack: a JSON number, or a text that is one; None for other texts."""
    if isinstance(value, str):
        return only_number(value)
    written = str(value)
    if _PLAIN.fullmatch(written) is None or len(written) > _MOST_DIGITS:
        return None
    return Number((Fraction(written),))


def _values(found: re.Match[str]) -> tuple[Fraction, ...] | None:
    value = _decimal(found["body"])
    if value is None:
        return None
    value = _with_tail(value, found)
    if value is None:
        return None
    if found["minus"] or found["sign"] == "-":
        value = -value
    if found["percent"]:
        return value, value / 100
    if found["kilo"]:
        return value * 1000, value
    if found["letter"]:
        return value * _LETTERS[found["letter"]], value
    scale = found["scale"] or found["myriad"]
    return (value * 10 ** (_SCALES | _MYRIADS)[scale.lower()], value) if scale else (value,)


def _with_tail(value: Fraction, found: re.Match[str]) -> Fraction | None:
    """Return the value with the fraction, exponent or power that follows it; None when that is absurd."""
    if found["mixed"]:
        above, _, below = found["mixed"].strip().partition("/")
        return value + Fraction(int(above), int(below)) if int(below) else None
    if found["below"]:
        below = Fraction(found["below"])
        return value / below if below else None
    exponent = found["exponent"] or found["ten"]
    if exponent:
        power = int(exponent.lstrip("eE"))
        return value * Fraction(10) ** power if abs(power) <= _MOST_DIGITS else None
    if found["power"]:
        power = int(found["power"])
        size = abs(power) * max(len(str(value.numerator)), len(str(value.denominator)))
        return value**power if size <= _MOST_DIGITS and (value or power >= 0) else None
    return value


def _decimal(body: str) -> Fraction | None:
    """Return the value of digits with separators.

    `1,234` counts thousands and `1.234` has decimals, as English writes; `3,14` has decimals; of two different
    separators the last one begins the decimals.
    """
    if len(body) > _MOST_DIGITS:
        return None
    body = body.replace(" ", "").replace("'", "")
    comma, dot = body.count(","), body.count(".")
    if comma and dot:
        if comma == 1 and body.rindex(",") > body.rindex("."):
            body = body.replace(".", "").replace(",", ".")
        elif dot == 1:
            body = body.replace(",", "")
        else:
            return None
    elif comma:
        body = body.replace(",", "") if _THOUSANDS.fullmatch(body) else body.replace(",", ".", 1)
        if "," in body:
            return None
    elif dot > 1:
        body = body.replace(".", "")
    return Fraction("0" + body if body.startswith(".") else body)
