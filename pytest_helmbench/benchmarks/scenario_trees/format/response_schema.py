"""Response schemas (`S1.json`): the wire form, and whether strict mode can be asked for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Never

from pytest_helmbench.benchmarks.scenario_trees.format.schema_fields import (
    REFERENCES,
    example,
    names_in,
    resolved,
    subschemas,
    types_of,
)
from pytest_helmbench.core.foreign_schemas import schema_fault, schema_violation
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.files.source import Fault, Reader
from pytest_helmbench.files.strict_json import a_mapping
from pytest_helmbench.files.validation import shown
from pytest_helmbench.files.yaml_text import Place, json_lines

_OPEN_VALUES: tuple[JsonValue, ...] = ({}, [])
_SLOW_HINT = "let no part lead to another by several references, and leave out 'unevaluated…'"
_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")


def load_response_format(reader: Reader, path: Path, scenario: str) -> JsonObject | None:
    """Read a response schema into its wire form, filing what is wrong with it.

    Args:
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


def bare_schema(response_format: JsonObject) -> JsonObject:
    """Return the JSON Schema inside the wire form."""
    return a_mapping(a_mapping(response_format["json_schema"])["schema"])


@dataclass(frozen=True, slots=True)
class _Read:
    """A schema file without regard to where it lies; `inner` is None after an error."""

    inner: JsonObject | None
    strict: bool
    faults: tuple[Fault, ...]


@lru_cache(maxsize=256)
def _read(text: str) -> _Read:
    """Read a schema file once, for most scenarios of a tree share theirs word for word."""
    try:
        data: JsonValue = json.loads(text, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        return _Read(None, False, (Fault(error.lineno, f"this is not valid JSON: {error.msg}"),))
    except ValueError as error:
        return _Read(None, False, (Fault(None, f"this is not valid JSON: {error}"),))
    lines = json_lines(text)
    outer: Place = ()
    inner: JsonObject = {"schema": data}
    if isinstance(data, dict) and data.get("type") == "json_schema":
        outer = ("json_schema", "schema")
        inner = a_mapping(data.get("json_schema"))
    faults = [*_shape_faults(data, inner, lines, outer)]
    if all(fault.usable for fault in faults):
        faults += schema_faults(a_mapping(inner["schema"]), lines, outer)
    if any(not fault.usable for fault in faults):
        return _Read(None, False, tuple(faults))
    strict, odd = _strictness(inner, lines, outer)
    return _Read(inner, strict, (*faults, *odd))


def _no_constant(name: str) -> Never:
    raise ValueError(f"{name} is not a JSON value")


def _shape_faults(
    data: JsonValue, inner: JsonObject, lines: Mapping[Place, int], outer: Place
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


def schema_faults(schema: JsonObject, lines: Mapping[Place, int], outer: Place) -> list[Fault]:
    """Return why a JSON Schema cannot be used.

    Args:
        schema: What stands at the place `outer` of a file.
        lines: 1-based line of each place of the file.
        outer: Keys and places that lead to it.

    Raises:
        RecursionError: It is nested too deeply.
    """
    try:
        return [*_schema_faults(schema, lines, outer)]
    except HelmbenchError as error:
        message, _, hint = str(error).partition("\n  hint: ")
        return [Fault(lines.get(outer, 1), message, hint or _SLOW_HINT)]


def arguments_faults(parameters: JsonObject, lines: Mapping[Place, int], place: Place) -> list[Fault]:
    """Return why a JSON Schema of a tool's arguments cannot be used, see `schema_faults`."""
    try:
        faults = schema_faults(parameters, lines, place)
    except RecursionError:
        faults = [Fault(lines.get(place, 1), "the schema of the arguments is nested too deeply")]
    hint = "write a JSON Schema of the arguments: {type: object, properties: …}"
    return [replace(fault, hint=fault.hint or hint) for fault in faults]


def _schema_faults(schema: JsonObject, lines: Mapping[Place, int], outer: Place) -> Iterator[Fault]:
    fault = schema_fault(schema)
    if fault is not None:
        place: Place = (*outer, *fault[1])
        while place and place not in lines:
            place = place[:-1]
        where = ".".join(map(str, fault[1])) or "the schema"
        yield Fault(lines.get(place), f"this is not valid JSON Schema: {where}: {_cut(fault[0])}")
        return
    leads_nowhere = False
    for place, part in subschemas(dict(schema), outer):
        for key in REFERENCES:
            target = part.get(key)
            if target is not None and resolved(schema, target) is None:
                message = f"{key} {_cut(repr(target))} leads nowhere in this file"
                hint = "refer to a part of the same file: #/$defs/name"
                yield Fault(lines.get((*place, key)), message, hint)
                leads_nowhere = True
        if "$id" in part and place != outer:
            message = "$id inside of a schema: references in it would lead elsewhere"
            yield Fault(lines.get((*place, "$id")), message, "leave it out")
            leads_nowhere = True
    for open_value in () if leads_nowhere else _OPEN_VALUES:
        schema_violation(schema, example(schema, open_value))


def _strictness(inner: JsonObject, lines: Mapping[Place, int], outer: Place) -> tuple[bool, list[Fault]]:
    """Return whether to ask for strict mode, with a warning that says what hinders it."""
    if inner.get("strict") is False:
        return False, []
    lacks = [*_lacks(a_mapping(inner["schema"]), outer)]
    if not lacks:
        return True, []
    places = {".".join(map(str, place[len(outer) :])) or "the root" for place, _ in lacks}
    message = (
        f"the schema is sent with strict: false, for strict mode is not met at {', '.join(sorted(places))}"
    )
    hint = "; ".join(dict.fromkeys(what for _, what in lacks))
    return False, [Fault(lines.get(lacks[0][0], 1), message, hint, usable=True)]


def _lacks(schema: JsonObject, outer: Place) -> Iterator[tuple[Place, str]]:
    if "object" not in types_of(schema) and "properties" not in schema:
        yield outer, 'make the root an object: "type": "object"'
    for place, part in subschemas(dict(schema), outer):
        if "object" not in types_of(part) and "properties" not in part:
            continue
        if part.get("additionalProperties") is not False:
            yield place, 'add "additionalProperties": false'
        optional = [name for name in names_in(part, "properties") if name not in names_in(part, "required")]
        if optional:
            yield place, f'add {", ".join(map(json.dumps, optional))} to "required"'


def _cut(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"
