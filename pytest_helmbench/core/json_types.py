"""Types of a JSON document: what `json.loads` can return, for files and the wire.

A document is narrowed with `isinstance` where it is read; inside the program stand values with types of their own.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Never, TypeAlias, TypeGuard

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""An object that is only read; `isinstance(value, dict)` narrows a `JsonValue` to it."""

DEEPEST = 100
"""Levels of lists and mappings that a value of a model may have; Python may decode one with more and not write it."""

_DEEPEST_ANSWER = DEEPEST + 20
"""Levels of a whole HTTP answer: a value that is too deep stays too deep, whatever stands around it."""


def decoded_json(text: str | bytes) -> JsonValue:
    """Return the value of a text, cut below 120 levels; None as well for a text that Python cannot read as JSON."""
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):  # ValueError: also a number of thousands of digits
        return None
    opened = (
        text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
    )
    for innermost in _nested(value, _DEEPEST_ANSWER - 1) if opened > _DEEPEST_ANSWER else ():
        innermost.clear()
    return value


def is_deeper(found: JsonValue, most: int = DEEPEST) -> bool:
    """Return whether lists and mappings are nested more than `most` deep."""
    return bool(_nested(found, most))


def _nested(value: JsonValue, depth: int) -> list[list[JsonValue] | dict[str, JsonValue]]:
    """Return the lists and mappings that stand in so many others."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(depth):
        if not level:
            break
        parts = (outer.values() if isinstance(outer, dict) else outer for outer in level)
        level = [inner for part in parts for inner in part if isinstance(inner, dict | list)]
    return level


def json_object(value: object) -> JsonObject:
    """Return an object; an empty one in place of any other value."""
    return value if isinstance(value, dict) else {}


def json_objects(value: object) -> list[JsonObject]:
    """Return the objects of a list; none for any other value."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def is_number(value: object) -> TypeGuard[int | float]:
    """Return whether a value is a number; true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def as_text(value: object) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def refused_constant(name: str) -> Never:
    """Refuse `NaN` and the infinities, which Python reads (`parse_constant`).

    Raises:
        ValueError: Always.
    """
    raise ValueError(f"{name} is not JSON")


def without_twins(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return an object as `json` decodes it (`object_pairs_hook`).

    Raises:
        ValueError: A key stands twice, so the object says two things.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found


def same_json(one: JsonValue, other: JsonValue) -> bool:
    """Return whether two values are the same JSON: 1 is 1.0, and true is not 1."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same_json(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(same_json, one, other))
    return isinstance(one, bool) is isinstance(other, bool) and one == other
