"""The number of a short_answer statement held to an accepted answer: its unit, its tolerance, how it is rounded."""

from __future__ import annotations

import re
from dataclasses import replace
from decimal import Context, Decimal
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.short_answer.accepted import Accepted
from pytest_helmbench.benchmarks.packs.families.short_answer.number_found import NumberFound
from pytest_helmbench.benchmarks.packs.families.short_answer.row import ShortRow
from pytest_helmbench.benchmarks.packs.families.text.cues import lowered
from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers
from pytest_helmbench.benchmarks.packs.families.text.plain import plain
from pytest_helmbench.benchmarks.packs.families.text.unit_symbols import prefix_between
from pytest_helmbench.benchmarks.packs.families.text.units import (
    Unit,
    asked_unit,
    is_convertible,
    is_same_amount,
    unit_of,
)

__all__ = ["ROUNDED", "in_unit_said", "is_in_asked_form", "number_met"]

_DECIMALS = re.compile(r"\.(\d+)")
_POWER_OF_TEN = re.compile(r"(?<![\d.])10\^[({]?(?P<power>-?\d{1,3})|(?<=\d)[eE](?P<exponent>[-+]?\d{1,3})")
_ASKS_FOR_FRACTION = re.compile(r"(?<!\w)(?:fractions?|simplif\w+|simplest|lowest)(?!\w)")
_SHARE_DIGITS = 3
_TWELVE_DIGITS = Context(prec=12)
_LEAST_ROUNDED = 100
_TAIL = 4000
ROUNDED = "numeric_rounded"
_NEARLY = Fraction(1, 100)
_YEARS = range(1000, 2200)
_ASKS_FOR_PLACES = re.compile(
    r"(?<!\w)(?:decimals?|digits?|significant|exact(?:ly)?|precise(?:ly)?|nearest)(?!\w)"
)
_CONDITION = re.compile(
    r"(?<!\w)at\s[\d.]+\s?(?:°\s?[cf]?|degrees?\s\w+|atm|bar|k?pa|k)(?!\w)|(?<!\w)in\s\d{4}(?!\w)"
)
"""`at 20 °C`: nothing is to be worked out from it."""
_IS_FRACTION = re.compile(r"\d\s?/\s?\d")
_DOTTED = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_LOWEST_TERMS = re.compile(r"(?<!\w)(?:simplif\w+|simplest|lowest|reduced?)(?!\w)")


def number_met(found: NumberFound, answer: Accepted, tolerance: float | None, asked: str) -> str | None:
    """Return how a number meets an answer; None when it does not.

    Args:
        found: The number.
        answer: The accepted answer.
        tolerance: Of the row; None for none.
        asked: The question.
    """
    if found.other_end is not None:
        ends = (
            replace(found, number=one, several=False, other_end=None)
            for one in (found.number, found.other_end)
        )
        ways = [number_met(end, answer, tolerance, asked) for end in ends]
        is_narrow = found.number is not None and found.number.equals(found.other_end, tolerance or 0.0)
        return ways[0] if is_narrow and all(ways) else None
    number = found.number
    if number is None or found.bound:
        return None
    if found.unit is not None and answer.amount is not None:
        wanted, unit = answer.amount
        if found.unit.kind == unit.kind:
            if not is_same_amount(number, found.unit, wanted, unit, tolerance or 0.0):
                same = _in_unit(number, found.unit, unit)
                is_rounded = tolerance is None and (
                    (found.unit.system == unit.system and _rounds_to(same, answer))
                    or is_nearly(same, answer, asked, about=found.about)
                )
                return ROUNDED if is_rounded else None
            return "numeric_exact" if tolerance is None else "numeric_tolerance"
    scale = None if answer.measured is None else _scale(found.symbols, answer.measured[1])
    if scale is not None:
        number = replace(number, values=tuple(value * scale for value in number.values))
        return _measured_alike(found, number, answer, tolerance, asked)
    if _is_dotted(found, answer):
        return "numeric_exact"
    bare = (answer.bare, answer.counted) if found.unit is None else ()
    if any(one is not None and one.equals(number, tolerance or 0.0) for one in bare):
        return "numeric_exact" if tolerance is None else "numeric_tolerance"
    if answer.near is not None and answer.near.equals(number, tolerance or 0.0):
        return "numeric_tolerance"
    if any(one is not None and one.equals(number) for one in (answer.number, answer.in_words)):
        return "numeric_exact"
    is_rounded = (
        _rounds_to(number, answer)
        or is_nearly(number, answer, asked, about=found.about)
        or _is_share(number, answer, asked)
    )
    return ROUNDED if tolerance is None and is_rounded else None


def _scale(symbols: str, wanted: str) -> Fraction | None:
    """Return what a number is multiplied with to be in the wanted unit of science; None for another unit."""
    return Fraction(1) if symbols == wanted else prefix_between(symbols, wanted)


def _measured_alike(
    found: NumberFound, number: Number, answer: Accepted, tolerance: float | None, asked: str
) -> str | None:
    """Return how a number meets an answer that is in the same units of science; None when it does not."""
    if answer.measured is not None and answer.measured[0].equals(number, tolerance or 0.0):
        return "numeric_exact" if tolerance is None else "numeric_tolerance"
    is_rounded = _rounds_to(number, answer) or is_nearly(number, answer, asked, about=found.about)
    return ROUNDED if tolerance is None and is_rounded else None


