"""The JSON Schemas of file formats, and documents held to them with messages for people."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from importlib.resources import files
from typing import cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.field_values import named
from pytest_helmbench.files.source import Fault, listed
from pytest_helmbench.files.strict_json import a_mapping
from pytest_helmbench.files.yaml_text import Document, Place, label


class FormatSchema:
    """The JSON Schema of one format. Every room that reads a format owns its schema.

    Args:
        name: What `helmbench schema` calls it.
        read: Returns the schema, anew each time.
    """

    def __init__(self, name: str, read: Callable[[], dict[str, JsonValue]]) -> None:
        self.name = name
        self._read = read

    def document(self) -> dict[str, JsonValue]:
        """Return the schema; the caller may change it."""
        return self._read()

    def part(self, definition: str | None) -> dict[str, JsonValue]:
        """Return one of its `$defs`; all of it for None.

        Raises:
            KeyError: There is no such definition.
        """
        whole = self.document()
        if definition is None:
            return whole
        definitions = whole["$defs"]
        part = definitions[definition] if isinstance(definitions, dict) else None
        if not isinstance(part, dict):
            raise KeyError(definition)
        return part

    def keys(self) -> tuple[str, ...]:
        """Return the top-level keys of the format."""
        properties = self.document()["properties"]
        return tuple(properties) if isinstance(properties, dict) else ()


def shipped_schema(name: str, module: str) -> FormatSchema:
    """Return the schema that stands as `schemas/NAME.json` beside the module that reads the format.

    Args:
        name: What `helmbench schema` calls it.
        module: `__name__` of that module.
    """

    def read() -> dict[str, JsonValue]:
        found: JsonValue = json.loads(
            files(module.rpartition(".")[0]).joinpath("schemas", f"{name}.json").read_text("utf-8")
        )
        if not isinstance(found, dict):
            raise TypeError(f"{name}.json: the schema is no object")
        return found

    return FormatSchema(name, read)


_TYPE_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "empty",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}


def validate(document: Document, schema: FormatSchema, definition: str | None = None) -> list[Fault]:
    """Return what is wrong with a document, in the order of its lines.

    Args:
        document: What was read; its own faults come first.
        schema: Of its format.
        definition: One of the schema's `$defs` instead of the whole.
    """
    if document.data is None and document.faults:
        return list(document.faults)
    faults = [*document.faults]
    validator = _validator(schema, definition)
    root = a_mapping(cast("JsonValue", validator.schema))
    for error in validator.iter_errors(document.data):
        if not (document.faults and _is_infinite(_instance(error))):
            faults.extend(_translated(document, error, root))
    return sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)


def shown(value: object) -> str:
    """Return a value as a message names it, cut where it is long."""
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list"
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:76]}…{text[0]}"


@lru_cache
def _validator(schema: FormatSchema, definition: str | None) -> Draft202012Validator:
    return Draft202012Validator(schema.part(definition))


def _place(error: ValidationError) -> Place:
    return tuple(error.absolute_path)


def _is_infinite(value: JsonValue) -> bool:
    """Return whether a value is no finite number, which the document's own faults tell."""
    return isinstance(value, float) and not math.isfinite(value)


def _own(error: ValidationError) -> JsonObject:
    return error.schema if isinstance(error.schema, dict) else {}


def _hint(error: ValidationError) -> str:
    """Return what the schema itself says about the value."""
    return str(_own(error).get("description", ""))


def _instance(error: ValidationError) -> JsonValue:
    return cast(
        "JsonValue", error.instance
    )  # typed as possibly unset, which it is not once an error is raised


def _items(error: ValidationError) -> list[JsonValue]:
    """Return the value at fault where it is a list, the keys where it is a mapping."""
    found = _instance(error)
    return [*found] if isinstance(found, list | dict) else []


def _wanted(error: ValidationError) -> JsonValue:
    return cast("JsonValue", error.validator_value)


def _wanted_names(error: ValidationError) -> list[str]:
    wanted = _wanted(error)
    return [str(item) for item in wanted] if isinstance(wanted, list) else [str(wanted)]


def _translated(document: Document, error: ValidationError, root: JsonObject) -> Iterator[Fault]:
    if error.validator == "anyOf":
        for inner in _nearest_branch(error):
            yield from _translated(document, inner, root)
        return
    if error.validator == "not" and _wanted(error) == {}:
        yield from _out_of_place(document, error, root)
        return
    if "propertyNames" in error.absolute_schema_path:
        place = (*_place(error), str(_instance(error)))
        message = f"{label(_place(error))} has the key {_instance(error)!r}"
        yield Fault(document.line(*place), message, _hint(error))
        return
    yield from _SENTENCES[str(error.validator)](document, error)


