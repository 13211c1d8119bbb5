"""Units: whether two names are those of one unit. Nothing is converted: an amount in another unit is not decided."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

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