def in_unit_said(found: NumberFound, own: str) -> NumberFound | None:
    """Return a number without unit in the only one that the reply has behind it elsewhere; None where it has none.

    `The speed is 78 km/h. \\boxed{78}`

    Args:
        found: The number.
        own: All of the reply.
    """
    number = found.number
    if number is None or found.unit is not None:
        return None
    low = lowered(plain(own[-_TAIL:]))
    units = {unit_of(low, one) for one in numbers(low) if one.equals(number)} - {None}
    return replace(found, unit=units.pop(), guess=True) if len(units) == 1 else None


def _wanted(answer: Accepted) -> Number | None:
    """Return the number of an answer that is one, with a unit or without."""
    with_unit = answer.amount or answer.measured
    return answer.number or (None if with_unit is None else with_unit[0])


def _rounds_to(number: Number, answer: Accepted) -> bool:
    """Return whether a number is an accepted one with more decimals; small whole numbers are exact."""
    wanted = _wanted(answer)
    if wanted is None or len(wanted.values) > 1:
        return False
    value, said = wanted.values[0], number.values[0]
    if value.denominator == 1 and abs(value) < _LEAST_ROUNDED:
        return False
    decimals, power = _DECIMALS.search(answer.written), _POWER_OF_TEN.search(plain(answer.written))
    places = 0 if decimals is None else len(decimals[1])
    places -= 0 if power is None else int(power["power"] or power["exponent"])
    return said != value and round(said, places) == value and _IS_FRACTION.search(answer.written) is None


def is_nearly(number: Number, answer: Accepted, asked: str, *, about: bool) -> bool:
    """Return whether a number is a measured one, rounded: to three digits, or two where it is said to be rounded.

    What a question wants worked out, and years, are exact; so are whole numbers that are not said to be rounded.
    """
    wanted = _wanted(answer)
    if (
        wanted is None
        or any(map(str.isdigit, _CONDITION.sub("", asked)))
        or _ASKS_FOR_PLACES.search(asked) is not None
    ):
        return False
    value, said = wanted.values[0], number.values[0]
    if (
        said == value
        or _IS_FRACTION.search(answer.written) is not None
        or (answer.amount is None and answer.measured is None and value in _YEARS)
    ):
        return False
    if value.denominator != 1 and _digits(said) >= (2 if about else 3):
        return _is_rounded_to(said, value)
    if abs(value) < _LEAST_ROUNDED or not about:
        return False
    digits = len(str(abs(int(said))).rstrip("0"))
    step = 10 ** max(0, len(str(abs(int(said)))) - max(2, digits))
    return abs(said - value) <= abs(value) * _NEARLY and abs(said - value) <= Fraction(step, 2)


def _is_share(number: Number, answer: Accepted, asked: str) -> bool:
    """Return whether a decimal, or a percentage, of three digits is a fraction that no decimal is equal to."""
    if answer.number is None or "/" not in answer.written or _ASKS_FOR_FRACTION.search(asked) is not None:
        return False
    value, said = answer.number.values[0], number.values[-1]
    is_endless = 10**12 % value.denominator != 0
    return is_endless and _digits(said) >= _SHARE_DIGITS and _is_rounded_to(said, value)


def _digits(value: Fraction) -> int:
    """Return how many digits a decimal has from its first one to its last one that is not 0."""
    found = _TWELVE_DIGITS.divide(Decimal(abs(value.numerator)), Decimal(value.denominator))
    return len("".join(map(str, found.as_tuple().digits)).strip("0"))


def _is_rounded_to(said: Fraction, value: Fraction) -> bool:
    """Return whether a decimal with fewer digits behind its dot than another one is that one, rounded."""
    places = next((n for n in range(12) if (said * 10**n).denominator == 1), 12)
    return abs(said - value) <= Fraction(1, 2 * 10**places) and abs(said - value) <= abs(value) * _NEARLY


def _in_unit(number: Number, unit: Unit, wanted: Unit) -> Number:
    """Return a number in another unit of its kind."""
    if unit == wanted or not is_convertible(unit):
        return number
    return replace(number, values=tuple(value * unit.factor / wanted.factor for value in number.values[:1]))


def _is_dotted(found: NumberFound, answer: Accepted) -> bool:
    """Return whether a whole number is written with a dot before its last three digits: `10.080`."""
    if found.number is None or answer.number is None or _DOTTED.fullmatch(found.written) is None:
        return False
    number = replace(found.number, values=(found.number.values[0] * 1000,))
    return answer.number.values[0] >= 1000 and answer.number.equals(number)


def is_in_asked_form(number: NumberFound, answer: Accepted, row: ShortRow) -> bool:
    """Return whether a number is written as asked: as a label is, in lowest terms, converted to the unit."""
    if answer.label is not None:
        return number.written == answer.label
    asks = lowered(row.question)
    if "/" in answer.written and "/" in number.written and _LOWEST_TERMS.search(asks) is not None:
        return re.sub(r"\s", "", number.written) == re.sub(r"\s", "", answer.written)
    asked = asked_unit(asks)
    return asked is None or number.unit is None or "convert" not in asks or number.unit.system == asked.system
