"""Two JSON Schemas made into one that both allow, and the part of a schema that a reference points at."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.gateway.baselines.keywords import names, parts, parts_by_name

__all__ = ["NoAnswerError", "joined", "pointed_at"]


class NoAnswerError(Exception):
    """No value was found that fits the schema."""


def joined(left: JsonValue, right: JsonValue) -> JsonValue:
    """Return a schema that both sides allow, as far as keywords can be joined."""
    if left is False or right is False:
        return False
    if left is True or not left:
        return right
    if right is True or not right:
        return left
    if not isinstance(left, dict) or not isinstance(right, dict):
        raise TypeError("a part of a schema is no schema")
    both = dict(left)
    for key, value in right.items():
        if key not in both:
            both[key] = value
        elif both[key] != value:
            join = _JOINS.get(key)
            both[key] = value if join is None else join(key, left, right)
    return both


def pointed_at(root: dict[str, JsonValue], pointer: str) -> JsonValue:
    """Return what a local reference points at, by JSON pointer or anchor.

    Raises:
        NoAnswerError: It leads out of the schema, or to nothing.
    """
    if not pointer.startswith("#"):
        raise NoAnswerError(f"the response schema refers to {pointer!r}, which is not part of it")
    if "/" not in pointer and len(pointer) > 1:
        return _anchored(root, pointer[1:])
    found: JsonValue = root
    for part in pointer[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, dict) and key in found:
            found = found[key]
        else:
            raise NoAnswerError(f"the response schema refers to {pointer!r}, which is not there")
    return found


def _anchored(root: JsonObject, anchor: str) -> JsonValue:
    for part in parts_by_name(root, "$defs").values():
        if isinstance(part, dict) and part.get("$anchor") == anchor:
            return part
    return True


_Join = Callable[[str, JsonObject, JsonObject], JsonValue]


def _higher(key: str, left: JsonObject, right: JsonObject) -> JsonValue:
    return max(_number(key, left), _number(key, right))


def _lower(key: str, left: JsonObject, right: JsonObject) -> JsonValue:
    return min(_number(key, left), _number(key, right))


def _number(key: str, schema: JsonObject) -> int | float:
    value = schema[key]
    if isinstance(value, int | float):
        return value
    raise TypeError(f"{key} of a schema is no number")


def _by_name(key: str, left: JsonObject, right: JsonObject) -> JsonValue:
    ours, theirs = parts_by_name(left, key), parts_by_name(right, key)
    return {
        name: joined(ours.get(name, True), theirs.get(name, True)) for name in dict.fromkeys([*ours, *theirs])
    }


def _all_names(key: str, left: JsonObject, right: JsonObject) -> JsonValue:
    return [*dict.fromkeys([*names(left, key), *names(right, key)])]


def _common_values(key: str, left: JsonObject, right: JsonObject) -> JsonValue:
    return [value for value in parts(left, key) if value in parts(right, key)]


def _common_types(key: str, left: JsonObject, right: JsonObject) -> JsonValue:
    ours, theirs = names(left, key), names(right, key)
    common: list[JsonValue] = [name for name in ours if name in theirs]
    if "integer" not in common and "integer" in {*ours, *theirs} and "number" in {*ours, *theirs}:
        common.append("integer")
    return common


def _inner(key: str, left: JsonObject, right: JsonObject) -> JsonValue:
    return joined(left[key], right[key])


def _both_lists(key: str, left: JsonObject, right: JsonObject) -> JsonValue:
    return [*parts(left, key), *parts(right, key)]


# A keyword that is not here holds as the right side has it.
_JOINS: Mapping[str, _Join] = {
    "minimum": _higher,
    "exclusiveMinimum": _higher,
    "minLength": _higher,
    "minItems": _higher,
    "minProperties": _higher,
    "maximum": _lower,
    "exclusiveMaximum": _lower,
    "maxLength": _lower,
    "maxItems": _lower,
    "maxProperties": _lower,
    "properties": _by_name,
    "patternProperties": _by_name,
    "$defs": _by_name,
    "required": _all_names,
    "enum": _common_values,
    "type": _common_types,
    "items": _inner,
    "additionalProperties": _inner,
    "contains": _inner,
    "propertyNames": _inner,
    "allOf": _both_lists,
}
