"""Typed values out of a JSON document that its schema has already accepted."""

from __future__ import annotations

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = ["a_mapping", "a_number", "a_text", "a_whole_number", "numbers", "texts"]


def a_mapping(value: JsonValue) -> JsonObject:
    """Return the value where it is a mapping; else an empty one."""
    return value if isinstance(value, dict) else {}


def a_text(value: JsonValue) -> str | None:
    """Return the value where it is text; else None."""
    return value if isinstance(value, str) else None


def a_number(value: JsonValue) -> float | None:
    """Return the value where it is a number; else None."""
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


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
