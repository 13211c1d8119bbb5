"""Numbers written as English words: `ninety`, `two hundred and fifty`, `one and a half million`, `two thirds`.

`one` alone is a number only where a text begins with it: elsewhere it is a pronoun.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.text.numbers import Number

__all__ = [
    "HAS_NUMBER",
    "ORDINAL_WORDS",
    "WRITTEN_NUMBERS",
    "has_ordinal",
    "number_words",
    "only_number_words",
    "with_plain_ordinals",
]

_SMALL_WORDS = (
    *(
        "zero",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
    ),
    *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"),
)
_TENS_WORDS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_PART_WORDS = ("half", "third", "quarter", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth")
_SMALL = {word: value for value, word in enumerate(_SMALL_WORDS)}
_TENS = {word: 10 * value for value, word in enumerate(_TENS_WORDS, 2)}
_SCALES = {"thousand": 10**3, "million": 10**6, "billion": 10**9, "trillion": 10**12}
WRITTEN_NUMBERS = (*_SMALL_WORDS, *_TENS_WORDS)
"""Words that a number may begin with, in lower case."""
HAS_NUMBER = re.compile(rf"\d|(?<!\w)(?:{'|'.join(WRITTEN_NUMBERS)})(?!\w)", re.IGNORECASE)
"""Found in every text with a number, in digits or words."""

_WORD = re.compile(
    rf"(?<![\w-])(?:{'|'.join([*_SMALL, *_TENS])}|a(?=\s(?:hundred|thousand|million|billion|trillion|dozen)\b)"
    rf"|an?(?=\s(?:{'|'.join([*_PART_WORDS, 'fourth'])})(?:\sof\b|\s*[.,;:!)]|\s*$)))(?!\w)"
)
_NEXT = re.compile(
    rf"[\s-]+(?P<and>and\s+)?(?P<word>{'|'.join([*_SMALL, *_TENS, 'hundred', 'dozen', *_SCALES])})(?![\w-]*-eyed)(?!\w)"
)
_HALF = re.compile(r"\s+and\s+a\s+half(?!\w)")
_POINT = re.compile(rf"\s+point(?P<digits>(?:\s+(?:{'|'.join(list(_SMALL)[:10])})(?!\w))+)")
_PARTS = {word: value for value, word in enumerate(_PART_WORDS, 2)} | {"fourth": 4, "halve": 2}
_PART = re.compile(rf"[\s-]+(?P<part>{'|'.join(_PARTS)})s?(?!\w)")
_MINUS = re.compile(r"(?:minus|negative)\s+$")
_COUNTS = re.compile(
    r"(?:equals?|equal to|(?<!which )(?:is|are|was|were)|exactly|gives?|leaves?|remainder(?: of)?)\s(?:just |only )?$"
    r"|(?:^\W*|(?:has|have|had|takes?|needs?)\s)(?:just|only)\s$"
)
_ENDS = re.compile(r"\s*(?:[.,;:!)]|$)")
_PERCENT = re.compile(r"\s?(?:%|per\s?cent\b)")

ORDINAL_WORDS = (
    *(
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "sixth",
        "seventh",
        "eighth",
        "ninth",
        "tenth",
        "eleventh",
    ),
    *(
        "twelfth",
        "thirteenth",
        "fourteenth",
        "fifteenth",
        "sixteenth",
        "seventeenth",
        "eighteenth",
        "nineteenth",
    ),
)
"""`first` to `nineteenth`, in lower case and in order."""
_TENS_ORDINALS = {f"{word[:-1]}ieth": value for word, value in _TENS.items()}
_ORDINAL_OF = {word: value for value, word in enumerate(ORDINAL_WORDS, 1)} | _TENS_ORDINALS
_ORDINAL = re.compile(
    rf"(?<![\w-])(?:(?P<tens>{'|'.join(_TENS_WORDS)})[-\s])?(?P<last>{'|'.join(_ORDINAL_OF)})(?![\w-])",
    re.IGNORECASE,
)
_DIGITS_ORDINAL = re.compile(r"(?<![\w.,])(\d{1,3})\s?(?:st|nd|rd|th)(?!\w)")


def has_ordinal(text: str) -> bool:
    """Return whether a text has an ordinal, in words or digits."""
    return _ORDINAL.search(text) is not None or _DIGITS_ORDINAL.search(text) is not None


def with_plain_ordinals(text: str) -> str:
    """Return a text with every ordinal in digits, all with one ending: `twenty-first` and `21st` are `21th`."""
    text = _ORDINAL.sub(
        lambda found: (
            f"{_TENS.get((found['tens'] or '').casefold(), 0) + _ORDINAL_OF[found['last'].casefold()]}th"
        ),
        text,
    )
    return _DIGITS_ORDINAL.sub(r"\1th", text)


def only_number_words(text: str) -> Number | None:
    """Return the number that a text is in words; None for any other."""
    low = text.lower().strip(" .")
    found = next(iter(number_words(low)), None)
    return found if found is not None and found.start == 0 and found.end == len(low) else None


def number_words(low: str) -> Iterator[Number]:
    """Yield the numbers that a text in lower case has as words, in order."""
    position = 0
    while (found := _WORD.search(low, position)) is not None:
        value, end = _value(low, found)
        position = end
        alone = found[0] == "one" and end == found.end() and _PART.match(low, end) is None
        if alone and low[: found.start()].strip(" \"'*(") and not _is_counted(low, found):
            continue
        start = found.start()
        minus = _MINUS.search(low, max(0, start - 12), start)
        if minus is not None:
            start, value = minus.start(), -value
        part = _PART.match(low, end)
        if part is not None and value.denominator == 1:
            value, position = value / _PARTS[part["part"]], part.end()
            end = position
        percent = _PERCENT.match(low, end)
        if percent is not None:
            yield Number((value, value / 100), start, percent.end())
        else:
            yield Number((value,), start, end)


def _is_counted(low: str, found: re.Match[str]) -> bool:
    """Return whether `one` at the end of a clause is a number, not a pronoun: `the remainder equals one.`"""
    return _ENDS.match(low, found.end()) is not None and (
        _COUNTS.search(low, max(0, found.start() - 20), found.start()) is not None
    )


def _value(low: str, first: re.Match[str]) -> tuple[Fraction, int]:
    """Return the value of the words that begin at a place, and where they end."""
    total, least = Fraction(0), 10**15
    current: Fraction | None = Fraction(1 if first[0] in ("a", "an") else (_SMALL | _TENS)[first[0]])
    end = first.end()
    while True:
        half = _HALF.match(low, end)
        if half is not None and current is not None:
            current += Fraction(1, 2)
            end = half.end()
        point = _POINT.match(low, end)
        if point is not None and current is not None:
            digits = "".join(str(_SMALL[word]) for word in point["digits"].split())
            current += Fraction(int(digits), 10 ** len(digits))
            end = point.end()
        found = _NEXT.match(low, end)
        if found is None:
            break
        word = found["word"]
        if word in _SCALES and current is not None and _SCALES[word] < least:
            least = _SCALES[word]
            total, current = total + current * least, None
        else:
            joined = _joined(current, word, bool(found["and"]), began=bool(total))
            if joined is None:
                break
            current = joined
        end = found.end()
    return total + (current or 0), end


def _joined(current: Fraction | None, word: str, has_and: bool, *, began: bool) -> Fraction | None:
    """Return the value of words below a thousand and one more; None where it begins another number."""
    if word in _SCALES:
        return None
    if word in ("hundred", "dozen"):
        if current is None or has_and or not 0 < current < 20:
            return None
        return current * (100 if word == "hundred" else 12)
    value = (_SMALL | _TENS)[word]
    if current is None:
        return Fraction(value)
    if current.denominator != 1:
        return None
    if current > 0 and current % 100 == 0:
        return current + value
    if has_and:
        return None
    if value < 10 and current >= 20 and current % 10 == 0:
        return current + value
    if not began and 12 < current <= 20 and value >= 10:  # nineteen eighty
        return current * 100 + value
    return None
