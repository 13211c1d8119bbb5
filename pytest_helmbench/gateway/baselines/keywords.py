"""Keywords of a JSON Schema and fields of a request, each read with its type: somebody else's may hold anything."""

from __future__ import annotations

from fractions import Fraction

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = [
    "a_schema",
    "an_object",
    "bound",
    "count",
    "flag",
    "fraction",
    "names",
    "parts",
    "parts_by_name",
    "text",
]


def a_schema(value: JsonValue) -> JsonObject:
    """Return a schema that is an object; `true` is one without keywords."""
    return {} if value is True else an_object(value)


def an_object(value: JsonValue) -> dict[str, JsonValue]:
    """Return an object.

    Raises:
        TypeError: It is none; all functions here raise it for a value of another type than is wanted.
    """
    if isinstance(value, dict):
        return value
    raise TypeError(f"{type(value).__name__} is no object")


def parts(schema: JsonObject, key: str) -> list[JsonValue]:
    """Return a list; empty where the keyword is missing."""
    value = schema.get(key, [])
    if isinstance(value, list):
        return value
    raise _wrong(key, value)


def parts_by_name(schema: JsonObject, key: str) -> dict[str, JsonValue]:
    """Return schemas by name; empty where the keyword is missing."""
    value = schema.get(key, {})
    if isinstance(value, dict):
        return value
    raise _wrong(key, value)


def names(schema: JsonObject, key: str) -> list[str]:
    """Return a list of names; empty where the keyword is missing, one where it holds a name alone."""
    value = schema.get(key, [])
    found = [value] if isinstance(value, str) else parts(schema, key)
    return [one if isinstance(one, str) else _refuse(key, one) for one in found]


def text(schema: JsonObject, key: str) -> str:
    """Return a text; empty where the keyword is missing."""
    value = schema.get(key, "")
    return value if isinstance(value, str) else _refuse(key, value)


def flag(schema: JsonObject, key: str) -> bool:
    """Return whether a keyword is set."""
    return bool(schema.get(key, False))


def bound(schema: JsonObject, key: str) -> int | None:
    """Return a number of items, characters or properties; None where the keyword is missing."""
    if key not in schema:
        return None
    value = schema[key]
    if isinstance(value, int | float):
        return int(value)
    raise _wrong(key, value)


def count(schema: JsonObject, key: str, missing: int = 0) -> int:
    """Return `bound`, or another number where the keyword is missing."""
    found = bound(schema, key)
    return missing if found is None else found


def fraction(schema: JsonObject, key: str) -> Fraction | None:
    """Return a number as it is written; None where the keyword is missing."""
    return Fraction(str(schema[key])) if key in schema else None


def _refuse(key: str, value: JsonValue) -> str:
    raise _wrong(key, value)


def _wrong(key: str, value: JsonValue) -> TypeError:
    return TypeError(f"{key} holds {type(value).__name__}")
