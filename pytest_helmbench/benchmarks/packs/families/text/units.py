"""Units behind numbers, as far as the same amount is written in another one: `0.33 km` is `330 m`, `1,083 feet` nearly.

Of units that stand together only speeds are known: `m²` is none of these.
"""

from __future__ import annotations

import re
from fractions import Fraction

from pytest_helmbench.benchmarks.packs.families.text.numbers import Number, numbers
from pytest_helmbench.benchmarks.packs.families.text.vocabulary import one_of, word_set
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = [
    "DOLLARS",
    "Unit",
    "asked_unit",
    "is_convertible",
    "is_only_given",
    "is_other_money",
    "is_same_amount",
    "quantity",
    "unit_behind",
    "unit_of",
]

_NEARLY = Fraction(5, 1000)
"""What a conversion between systems of units may round."""


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit.

    Args:
        kind: What it measures.
        system: Within one, amounts are converted exactly; currencies and temperatures are never converted.
        factor: How much of the kind's first unit it is.
    """

    kind: str
    system: str
    factor: Fraction


# Kind, system, factor, spellings that stand for it anywhere, spellings that do so only behind a number.
_LIST: tuple[tuple[str, str, str, str, str], ...] = (
    ("length", "metric", "1/1000000000", "nanometre nanometres nanometer nanometers nm", ""),
    (
        "length",
        "metric",
        "1/1000000",
        "micrometre micrometres micrometer micrometers micron microns μm",
        "um",
    ),
    ("length", "metric", "0.001", "millimetre millimetres millimeter millimeters", "mm"),
    ("length", "metric", "0.01", "centimetre centimetres centimeter centimeters cm", ""),
    ("length", "metric", "1", "metre metres meter meters", "m"),
    ("length", "metric", "1000", "kilometre kilometres kilometer kilometers km kms", ""),
    ("length", "imperial", "0.0254", "inch inches", '"'),
    ("length", "imperial", "0.3048", "foot feet", "ft"),
    ("length", "imperial", "0.9144", "yards", "yard yd"),
    ("length", "imperial", "1609.344", "mile miles", "mi"),
    ("mass", "metric", "0.001", "milligram milligrams mg", ""),
    ("mass", "metric", "1", "gram grams gramme grammes", "g"),
    ("mass", "metric", "1000", "kilogram kilograms kg kgs", ""),
    ("mass", "metric", "1000000", "tonne tonnes", "t"),
    ("mass", "imperial", "28.349523125", "ounce ounces", "oz"),
    ("mass", "imperial", "453.59237", "", "pound pounds lb lbs"),
    ("time", "metric", "0.001", "millisecond milliseconds", "ms"),
    ("time", "metric", "1", "seconds", "second sec secs s"),
    ("time", "metric", "60", "minutes", "minute min mins"),
    ("time", "metric", "3600", "hours", "hour hr hrs h"),
    ("time", "metric", "86400", "days", "day"),
    ("time", "metric", "604800", "weeks", "week"),
    ("volume", "metric", "0.001", "millilitre millilitres milliliter milliliters ml", ""),
    ("volume", "metric", "1", "litre litres liter liters", "l"),
    ("area", "metric", "0.0001", "cm² cm^2 sq_cm square_centimetres square_centimeters square_cm", ""),
    ("area", "metric", "1", "m² m^2 sq_m square_metres square_meters square_metre square_meter", ""),
    ("area", "metric", "1000000", "km² km^2 sq_km square_kilometres square_kilometers square_km", ""),
    ("area", "metric", "10000", "hectares hectare ha", ""),
    ("area", "imperial", "0.09290304", "ft² ft^2 sq_ft square_feet", ""),
    ("area", "imperial", "2589988.110336", "mi² mi^2 sq_mi square_miles", ""),
    ("volume", "metric", "1000", "m³ m^3 cubic_metres cubic_meters", ""),
    ("volume", "metric", "0.001", "cm³ cm^3 cubic_centimetres cubic_centimeters", ""),
    ("speed", "metric", "1", "m/s mps metres_per_second meters_per_second", ""),
    (
        "speed",
        "metric",
        "5/18",
        "km/h kph kmh km/hr kilometres_per_hour kilometers_per_hour km_per_hour",
        "",
    ),
    ("speed", "metric", "1000", "km/s kilometres_per_second kilometers_per_second", ""),
    ("speed", "imperial", "0.44704", "mph mi/h miles_per_hour miles_an_hour", ""),
    ("money", "usd", "1", "dollars usd", "dollar $"),
    ("money", "eur", "1", "euros eur", "euro €"),
    ("money", "gbp", "1", "sterling gbp", "£"),
    ("money", "cent", "0.01", "cents ¢", "cent"),
    ("money", "jpy", "1", "yen jpy", "¥"),
    ("money", "inr", "1", "rupees inr", "rupee ₹"),
)
_CELSIUS = Unit("temperature", "celsius", Fraction(1))
_FAHRENHEIT = Unit("temperature", "fahrenheit", Fraction(1))
_KELVIN = Unit("temperature", "kelvin", Fraction(1))
_NAMED: dict[str, Unit] = {}
_BEHIND: dict[str, Unit] = {"°c": _CELSIUS, "°f": _FAHRENHEIT, "c": _CELSIUS, "f": _FAHRENHEIT, "k": _KELVIN}
for _kind, _system, _factor, _names, _short in _LIST:
    _unit = Unit(_kind, _system, Fraction(_factor))
    _NAMED.update(dict.fromkeys(word_set(_names), _unit))
    _BEHIND.update(dict.fromkeys(word_set(_short), _unit))
for _name, _unit in (("celsius", _CELSIUS), ("fahrenheit", _FAHRENHEIT), ("kelvin", _KELVIN)):
    _NAMED[_name] = _BEHIND[f"degrees {_name}"] = _BEHIND[f"°{_name}"] = _unit
_BEHIND |= _NAMED
_COMPOUND = r"(?!\w)(?!\s?(?:/|\^|per\b|·|\*|²|³))"
_PRICE = (
    rf"(?<!\w)(?:{one_of(name for name, unit in _BEHIND.items() if unit.kind == 'money' and name.isalpha())})"
)
_BEHIND_NUMBER = re.compile(rf"\s?-?(?P<unit>{one_of(_BEHIND)}{_COMPOUND}|{_PRICE}(?=\s(?:per|each|a)\s))")
_IN_QUESTION = re.compile(rf"(?<![\w/])(?P<unit>{one_of(_NAMED)}){_COMPOUND}")
_GIVEN = re.compile(rf"\d[\s-]?(?P<unit>{one_of(_NAMED)}){_COMPOUND}")
_WANTED = re.compile(
    rf"(?<!\w)(?:in|to|into|as|how many)\s(?:degrees\s)?(?P<unit>{one_of(_NAMED)}){_COMPOUND}"
)
_COUNTED = re.compile(
    r"(?<!\w)how many"
    r"(?:\s(?!(?:in|on|for|per|of|over|from|to|at|during|is|are|was|were|do|does|did|will|can)\s)[^\W\d]+){1,3}"
)
"""`how many pages does he read in four weeks` asks for no weeks."""
_ASKS_FOR_SHARE = re.compile(
    r"(?<!\w)(?:(?:what|which)\s(?:fraction|share|proportion|percentage|percent|part)|ratio|probability)(?!\w)"
    r"|as a (?:fraction|share|proportion)(?!\w)"
)
_ASKS_FOR_KIND = (
    ("money", re.compile(r"(?<!\w)(?:costs?|prices?|pays?|earns?|spends?)(?!\w)")),
    ("area", re.compile(r"(?<!\w)(?:area)(?!\w)")),
    ("time", re.compile(r"(?<!\w)(?:time)(?!\w)")),
)
"""What else a question asks for than the only unit that it names: `How much do 5 kg cost?`"""
_SIGNS = {"€": "euros", "£": "gbp", "¥": "yen", "₹": "rupees"}


DOLLARS = _NAMED["dollars"]


def unit_of(low: str, number: Number) -> Unit | None:
    """Return the unit that a number of a text in lower case has; None for none that is known."""
    sign = _SIGNS.get(low[max(0, number.start - 1) : number.start]) or _SIGNS.get(
        low[number.start : number.start + 1]
    )
    if sign is not None:
        return _NAMED[sign]
    found = _BEHIND_NUMBER.match(low, number.end)
    return None if found is None else _BEHIND[found["unit"]]


def unit_behind(low: str, number: Number) -> tuple[Unit, int] | None:
    """Return the unit right behind a number of a text in lower case, and where it ends; None for none that is known."""
    found = _BEHIND_NUMBER.match(low, number.end)
    return None if found is None else (_BEHIND[found["unit"]], found.end())


def is_other_money(text: str) -> bool:
    """Return whether a text is an amount of money in another currency than dollars, and nothing else."""
    found = quantity(text)
    return found is not None and found[1].kind == "money" and found[1] != _NAMED["dollars"]


def is_convertible(unit: Unit) -> bool:
    """Return whether amounts in a unit are the same in another one of its kind."""
    return unit.kind not in ("money", "temperature")


def asked_unit(question: str) -> Unit | None:
    """Return the unit that a question in lower case asks for; None for none, several, or a share."""
    if _ASKS_FOR_SHARE.search(question) is not None:
        return None
    wanted = {_NAMED[found["unit"]] for found in _WANTED.finditer(question)}
    if len(wanted) == 1:
        return wanted.pop()
    counted = _COUNTED.search(question)
    if counted is not None and not any(word in _NAMED for word in counted[0].split()[2:]):
        return None
    named = {_NAMED[found["unit"]] for found in _IN_QUESTION.finditer(question)}
    unit = named.pop() if len(named) == 1 else None
    kinds = {kind for kind, asks in _ASKS_FOR_KIND if asks.search(question) is not None}
    return unit if unit is None or not kinds or unit.kind in kinds else None


def is_only_given(question: str, unit: Unit) -> bool:
    """Return whether a question in lower case has a unit behind numbers alone: `two villages are 7 cm apart`."""
    given = sum(_NAMED[found["unit"]] == unit for found in _GIVEN.finditer(question))
    return given == sum(_NAMED[found["unit"]] == unit for found in _IN_QUESTION.finditer(question))


def quantity(text: str) -> tuple[Number, Unit] | None:
    """Return the number and unit that a text consists of; None for any other text."""
    low = text.strip(" .").lower()
    money = low.startswith("$")
    low = low.lstrip("$ ")
    found = next(numbers(low), None)
    if found is None or low[: found.start].strip("€£¥₹ "):
        return None
    if money and found.end == len(low):
        return found, _NAMED["dollars"]
    unit = unit_of(low, found)
    behind = _BEHIND_NUMBER.match(low, found.end)
    if (
        unit is None
        or (behind is None and found.end < len(low))
        or (behind is not None and behind.end() < len(low))
    ):
        return None
    return found, unit


def _is_same_currency(one: Unit, other: Unit) -> bool:
    """Return whether amounts are in one currency; cents are dollars' and euros'."""
    systems = {one.system, other.system}
    return one.kind == other.kind == "money" and systems in ({"cent", "usd"}, {"cent", "eur"})


def is_same_amount(
    number: Number, unit: Unit, wanted: Number, wanted_unit: Unit, tolerance: float = 0.0
) -> bool:
    """Return whether two amounts are one, in whatever unit; between systems of units half a per cent is rounding.

    Source:
        |a − b| ≤ max(tolerance, 1e-9 × max(|a|, |b|)) in the unit that is wanted; 5e-3 between systems.
    """
    if unit == wanted_unit:
        return number.equals(wanted, tolerance)
    if unit.kind != wanted_unit.kind or not (is_convertible(unit) or _is_same_currency(unit, wanted_unit)):
        return False
    value = number.values[0] * unit.factor / wanted_unit.factor
    target = wanted.values[0]
    rounding = _NEARLY if unit.system != wanted_unit.system else Fraction(1, 10**9)
    bound = (
        max(Fraction(str(tolerance)), max(abs(value), abs(target)) * rounding) if tolerance < 1e300 else None
    )
    return bound is None or abs(value - target) <= bound
