"""Response schemas (`S1.json`): the wire form, strict mode, and what a field can hold."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError
from jsonschema.validators import validator_for

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import FieldRule
from pytest_helmbench.files.json_text import json_lines
from pytest_helmbench.files.source import Fault, Reader, listed
from pytest_helmbench.files.validation import shown
from pytest_helmbench.files.yaml_text import Document, Place

__all__ = ["Menu", "field_menu", "load_response_format", "rule_faults"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
_TRUTH = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
_BRANCHES = ("anyOf", "oneOf", "allOf")
_MAPS = ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas")
_SINGLES = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_LISTS = (*_BRANCHES, "prefixItems")


def load_response_format(reader: Reader, path: Path, scenario: str) -> Mapping[str, Any] | None:
    """Read a response schema into its wire form, filing what is wrong with it.

    Args:
        reader: Reads and files.
        path: `S1.json`, as an envelope or a bare JSON Schema.
        scenario: Code of the scenario, the name of a bare schema.

    Returns:
        The envelope as sent, property order kept; None after an error.

    Source:
        Scenario trees, section 4.
    """
    text = reader.text(path)
    if text is None:
        return None
    try:
        read = _read(text)
    except RecursionError:
        reader.findings.add(path, Fault(None, "the response schema is nested too deeply to be read"))
        return None
    reader.findings.add(path, *read.faults)
    if read.inner is None:
        return None
    named = {"name": scenario, "strict": read.strict, **read.inner}
    return {"type": "json_schema", "json_schema": {**named, "strict": read.strict}}


@dataclass(frozen=True, slots=True)
class _Read:
    """A schema file without regard to where it lies; `inner` is None after an error."""

    inner: Mapping[str, Any] | None
    strict: bool
    faults: tuple[Fault, ...]


@lru_cache(maxsize=256)
def _read(text: str) -> _Read:
    """Read a schema file once, for most scenarios of a tree share theirs word for word."""
    try:
        data = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return _Read(None, False, (Fault(error.lineno, f"this is no valid JSON: {error.msg}"),))
    except ValueError as error:
        return _Read(None, False, (Fault(None, f"this is no valid JSON: {error}"),))
    lines = json_lines(text)
    outer: Place = ()
    inner: Mapping[str, Any] = {"schema": data}
    if isinstance(data, dict) and data.get("type") == "json_schema":
        outer = ("json_schema", "schema")
        inner = data["json_schema"] if isinstance(data.get("json_schema"), dict) else {}
    faults = [*_shape_faults(data, inner, lines, outer)]
    if not any(not fault.usable for fault in faults):
        faults += _schema_faults(inner["schema"], lines, outer)
    if any(not fault.usable for fault in faults):
        return _Read(None, False, tuple(faults))
    strict, odd = _strictness(inner, lines, outer)
    return _Read(inner, strict, (*faults, *odd))


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON value")


def _shape_faults(
    data: Any, inner: Mapping[str, Any], lines: Mapping[Place, int], outer: Place
) -> Iterator[Fault]:
    wrap = 'write {"type": "json_schema", "json_schema": {"name": …, "schema": …}} or a bare JSON Schema'
    if not isinstance(data, dict):
        yield Fault(1, f"the response schema is {shown(data)}, not a JSON object", wrap)
    elif not outer and isinstance(data.get("schema"), dict) and not {"type", "properties"} & data.keys():
        yield Fault(1, "the envelope lacks its outer part with the type 'json_schema'", wrap)
    elif not isinstance(inner.get("schema"), dict):
        yield Fault(lines.get(outer[:1], 1), "the envelope has no mapping json_schema.schema", wrap)
    else:
        name, strict = inner.get("name", "x"), inner.get("strict", True)
        if not isinstance(name, str) or _NAME.match(name) is None:
            message = f"the name of the schema is {shown(name)}"
            hint = "use only letters, digits, '_' and '-', at most 64"
            yield Fault(lines.get(("json_schema", "name")), message, hint, usable=isinstance(name, str))
        if not isinstance(strict, bool):
            yield Fault(lines.get(("json_schema", "strict")), f"strict is {shown(strict)}, not true or false")


def _schema_faults(schema: Mapping[str, Any], lines: Mapping[Place, int], outer: Place) -> Iterator[Fault]:
    named = isinstance(schema.get("$schema", ""), str)
    validator = validator_for(schema, default=Draft202012Validator) if named else Draft202012Validator
    try:
        validator.check_schema(dict(schema))
    except SchemaError as error:
        place = (*outer, *error.path)
        while place and place not in lines:
            place = place[:-1]
        where = ".".join(map(str, error.path)) or "the schema"
        message = f"this is no valid JSON Schema: {where}: {_cut(error.message)}"
        yield Fault(lines.get(place), message)
        return
    for place, part in _subschemas(schema, outer):
        target = part.get("$ref")
        if target is not None and _resolved(schema, target) is None:
            message = f"$ref {target!r} leads nowhere in this file"
            yield Fault(
                lines.get((*place, "$ref")), message, "refer to a part of the same file: #/$defs/name"
            )


def _strictness(
    inner: Mapping[str, Any], lines: Mapping[Place, int], outer: Place
) -> tuple[bool, list[Fault]]:
    """Return whether to ask for strict mode, with a warning that says what hinders it."""
    if inner.get("strict") is False:
        return False, []
    lacks = [*_lacks(inner["schema"], outer)]
    if not lacks:
        return True, []
    places = {".".join(map(str, place[len(outer) :])) or "the root" for place, _ in lacks}
    message = (
        f"the schema is sent with strict: false, for strict mode is not met at {', '.join(sorted(places))}"
    )
    hint = "; ".join(dict.fromkeys(what for _, what in lacks))
    return False, [Fault(lines.get(lacks[0][0], 1), message, hint, usable=True)]


def _lacks(schema: Mapping[str, Any], outer: Place) -> Iterator[tuple[Place, str]]:
    if "object" not in _types(schema) and "properties" not in schema:
        yield outer, 'make the root an object: "type": "object"'
    for place, part in _subschemas(schema, outer):
        if "object" not in _types(part) and "properties" not in part:
            continue
        if part.get("additionalProperties") is not False:
            yield place, 'add "additionalProperties": false'
        optional = [name for name in part.get("properties", {}) if name not in part.get("required", ())]
        if optional:
            yield place, f'add {", ".join(map(json.dumps, optional))} to "required"'


def _subschemas(schema: Any, place: Place) -> Iterator[tuple[Place, Mapping[str, Any]]]:
    if not isinstance(schema, dict):
        return
    yield place, schema
    for key in _SINGLES:
        yield from _subschemas(schema.get(key), (*place, key))
    for key in _MAPS:
        for name, part in schema.get(key, {}).items():
            yield from _subschemas(part, (*place, key, name))
    for key in _LISTS:
        for index, part in enumerate(schema.get(key, ())):
            yield from _subschemas(part, (*place, key, index))


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type", ())
    return (kind,) if isinstance(kind, str) else tuple(kind)


def _resolved(root: Mapping[str, Any], target: str) -> Mapping[str, Any] | None:
    if target == "#":
        return root
    if not target.startswith("#"):
        return None
    if not target.startswith("#/"):
        named = (part for _, part in _subschemas(root, ()) if part.get("$anchor") == target[1:])
        return next(named, None)
    found: Any = root
    for step in target[2:].split("/"):
        key = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict) and key in found:
            found = found[key]
        elif isinstance(found, list) and key.isdecimal() and int(key) < len(found):
            found = found[int(key)]
        else:
            return None
    return found if isinstance(found, dict) else None


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


@dataclass(frozen=True, slots=True)
class _Field:
    """What a schema says of one field: its alternatives, or the known names where it is not among them."""

    parts: tuple[Mapping[str, Any], ...] = ()
    unknown: str | None = None
    known: tuple[str, ...] = ()


def rule_faults(rule: FieldRule, schema: Mapping[str, Any], document: Document) -> Iterator[Fault]:
    """Yield why a rule cannot be met by any reply that fits the schema.

    Args:
        rule: What replies are held to.
        schema: The bare response schema.
        document: Frontmatter that the rule stands in, for lines.
    """
    field_line = document.line("evaluation", "field")
    found = _field(schema, rule.field)
    if found.unknown is not None:
        message = f"the response schema has no field {found.unknown!r}"
        yield Fault(field_line, message, listed(found.unknown, found.known, "its fields"))
        return
    kinds = {kind for part in found.parts for kind in _kinds(part)}
    if rule.type == "category_match":
        if kinds and kinds <= {"array", "object"}:
            message = f"category_match cannot compare the field {rule.field!r}, which is {' or '.join(sorted(kinds))}"
            yield Fault(field_line, message, "use list_includes or tag_threshold for a list")
            return
        parts = found.parts
    else:
        if kinds and "array" not in kinds:
            message = (
                f"{rule.type} needs a list, but the field {rule.field!r} is {' or '.join(sorted(kinds))}"
            )
            yield Fault(field_line, message, 'make it "type": "array" in the response schema')
            return
        items = (_items(schema, part) for part in found.parts if "array" in _kinds(part) or not _kinds(part))
        parts = tuple(part for group in items for part in group)
    key = "required" if rule.type == "list_includes" else "expected"
    for index, value in enumerate(rule.expected):
        line = document.line("evaluation", key, index) or document.line("category")
        yield from _reachable(value, parts, rule.field, line)


@dataclass(frozen=True, slots=True)
class Menu:
    """The values that a field, or each item of its list, may take.

    Args:
        values: In the schema's order.
        is_list: Whether the field is a list of them.
        least: Fewest items of a list.
        most: Most items of a list; None for any number.
    """

    values: tuple[Any, ...]
    is_list: bool = False
    least: int = 0
    most: int | None = None


def field_menu(rule: FieldRule, schema: Mapping[str, Any]) -> Menu | None:
    """Return what the field of a rule may hold, or None where the schema leaves it open."""
    parts = _field(schema, rule.field).parts
    if rule.type == "category_match":
        values = _listed_values(parts)
        return Menu(values) if values is not None else None
    lists = [part for part in parts if "array" in _kinds(part)]
    values = _listed_values([item for part in lists for item in _items(schema, part)])
    if values is None:
        return None
    most = [part["maxItems"] for part in lists if "maxItems" in part]
    return Menu(
        values,
        is_list=True,
        least=min(part.get("minItems", 0) for part in lists),
        most=max(most) if len(most) == len(lists) else None,
    )


def _listed_values(parts: Iterable[Mapping[str, Any]]) -> tuple[Any, ...] | None:
    found: list[Any] = []
    for part in parts:
        if "enum" not in part and "const" not in part and _types(part) != ("boolean",):
            return None
        found.extend(part.get("enum", [part["const"]] if "const" in part else [True, False]))
    return tuple(item for index, item in enumerate(found) if item not in found[:index]) or None


def _reachable(
    value: str, parts: Iterable[Mapping[str, Any]], field: str, line: int | None
) -> Iterator[Fault]:
    menu: list[Any] = []
    open_ended = False
    kinds: set[str] = set()
    for part in parts:
        kinds.update(_kinds(part))
        allowed = part.get("enum", [part["const"]] if "const" in part else None)
        open_ended |= allowed is None
        menu.extend(allowed or ())
    if menu and not open_ended:
        if not any(_reads_as(value, item) for item in menu):
            names = [item if isinstance(item, str) else json.dumps(item) for item in menu]
            message = f"no reply can hold {value!r} in {field!r}: the response schema does not list it"
            yield Fault(line, message, listed(value, names, "its values"))
    elif (
        kinds and kinds <= {"integer", "number", "boolean"} and not any(_fits(value, kind) for kind in kinds)
    ):
        message = f"no reply can hold {value!r} in {field!r}, which is {' or '.join(sorted(kinds))}"
        yield Fault(line, message, "change the expected value or the response schema")


def _field(schema: Mapping[str, Any], path: str) -> _Field:
    """Follow a key or dotted path; no parts and nothing unknown where the schema leaves it open."""
    whole = _step(schema, (schema,), path)
    if whole.parts or "." not in path:
        return whole
    parts: tuple[Mapping[str, Any], ...] = (schema,)
    for name in path.split("."):
        found = _step(schema, parts, name)
        if not found.parts:
            return found
        parts = found.parts
    return _Field(parts)


def _step(root: Mapping[str, Any], parts: tuple[Mapping[str, Any], ...], name: str) -> _Field:
    expanded = [part for start in parts for part in _alternatives(root, start)]
    if name.isdecimal():
        inside = tuple(item for part in expanded for item in _items(root, part))
        if inside:
            return _Field(inside)
    known = {key: None for part in expanded for key in part.get("properties", {})}
    found = tuple(
        inner
        for part in expanded
        if isinstance(part.get("properties", {}).get(name), dict)
        for inner in _alternatives(root, part["properties"][name])
    )
    if found or not known or name in known:
        return _Field(found)
    return _Field((), name, tuple(known))


def _alternatives(
    root: Mapping[str, Any], part: Mapping[str, Any], seen: frozenset[str] = frozenset()
) -> tuple[Mapping[str, Any], ...]:
    """Return a subschema with its references and branches laid out side by side."""
    target = part.get("$ref")
    if isinstance(target, str):
        found = None if target in seen else _resolved(root, target)
        return () if found is None else _alternatives(root, found, seen | {target})
    branches = [item for key in _BRANCHES for item in part.get(key, ()) if isinstance(item, dict)]
    inner = tuple(found for item in branches for found in _alternatives(root, item, seen))
    return inner if inner and not {"type", "properties", "enum", "const"} & part.keys() else (part, *inner)


def _items(root: Mapping[str, Any], part: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    items = part.get("items")
    return _alternatives(root, items) if isinstance(items, dict) else ()


def _kinds(part: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(kind for kind in _types(part) if kind != "null") or _types(part)


def _fits(value: str, kind: str) -> bool:
    if kind == "boolean":
        return value.lower() in _TRUTH
    number = _number(value)
    return number is not None and (kind == "number" or number == number.to_integral_value())


def _number(written: str) -> Decimal | None:
    try:
        number = Decimal(written)
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def _reads_as(written: str, value: Any) -> bool:
    """Return whether text as written in a file means a JSON value."""
    if isinstance(value, str):
        return written == value
    if isinstance(value, bool):
        return _TRUTH.get(written.lower()) is value
    if isinstance(value, int | float):
        return _number(written) == Decimal(str(value))
    return value is None and written.lower() in ("null", "~")
