"""Units of science by their symbols, whatever their names: `grams per mole` is `g/mol`, `m s^-2` is `m/s²`.

They are compared, and converted by their prefixes alone; what else is converted stands in `units`.
"""

from __future__ import annotations

import re
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.text.vocabulary import one_of

__all__ = ["SI_SYMBOLS", "prefix_between", "symbols_behind"]

_SI = """
newton:N joule:J watt:W pascal:Pa hertz:Hz volt:V ampere:A ohm:Ω kelvin:K mole:mol candela:cd coulomb:C tesla:T
farad:F henry:H metre:m meter:m kilogram:kg second:s lumen:lm lux:lx becquerel:Bq sievert:Sv
"""
SI_SYMBOLS = dict(entry.split(":") for entry in _SI.split())
"""Units of the International System: their names in lower case, and their symbols as written."""

_PREFIXED = "kilogram"
_NAMES = {name: symbol.lower() for name, symbol in SI_SYMBOLS.items() if name != _PREFIXED} | {
    "gram": "g",
    "gramme": "g",
    "litre": "l",
    "liter": "l",
    "sec": "s",
    "minute": "min",
    "hour": "h",
    "hr": "h",
    "watt-hour": "wh",
    "amp": "a",
    "electronvolt": "ev",
    "electron volt": "ev",
    "calorie": "cal",
    "atmosphere": "atm",
    "bar": "bar",
    "byte": "b",
    "bit": "bit",
    "decibel": "db",
    "dalton": "da",
    "radian": "rad",
    "light-year": "ly",
    "light year": "ly",
    "lightyear": "ly",
}
_PREFIXES = {
    "nano": "n",
    "micro": "μ",
    "milli": "m",
    "centi": "c",
    "kilo": "k",
    "mega": "m",
    "giga": "g",
    "tera": "t",
}
_POWERS_OF_TEN = {"n": -9, "μ": -6, "u": -6, "c": -2, "k": 3, "t": 12}
_MEGA, _MILLI = (
    frozenset({"hz", "bit", "ev"}),
    frozenset({"a", "v", "s", "f", "h", "mol", "t", "c", "sv", "l"}),
)
"""What `m` means before a unit in lower case, where it can be told."""
_SYMBOLS = sorted({*_NAMES.values(), "u", "amu"})
_NAME = rf"(?P<prefix>{one_of(_PREFIXES)})?(?P<name>{one_of(_NAMES)})(?:s|es)?(?![\w-])"
_NAMED = re.compile(_NAME)
_SYMBOL = rf"(?:(?:[nμmckgt](?=[^\W\d]))?(?:{one_of(_SYMBOLS)}))(?![^\W\d])"
_ONE = rf"(?:{_NAME.replace('?P<prefix>', '?:').replace('?P<name>', '?:')}|{_SYMBOL})"
_POWER = r"(?:\^?-?\d|[²³⁻¹]+|\s(?:squared|cubed))?"
_BEHIND = re.compile(
    rf"\s?-?(?P<symbols>{_ONE}{_POWER}(?:(?:\s?/\s?|\sper\s(?:square\s|cubic\s)?|\s?[·⋅*]\s?|[\s-])\(?{_ONE}{_POWER}\)?){{0,3}})"
)
_WRITTEN = (
    (re.compile(r"\sper\ssquare\s(\w+)"), r"/\1²"),
    (re.compile(r"\sper\scubic\s(\w+)"), r"/\1³"),
    (re.compile(r"\sper\s|\s?/\s?"), "/"),
    (re.compile(r"\ssquared|\^2"), "²"),
    (re.compile(r"\scubed|\^3"), "³"),
    (re.compile(r"[·⋅*\s]([^\W\d]+)(?:\^?-1|⁻¹)(?!\d)"), r"/\1"),
    (re.compile(r"[·⋅*\s]([^\W\d]+)(?:\^?-2|⁻²)(?!\d)"), r"/\1²"),
    (re.compile(r"[·⋅*\s()-]"), ""),
)


def symbols_behind(low: str, place: int) -> tuple[str, int]:
    """Return the units of science that stand behind a number in a text in lower case, as symbols, and where they end.

    Empty where none stands there.
    """
    found = _BEHIND.match(low, place)
    if found is None:
        return "", place
    symbols = _NAMED.sub(_symbol, found["symbols"].replace("µ", "μ").replace("Ω", "ω"))
    for written, form in _WRITTEN:
        symbols = written.sub(form, symbols)
    return symbols, found.end()


def prefix_between(symbols: str, wanted: str) -> Fraction | None:
    """Return what a number with one unit is multiplied with to have another, which differs by its prefix: `ma`, `a`.

    None where the units are others, or a prefix in lower case can mean two.
    """
    one, other = _split(symbols), _split(wanted)
    if one is None or other is None or one[1] != other[1]:
        return None
    return Fraction(10) ** (one[0] - other[0])


def _split(symbols: str) -> tuple[int, str] | None:
    """Return the power of ten of a prefix, and the unit behind it."""
    if symbols in _SYMBOLS:
        return 0, symbols
    prefix, unit = symbols[:1], symbols[1:]
    if unit not in _SYMBOLS:
        return None
    if prefix == "m":
        return (6, unit) if unit in _MEGA else (-3, unit) if unit in _MILLI else None
    if prefix == "g":
        return (9, unit) if unit != "g" else None
    return (_POWERS_OF_TEN[prefix], unit) if prefix in _POWERS_OF_TEN else None


def _symbol(found: re.Match[str]) -> str:
    return _PREFIXES.get(found["prefix"] or "", "") + _NAMES[found["name"]]
