"""Walking a JSON Schema: its subschemas with their places, its references, its types."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.json_fields import a_mapping, texts
from pytest_helmbench.files.yaml_text import Place

BRANCHES = ("anyOf", "oneOf", "allOf")
"""Keys of alternatives."""

REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
"""Keys that lead to another schema."""

_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas", "dependencies")
_SINGLES = (
    "items",
    "additionalItems",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "not",
    "if",
    "then",
    "else",
    "contains",
    "contentSchema",
    "propertyNames",
)
_LISTS = (*BRANCHES, "prefixItems")


def subschemas(schema: JsonValue, place: Place) -> Iterator[tuple[Place, JsonObject]]:
    """Yield a schema and every schema in it, each with its place.

    Args:
        schema: The schema; what is no object is passed over.
        place: Its own place.
    """
    if not isinstance(schema, dict):
        return
    yield place, schema
    for key in _SINGLES:
        yield from subschemas(schema.get(key), (*place, key))
    for key in _MAPS:
        for name, part in a_mapping(schema.get(key)).items():
            yield from subschemas(part, (*place, key, name))
    for key in _LISTS:
        parts = schema.get(key)
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            yield from subschemas(part, (*place, key, index))


def types_of(schema: JsonObject) -> tuple[str, ...]:
    """Return the types that a schema names itself."""
    return texts(schema.get("type"))


def names_in(schema: JsonObject, key: str) -> tuple[str, ...]:
    """Return the names that stand in a schema's `properties` or `required`."""
    found = schema.get(key)
    return tuple(found) if isinstance(found, dict) else texts(found)


def resolved(root: JsonObject, target: JsonValue) -> JsonObject | None:
    """Return the subschema that a `$ref` leads to; None where it leads nowhere in this schema."""
    if not isinstance(target, str) or not target.startswith("#"):
        return None
    if target == "#":
        return root
    if not target.startswith("#/"):
        named = (
            part
            for _, part in subschemas(dict(root), ())
            if target[1:] in (part.get("$anchor"), part.get("$dynamicAnchor"))
        )
        return next(named, None)
    found: JsonValue = dict(root)
    for step in target[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found if isinstance(found, dict) else None
