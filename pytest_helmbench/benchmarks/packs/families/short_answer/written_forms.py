"""One form for what accepted answers of a row may be written as: dates, times of day, π, `the Second`, `King, Jr.`"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterable
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.text.calendar_words import (
    is_date,
    is_day,
    is_time,
    with_plain_dates,
    with_plain_days,
    with_plain_times,
)
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.numbers import from_value
from pytest_helmbench.benchmarks.packs.families.text.plain import plain

__all__ = [
    "continues_formula",
    "is_expression",
    "is_other_half",
    "is_turned_name",
    "last_pi",
    "only_pi",
    "written_alike",
]

_SUFFIX = re.compile(r",\s+(?=(?:Jr|Sr|II|III|IV|Ph\.?D|M\.?D|Esq)(?!\w))")
_SUBSCRIPT = re.compile(r"(?<=[A-Z])_\{?(?=\d)|(?<=[A-Z][a-z])_\{?(?=\d)")
_DOLLARS = re.compile(r"(?<!\w)(?:US|USD|U\.S\.)\s?\\?\$(?=\s?\d)")
_EXPRESSION = re.compile(
    r"(?=.*[a-z])(?=.*[\d+*/^=(-])(?:[\d\s.+*/^()=-]|(?<![a-z])[a-z](?![a-z])|sqrt|sin|cos|tan|ln|log)+"
)
_TIMES = re.compile(r"(?<=\d)\s?(?:\*|·|×|\\cdot|\\times)\s?(?=[a-z](?![a-z]))")
_ODDS = re.compile(r"(?<![\d.,])(\d{1,9})\s(?:in|out of)\s(\d{1,9})(?![\d.,]\d)")
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth")
_NUMERALS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII")
_REGNAL = re.compile(rf"(?<=\w)\sthe\s(?P<ordinal>{'|'.join(_ORDINALS)})(?!\w)", re.IGNORECASE)
_NUMERAL = re.compile(r"(?<=\w)\s(?:II|III|IV|V|VI|VII|VIII|I)(?!\w)")
_PI = re.compile(
    r"(?<![\w.])(?:(?P<times>-?\d{1,15}(?:\.\d{1,15})?(?:/\d{1,9})?)\s?[*·×]?\s?)?(?<![a-z])pi(?!\w)"
    r"(?:\^(?P<power>\d{1,3}))?(?:\s?/\s?(?P<below>\d{1,9}))?"
)


def written_alike(accepted: Iterable[str]) -> Callable[[str], str]:
    """Return what brings accepted answers, and replies to their row, into one form.

    Dates are only brought into one where an answer is a date; times, days and `the Second` likewise.
    """
    answers = [*accepted]
    steps: list[Callable[[str], str]] = []
    if any(map(is_date, answers)):
        steps.append(with_plain_dates)
    elif any(map(is_day, answers)):
        steps.append(with_plain_days)
    if any(map(is_time, answers)):
        steps.append(with_plain_times)
    if any(_NUMERAL.search(answer) is not None for answer in answers):
        steps.append(lambda text: _REGNAL.sub(_numeral, text))
    if any(map(is_expression, answers)):
        steps.append(lambda text: _TIMES.sub("", text))
    if any(_is_share(answer) for answer in answers):
        steps.append(lambda text: _ODDS.sub(r"\1/\2", text))

    def alike(text: str) -> str:
        text = _DOLLARS.sub("$", _SUBSCRIPT.sub("", _SUFFIX.sub(" ", text)))
        for step in steps:
            text = step(text)
        return text.replace("π", "pi").replace("𝜋", "pi") if "π" in text or "𝜋" in text else text

    return alike


def is_expression(answer: str) -> bool:
    """Return whether an accepted answer is a formula of numbers and single letters: `2x`, `x + 1`."""
    return _EXPRESSION.fullmatch(lowered(plain(answer))) is not None


def continues_formula(text: str, start: int, end: int) -> bool:
    """Return whether what stands between two places is only a part of a formula."""
    before, after = text[:start].rstrip()[-1:], text[end:].lstrip()[:1]
    return (before != "" and before in "+-*/^") or (after != "" and after in "+-*/^")


def _is_share(answer: str) -> bool:
    number = from_value(answer)
    return number is not None and 0 < number.values[-1] < 1


def is_other_half(text: str, end: int, times: Iterable[str]) -> bool:
    """Return whether what follows a time in a folded text is the half of the day that no accepted time is in."""
    half = text[end : end + 3]
    halves = {time[-2:] for time in times if time[-2:] in ("am", "pm")}
    return half in (" am", " pm") and bool(halves) and half.strip() not in halves


def only_pi(answer: str) -> tuple[Fraction, int] | None:
    """Return factor and power of an answer that is a multiple of π; None for any other."""
    found = _PI.fullmatch(lowered(plain(answer)).strip(" ."))
    return None if found is None else _pi(found)


def last_pi(statement: str) -> tuple[Fraction, int] | None:
    """Return factor and power of the last multiple of π in a statement; None for none."""
    found = deque(_PI.finditer(lowered(statement)), 1)
    return _pi(found[0]) if found else None


def is_turned_name(statement: str, answer: str) -> bool:
    """Return whether a folded statement is a name with its family name first: `austen, jane`."""
    parts = statement.split(", ")
    if not 2 <= len(parts) <= 3 or " " not in answer:
        return False
    given, _, suffix = parts[1].rpartition(" ")
    turned = [" ".join([parts[1], parts[0], *parts[2:]])]
    if suffix in ("jr", "sr", "ii", "iii", "iv"):
        turned.append(f"{given} {parts[0]} {suffix}")
    return answer in turned


def _numeral(found: re.Match[str]) -> str:
    return f" {_NUMERALS[_ORDINALS.index(found['ordinal'].lower())]}"


def _pi(found: re.Match[str]) -> tuple[Fraction, int]:
    times, below = Fraction(1), int(found["below"] or 1)
    if found["times"]:
        above, _, under = found["times"].partition("/")
        times = Fraction(above) / (int(under or 1) or 1)
    return times / (below or 1), int(found["power"] or 1)
