"""Candidates for strings and numbers of a JSON Schema, and values like a given one for lists without repetition."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction
from itertools import islice
from typing import Protocol

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.gateway.baselines.keywords import bound, count, fraction, text
from pytest_helmbench.gateway.baselines.pattern_text import matching_texts
from pytest_helmbench.gateway.baselines.tastes import Taste

__all__ = ["NUMBER_KEYWORDS", "Fits", "numbers", "strings", "values_like"]

NUMBER_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_MOST_STEPS = 100
_MOST_VARIANTS = 1_000
_FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "name@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "json-pointer": "/ok",
    "regex": "ok",
    "uri": "https://example.org/",
    "uri-reference": "/ok",
    "uuid": "00000000-0000-4000-8000-000000000000",
}


class Fits(Protocol):
    """Tells whether a schema allows a value."""

    def __call__(self, schema: JsonObject | JsonValue, value: JsonValue, /) -> bool:
        """Return whether it does."""
        ...


def strings(schema: JsonObject, taste: Taste) -> Iterator[str]:
    """Yield texts of the right length, form or pattern."""
    least, most = count(schema, "minLength"), bound(schema, "maxLength")
    if "pattern" in schema:
        pattern = text(schema, "pattern")
        samples = (one for extra in range(max(least, 1) + 2) for one in matching_texts(pattern, extra))
        yield from (one for one in samples if least <= len(one) and (most is None or len(one) <= most))
        return
    wanted = _FORMATS.get(text(schema, "format"), "") or taste.words()
    for words in (wanted, "ok", "yes", "no", "a", "0", "none", ""):
        padded = words if len(words) >= least else ((words or "x") * least)[:least]
        yield padded[:most]


def numbers(schema: JsonObject, taste: Taste, fits: Fits, *, whole: bool) -> Iterator[int | float]:
    """Yield numbers within the bounds, by whole steps first; `whole` for those without a fraction alone."""
    step = fraction(schema, "multipleOf") or Fraction(1)
    step = Fraction(step.numerator) if whole else step
    low = _highest(fraction(schema, "minimum"), fraction(schema, "exclusiveMinimum"))
    high = _lowest(fraction(schema, "maximum"), fraction(schema, "exclusiveMaximum"))
    part = {key: schema[key] for key in NUMBER_KEYWORDS if key in schema}
    fitting = [number for number in _steps(step, low, high) if fits(part, number)]
    if fitting:
        yield from taste.ranked(fitting) if low is not None and high is not None else fitting
        if not whole:
            halves = (number + 0.5 for number in fitting)
            yield from (half for half in halves if fits(part, half))
    elif not whole and low is not None and high is not None:
        yield float((low + high) / 2)  # the bounds are closer than one step


def values_like(value: JsonValue) -> Iterator[JsonValue]:
    """Yield the value and others of its type, each a little different."""
    yield value
    for number in range(1, _MOST_VARIANTS):
        if isinstance(value, bool):
            yield not value
            return
        if isinstance(value, str):
            yield f"{value}{number}"
            yield f"{value[: -len(str(number))]}{number}"
        elif isinstance(value, int | float):
            yield value + number
            yield value - number
        elif isinstance(value, list):
            yield value * (number + 1)
            if value:
                yield from ([*value[:-1], item] for item in islice(values_like(value[-1]), 3))
        elif isinstance(value, dict):
            for name, item in value.items():
                yield from ({**value, name: other} for other in islice(values_like(item), number + 1))
        else:
            return


def _steps(step: Fraction, low: Fraction | None, high: Fraction | None) -> Sequence[int | float]:
    """Return multiples of a step, from the low bound or around 0."""
    first = 0 if low is None else math.ceil(low / step)
    if low is None and high is not None:
        first = min(0, math.floor(high / step) - 8)
    last = first + _MOST_STEPS if high is None else math.floor(high / step)
    return [_json_number(step * index) for index in range(first, min(last, first + _MOST_STEPS) + 1)]


def _highest(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return max((bound for bound in (one, other) if bound is not None), default=None)


def _lowest(one: Fraction | None, other: Fraction | None) -> Fraction | None:
    return min((bound for bound in (one, other) if bound is not None), default=None)


def _json_number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)