def _nearest_branch(error: ValidationError) -> list[ValidationError]:
    """Return the errors of the alternative whose type fits; of all of them one type error."""
    branches: dict[object, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    fitting = [
        inner
        for inner in branches.values()
        if not any(item.validator == "type" and not item.path for item in inner)
    ]
    if fitting:
        return fitting[0]
    firsts = [inner[0] for inner in branches.values()]
    described = [item for item in firsts if "description" in _own(item)]
    return (described or firsts)[:1]


def _unknown_keys(document: Document, error: ValidationError) -> Iterator[Fault]:
    known = a_mapping(_own(error).get("properties"))
    place = _place(error)
    for key in map(str, _items(error)):
        if key not in known:
            inside = f" in {label(place)}" if place and isinstance(place[-1], str) else ""
            yield Fault(
                document.line(*place, key),
                f"unknown key {named(key)}{inside}",
                listed(key, known, "known keys" if len(known) > 1 else "the only key"),
            )


def _missing_keys(document: Document, error: ValidationError) -> Iterator[Fault]:
    place = _place(error)
    for key in _wanted_names(error):
        if key not in _items(error):
            inside = f"{label(place)} has no {key!r}" if place else f"there is no {key!r}"
            described = a_mapping(a_mapping(_own(error).get("properties")).get(key))
            hint = str(described.get("description", ""))
            yield Fault(document.line(*place), inside, hint or f"add the key {key!r}")


def _off_menu(document: Document, error: ValidationError) -> Iterator[Fault]:
    message = f"{label(_place(error))} is {shown(_instance(error))}"
    menu = [name for name in _wanted_names(error) if name != "None"]
    what = "known types" if _place(error)[-1:] == ("type",) else "known values"
    yield Fault(document.line(*_place(error)), message, listed(_instance(error), menu, what))


def _wrong_type(document: Document, error: ValidationError) -> Iterator[Fault]:
    wanted = _wanted_names(error)
    names = wanted if len(wanted) == 1 else [name for name in wanted if name != "null"]
    words = " or ".join(_TYPE_WORDS[name] for name in names)
    words = words.replace("text or a number or true or false", "a value")
    message = f"{label(_place(error))} is {shown(_instance(error))}, not {words}"
    yield Fault(document.line(*_place(error)), message, _hint(error) or f"write {words}{_range(_own(error))}")


def _out_of_range(document: Document, error: ValidationError) -> Iterator[Fault]:
    own = _own(error)
    message = f"{label(_place(error))} is {shown(_instance(error))}, out of range"
    yield Fault(document.line(*_place(error)), message, _hint(error) or f"write a number{_range(own)}")


def _range(own: JsonObject) -> str:
    """Return the range of a number in words; empty where there is none."""
    low, high = own.get("minimum"), own.get("maximum")
    if "exclusiveMinimum" in own:
        return f" above {own['exclusiveMinimum']}"
    if low is None:
        return ""
    return f" {low} or more" if high is None else f" from {low} to {high}"


def _wrong_form(document: Document, error: ValidationError) -> Iterator[Fault]:
    own = _own(error)
    # a key pasted where its variable's name belongs must not be repeated in a log
    value = "" if own.get("writeOnly") else f" {shown(_instance(error))}"
    message = f"{label(_place(error))}{value} has the wrong form"
    yield Fault(document.line(*_place(error)), message, _hint(error))


def _empty(document: Document, error: ValidationError) -> Iterator[Fault]:
    message = f"{label(_place(error))} is empty"
    yield Fault(document.line(*_place(error)), message, _hint(error) or "write something there")


def _twice(document: Document, error: ValidationError) -> Iterator[Fault]:
    items = _items(error)
    double = next(item for item in items if items.count(item) > 1)
    message = f"{label(_place(error))} lists {shown(double)} twice"
    yield Fault(document.line(*_place(error)), message, "keep one of them")


def _excluded(document: Document, error: ValidationError) -> Iterator[Fault]:
    message = f"{label(_place(error))} is {shown(_instance(error))}"
    yield Fault(document.line(*_place(error)), message, _hint(error))


def _out_of_place(document: Document, error: ValidationError, root: JsonObject) -> Iterator[Fault]:
    """Yield a key that must not stand beside the value of another one.

    The schema says so by an `if` with the other one as `const`, and a `then` with `"not": {}` for the key.
    """
    steps = list(error.absolute_schema_path)
    rule: JsonValue = dict(root)
    for step in steps[: steps.index("then")]:
        rule = (
            rule[str(step)] if isinstance(rule, dict) else rule[int(step)] if isinstance(rule, list) else None
        )
    conditions = a_mapping(a_mapping(a_mapping(rule).get("if")).get("properties"))
    ((name, condition),) = conditions.items()
    message = f"{label(_place(error))} means nothing for the {name} {a_mapping(condition).get('const')}"
    yield Fault(document.line(*_place(error)), message, f"remove the key, or change the {name}")


_SENTENCES: dict[str, Callable[[Document, ValidationError], Iterator[Fault]]] = {
    "additionalProperties": _unknown_keys,
    "enum": _off_menu,
    "exclusiveMinimum": _out_of_range,
    "maximum": _out_of_range,
    "minItems": _empty,
    "minLength": _empty,
    "minProperties": _empty,
    "minimum": _out_of_range,
    "pattern": _wrong_form,
    "not": _excluded,
    "required": _missing_keys,
    "type": _wrong_type,
    "uniqueItems": _twice,
}
