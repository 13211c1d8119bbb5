"""The JSON Schemas of our own outputs, which stand as files beside this module."""

from __future__ import annotations

import json
from importlib.resources import files
from types import NoneType, UnionType
from typing import get_args

from pytest_helmbench.core.json_types import JsonValue

__all__ = ["own_schema", "part_of", "schema_of"]

_JSON_TYPES: dict[object, JsonValue] = {
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    NoneType: "null",
}


def own_schema(name: str) -> dict[str, JsonValue]:
    """Return the schema in `NAME.json`."""
    loaded: dict[str, JsonValue] = json.loads(files(__package__).joinpath(f"{name}.json").read_text("utf-8"))
    return loaded


def part_of(schema: dict[str, JsonValue], *keys: str) -> dict[str, JsonValue]:
    """Return the object that stands in a schema under a key, and in that under the next.

    Raises:
        TypeError: There stands something else.
    """
    for key in keys:
        found = schema[key]
        if not isinstance(found, dict):
            raise TypeError(f"{key} is no object")
        schema = found
    return schema


def schema_of(kind: object) -> JsonValue:
    """Return the schema of a value that is text, a truth or a number, or one of these and None.

    Args:
        kind: The type, as annotations have it.
    """
    kinds = get_args(kind) if isinstance(kind, UnionType) else (kind,)
    names: list[JsonValue] = [_JSON_TYPES[kind] for kind in kinds]
    return {"type": names[0] if len(names) == 1 else names}
