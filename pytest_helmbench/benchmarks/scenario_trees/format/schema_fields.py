"""Fields of a reply in its response schema: the values and types that it allows, as far as rules need them."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator
from decimal import Decimal, InvalidOperation

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault, listed
from pytest_helmbench.files.strict_json import a_mapping, texts
from pytest_helmbench.files.yaml_text import Place
from pytest_helmbench.judging.comparisons.exact import matches

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
_MOST_EXAMPLES = 100
_OF_KINDS: JsonObject = {"object": {}, "array": [], "string": "", "integer": 0, "number": 0, "boolean": True}


def subschemas(schema: JsonValue, place: Place) -> Iterator[tuple[Place, JsonObject]]:
    """Yield a schema and every schema in it, each with its place.

    Args:
        schema: The schema; what is not an object is passed over.
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
        for index, part in enumerate(_listed(schema.get(key))):
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
        return None
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


@dataclass(frozen=True, slots=True)
class FoundField:
    """The part of a schema about one field: its alternatives, or the known names where it is not among them."""

    parts: tuple[JsonObject, ...] = ()
    unknown: str | None = None
    known: tuple[str, ...] = ()


def _allowed(part: JsonObject) -> list[JsonValue] | None:
    """Return the values that a subschema lists; None where it lists none."""
    listed_values = part.get("enum")
    if isinstance(listed_values, list):
        return listed_values
    return [part["const"]] if "const" in part else None


def unreachable(value: str, parts: Collection[JsonObject], field: str, line: int | None) -> Iterator[Fault]:
    """Yield why no reply can hold a value that a rule expects.

    Args:
        value: As written.
        parts: What the schema says of the field, or of the items of its list; none where it leaves that open.
        field: Its name, for the message.
        line: Where the value is written.
    """
    if not parts or any(_may_hold(part, value) for part in parts):
        return
    menu = [item for part in parts for item in _allowed(part) or ()]
    if menu:
        names = [item if isinstance(item, str) else json.dumps(item) for item in menu]
        message = f"no reply can hold {value!r} in {field!r}: the response schema does not list it"
        yield Fault(line, message, listed(value, names, "its values"))
    else:
        kinds = sorted({kind for part in parts for kind in kinds_of(part)})
        message = f"no reply can hold {value!r} in {field!r}, which is {' or '.join(kinds)}"
        yield Fault(line, message, "change the expected value or the response schema")


def holds_text_alone(part: JsonObject) -> bool:
    """Return whether a subschema asks for a text, and for nothing but `null` beside it."""
    allowed = _allowed(part)
    return kinds_of(part) == ("string",) if allowed is None else all(isinstance(one, str) for one in allowed)


def _may_hold(part: JsonObject, written: str) -> bool:
    """Return whether some value that fits a subschema is the one that is written."""
    allowed = _allowed(part)
    if allowed is not None:
        return any(matches(written, item) for item in allowed)
    kinds = kinds_of(part)
    return not kinds or any(_fits(written, kind) for kind in kinds)


def _fits(written: str, kind: str) -> bool:
    if kind in ("boolean", "null"):
        return any(matches(written, item) for item in ((True, False) if kind == "boolean" else (None,)))
    if kind not in ("integer", "number"):
        return True
    try:
        number = Decimal(written)
    except InvalidOperation:
        return False
    return number.is_finite() and (kind == "number" or number == number.to_integral_value())


def found_field(schema: JsonObject, path: str) -> FoundField:
    """Follow a key or dotted path; no parts and nothing unknown where the schema leaves it open."""
    whole = _step(schema, (schema,), path)
    return whole if whole.parts or "." not in path else followed(schema, path.split("."))


def followed(schema: JsonObject, names: Iterable[str | None]) -> FoundField:
    """Follow keys and places in lists, of which None means all."""
    parts: tuple[JsonObject, ...] = (schema,)
    for name in names:
        found = _step(schema, parts, name)
        if not found.parts:
            return found
        parts = found.parts
    return FoundField(parts)


def _step(root: JsonObject, parts: tuple[JsonObject, ...], name: str | None) -> FoundField:
    expanded = _laid_out(root, parts)
    if (name is None or name.isdecimal()) and (inside := item_parts(root, expanded)):
        return FoundField(inside)
    known = [(key, part) for one in expanded for key, part in a_mapping(one.get("properties")).items()]
    named = [part for key, part in known if name in (None, key)]
    found = _laid_out(root, (part for part in named if isinstance(part, dict)))
    if found or named or name is None or not known:
        return FoundField(found)
    return FoundField((), name, tuple(dict(known)))


def _laid_out(root: JsonObject, parts: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Return subschemas with their references and branches side by side, each once."""
    kept, seen = list[JsonObject](), set[int]()
    waiting = [*parts][::-1]
    while waiting:
        part = waiting.pop()
        if id(part) in seen:
            continue
        seen.add(id(part))
        target = resolved(root, part.get("$ref"))
        inner: list[JsonValue] = [item for key in BRANCHES for item in _listed(part.get(key))]
        branches = [item for item in (*inner, target) if isinstance(item, dict)]
        if not branches or {"type", "properties", "enum", "const"} & part.keys():
            kept.append(part)
        waiting += branches[::-1]
    return tuple(kept)


def _listed(value: JsonValue) -> list[JsonValue]:
    return value if isinstance(value, list) else []


def item_parts(root: JsonObject, parts: Iterable[JsonObject]) -> tuple[JsonObject, ...]:
    """Return what a schema says of the items of lists.

    Args:
        root: The whole schema, for references.
        parts: What it says of the lists.
    """
    items = (part.get("items") for part in parts)
    return _laid_out(root, (one for one in items if isinstance(one, dict)))


def kinds_of(part: JsonObject) -> tuple[str, ...]:
    """Return the types that a value may have, `null` left out where there are others."""
    return tuple(kind for kind in types_of(part) if kind != "null") or types_of(part)


def example(root: JsonObject, open_value: JsonValue) -> JsonValue:
    """Return a small value that goes where a schema leads, with `open_value` where no type is asked for."""
    left = _MOST_EXAMPLES

    def of(above: Iterable[JsonObject]) -> JsonValue:
        nonlocal left
        left -= 1
        parts = _laid_out(root, above)
        menu = [value for part in parts for value in _allowed(part) or ()]
        kinds = [kind for part in parts for kind in kinds_of(part)]
        names = dict.fromkeys(name for part in parts for name in names_in(part, "properties"))
        items = item_parts(root, parts)
        if menu or left <= 0:
            return menu[0] if menu else None
        if names:
            return {name: of(_step(root, parts, name).parts) for name in names}
        return [of(items)] if items else _OF_KINDS.get(kinds[0]) if kinds else open_value

    return of((root,))
