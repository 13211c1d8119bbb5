"""The speed of a model in what its pack says of a scenario: keys, units and words that tell of it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = ["has_speed", "is_speed_unit"]

_OF_THE_MODEL = frozenset({"rawLog", "output"})
"""What may be the model's own words: they say nothing of its speed."""

_PROSE = frozenset({"summary", "note"})
_NAMES = (
    "ttft|ttfb|tps|itl|tpot|throughput|latenc(?:y|ies)|speeds?"
    "|durchsatz|latenz(?:en)?|geschwindigkeit(?:en)?|tempo"
)
_SECOND = "(?:s|secs?|seconds?|sek|sekunden?|min|minutes?|minuten?)"
_COUNTED = r"(?:tok(?:en)?s?|t|ch(?:ar(?:acter)?)?s?|zeichen|words?|w\u00f6rter|chunks?|bytes?)"
_PER_SECOND = rf"{_COUNTED}[ _-]*(?:/|per|pro)[ _-]*{_SECOND}(?![a-z])"
_FIRST = "time[ _-]*to[ _-]*first|(?:first|inter|per)[ _-]*(?:output[ _-]*)?token|erstes?[ _-]*token"
_TIME = r"(?:ms|millis(?:econds?)?|s|secs?|seconds?|sekunden?)(?![a-z])"
_NUMBER = r"\d[\d.,\u00a0]*+"  # taken whole: what follows it is looked at

_SPEED_KEY = re.compile(
    rf"(?:^|_)(?:{_NAMES})(?:_|$)|{_PER_SECOND}|(?:^|_)per_{_SECOND}(?:_|$)|{_FIRST}"
    r"|(?:^|_)tok(?:en)?s?_rate(?:_|$)"
)
_TIME_KEY = re.compile(
    r"(?:^|_)(?:ms|millis|milliseconds|secs?|seconds?)$|(?:^|_)(?:response|reply)_time(?:_|$)"
)
_SPAN_KEY = re.compile(
    r"(?:^|_)(?:start(?:ed|s)?|beg[iau]n|end(?:ed|s)?|finish(?:ed)?|completed?|duration|elapsed|total|timeout|limit)"
    r"(?:_(?:at|on|time|timestamp|epoch|ms|millis|milliseconds|secs?|s|seconds?|ns))*$"
)
_SPEED_UNIT = re.compile(rf"{_PER_SECOND}|(?:^|[^a-z])(?:{_NAMES})(?![a-z])|^{_TIME}$", re.IGNORECASE)
_SPEED_WORDS = re.compile(
    rf"{_NUMBER} *{_PER_SECOND}"
    rf"|(?<![a-z])(?:{_NAMES})(?![a-z])[^\d.;\n]{{0,30}}{_NUMBER}(?! *(?:km|m|mph|knots)(?![a-z]))"
    rf"|{_NUMBER} *{_TIME}[^\d.;\n]{{0,30}}(?:{_NAMES}|{_FIRST})(?![a-z])"
    rf"|(?:{_FIRST})[^\d.;\n]{{0,30}}{_NUMBER} *{_TIME}",
    re.IGNORECASE,
)


def has_speed(stated: JsonObject) -> bool:
    """Return whether a result says how fast its model was.

    A number among the timings says so unless it is the start, the end or the duration; so does a key, a unit, or a
    number with its unit in summary or note. What may be the model's own words is not read.

    Args:
        stated: All that the pack said.
    """
    said = {name: value for name, value in stated.items() if name not in _OF_THE_MODEL}
    return any(_is_timing(key, value) for key, value in _leaves(said.pop("timings", None))) or any(
        _is_speed(key, value) for key, value in _leaves(said)
    )


def is_speed_unit(unit: str) -> bool:
    """Return whether a number with this unit says how fast its model was."""
    return _SPEED_UNIT.search(unit.strip()) is not None


def _leaves(value: JsonValue, key: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield the values below a value with the keys that lead to each, in snake case."""
    waiting: list[tuple[str, JsonValue]] = [(key, value)]
    while waiting:
        path, one = waiting.pop()
        if isinstance(one, dict):
            waiting.extend((f"{path}.{_snake(name)}", part) for name, part in one.items())
        elif isinstance(one, list):
            waiting.extend((path, part) for part in one)
        else:
            yield path.removeprefix("."), one


def _snake(name: str) -> str:
    """Return `tokens_per_second` for `tokensPerSecond` and `Tokens per second`."""
    words = re.sub(r"([a-z0-9])(?=[A-Z])|([A-Z])(?=[A-Z][a-z])", r"\1\2_", name)
    return re.sub(r"[\s._-]+", "_", words).lower()


def _is_number(value: JsonValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_timing(path: str, value: JsonValue) -> bool:
    return _is_number(value) and not any(_SPAN_KEY.search(key) for key in path.split("."))


def _is_speed(path: str, value: JsonValue) -> bool:
    keys = path.split(".")
    if isinstance(value, str):
        if keys[-1].endswith("unit"):
            return is_speed_unit(value)
        if path in _PROSE:
            return _SPEED_WORDS.search(value) is not None
    if not _is_number(value):
        return any(_SPEED_KEY.search(key) for key in keys)
    return any(_SPEED_KEY.search(key) for key in keys) or (
        _TIME_KEY.search(keys[-1]) is not None and not any(_SPAN_KEY.search(key) for key in keys)
    )
