"""JSON as packs are read: what it may not hold is refused; and typed values out of a checked document."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator

from pytest_helmbench.core.json_types import DEEPEST, JsonObject, JsonValue, is_deeper, is_number
from pytest_helmbench.core.light_dataclass import dataclass

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")


def a_mapping(value: JsonValue) -> JsonObject:
    """Return the value where it is a mapping; else an empty one."""
    return value if isinstance(value, dict) else {}


def a_text(value: JsonValue) -> str | None:
    """Return the value where it is text; else None."""
    return value if isinstance(value, str) else None


def a_number(value: JsonValue) -> float | None:
    """Return the value where it is a number; else None."""
    return value if is_number(value) else None


def a_whole_number(value: JsonValue) -> int | None:
    """Return the value where it is a number (`2.0` is 2); else None."""
    number = a_number(value)
    return None if number is None else int(number)


def texts(value: JsonValue) -> tuple[str, ...]:
    """Return the texts of a list; of a single text only that one."""
    if isinstance(value, str):
        return (value,)
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def numbers(value: JsonValue) -> dict[str, float]:
    """Return the numbers of a mapping by key."""
    found = {key: a_number(item) for key, item in a_mapping(value).items()}
    return {key: number for key, number in found.items() if number is not None}


class NotJSONError(Exception):
    """A text is not JSON at all.

    Args:
        message: Why, without anything of the text.
        line: 1-based line in the text.
    """

    def __init__(self, message: str, line: int = 1) -> None:
        self.line = line
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Flaw:
    """One thing that is wrong inside a JSON text.

    Args:
        place: Keys and list positions that lead to it.
        key: The key that stands twice; empty for other flaws.
    """

    place: tuple[str | int, ...]
    message: str
    hint: str
    key: str = ""


class _Twice(dict[str, JsonValue]):
    """An object that was written with the same key more than once."""

    keys_twice: tuple[str, ...] = ()


class StrictJSON:
    """Decodes JSON texts, one at a time; not for several threads at once."""

    def __init__(self) -> None:
        self._odd = False
        self._decoder = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._constant, parse_float=self._float
        )

    def decode(self, text: str) -> tuple[JsonValue, tuple[Flaw, ...]]:
        """Return what a text says and the flaws inside.

        Raises:
            NotJSONError: With a sentence that holds nothing of the text.
        """
        self._odd = False
        try:
            found: JsonValue = self._decoder.decode(text)
        except json.JSONDecodeError as error:
            raise NotJSONError(_where(error), error.lineno) from error
        except RecursionError as error:
            raise NotJSONError("it is nested too deeply") from error
        except ValueError as error:  # a whole number of thousands of digits
            raise NotJSONError("a number in it is too long") from error
        if text.count("[") + text.count("{") > DEEPEST and is_deeper(found, DEEPEST + 1):
            raise NotJSONError("it is nested too deeply")
        if self._odd or ("\\u" in text and _SURROGATE_ESCAPE.search(text)):
            return found, tuple(_flaws(found, ()))
        return found, ()

    def _object(self, pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
        found = dict(pairs)
        if len(found) == len(pairs):
            return found
        self._odd = True
        twice = _Twice(found)
        keys = [key for key, _ in pairs]
        twice.keys_twice = tuple(key for key in found if keys.count(key) > 1)
        return twice

    def _constant(self, name: str) -> float:
        self._odd = True
        return float(name.replace("Infinity", "inf"))

    def _float(self, text: str) -> float:
        found = float(text)
        if math.isinf(found):  # 1e999
            self._odd = True
        return found


def is_encodable(text: str) -> bool:
    """Return whether a text holds whole characters only."""
    return _SURROGATE.search(text) is None


def _where(error: json.JSONDecodeError) -> str:
    message = error.msg[:1].lower() + error.msg[1:]
    return f"{message} (column {error.colno})"


def _flaws(found: JsonValue, place: tuple[str | int, ...]) -> Iterator[Flaw]:
    if isinstance(found, _Twice):
        for key in found.keys_twice:
            yield Flaw((*place, key), "the key stands here twice", "keep one of them", key)
    if isinstance(found, dict):
        for key, value in found.items():
            if _SURROGATE.search(key):
                yield _half_character(place)
            yield from _flaws(value, (*place, key))
    elif isinstance(found, list):
        for index, value in enumerate(found):
            yield from _flaws(value, (*place, index))
    elif isinstance(found, float) and not math.isfinite(found):
        yield Flaw(place, "the number is not finite", "JSON knows no NaN and no Infinity")
    elif isinstance(found, str) and _SURROGATE.search(found):
        yield _half_character(place)


def _half_character(place: tuple[str | int, ...]) -> Flaw:
    hint = "write the character itself, or both halves of the \\u pair"
    return Flaw(place, "the text holds half a character (a lone surrogate)", hint)
