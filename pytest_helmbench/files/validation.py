"""The JSON Schemas of file formats, and documents checked against them with messages for people."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache, partial
from importlib.resources import files
from types import MappingProxyType
from typing import NamedTuple, cast

from jsonschema import Draft202012Validator, FormatChecker
from jsonschema.exceptions import ValidationError

from pytest_helmbench.core.codes import image_fault
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.field_values import named
from pytest_helmbench.files.source import Fault, listed
from pytest_helmbench.files.strict_json import a_mapping
from pytest_helmbench.files.yaml_text import Document, Place, label

_TYPE_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "empty",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
_CLOSING = {"key": 0, "unknown": 1, "type": 2}
"""Kinds of sentences that leave nothing to say of a value, in the order in which one goes before another."""
FormatCheck = Callable[[str], str | None]
"""Returns what is wrong with a text, such as "is not relative"; empty or None for nothing."""


class FormatSchema:
    """The JSON Schema of one format. Every room that reads a format owns its schema.

    An object with `additionalProperties: false` and `unknownKeysWarn: true` takes unknown keys with a warning.

    Args:
        name: What `helmbench schema` calls it.
        read: Returns the schema, anew each time.
        checks: For the values of `format`; every schema may use `image`.
    """

    def __init__(
        self,
        name: str,
        read: Callable[[], dict[str, JsonValue]],
        checks: Mapping[str, FormatCheck] = MappingProxyType({}),
    ) -> None:
        self.name = name
        self.checks = {"image": _image_fault, **checks}
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


def shipped_schema(
    name: str, module: str, checks: Mapping[str, FormatCheck] = MappingProxyType({})
) -> FormatSchema:
    """Return the schema that stands as `schemas/NAME.json` beside the module (`__name__`) that reads the format."""

    def read() -> dict[str, JsonValue]:
        found: JsonValue = json.loads(
            files(module.rpartition(".")[0]).joinpath("schemas", f"{name}.json").read_text("utf-8")
        )
        if not isinstance(found, dict):
            raise TypeError(f"{name}.json: the schema is not an object")
        return found

    return FormatSchema(name, read, checks)


def validate(document: Document, schema: FormatSchema, definition: str | None = None) -> list[Fault]:
    """Return what is wrong with a document, its own faults among it, in the order of its lines.

    A name of one of the schema's `$defs` has that checked instead of the whole.
    """
    if document.data is None and document.faults:
        return list(document.faults)
    said = [
        sentence
        for error in validator(schema, definition).iter_errors(document.data)
        if not (document.faults and isinstance(error.instance, float) and not math.isfinite(error.instance))
        for sentence in _sentences(error)
    ]
    faults = [
        *document.faults,
        *(Fault(document.line(*one.place), one.message, one.hint, one.usable) for one in _first(said)),
    ]
    return sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)


class _Sentence(NamedTuple):
    """A fault at a place, with its hint; `kind` says whether the value below it can be used."""

    place: Place
    message: str
    hint: str
    kind: str = ""
    usable: bool = False


def _first(said: list[_Sentence]) -> Iterator[_Sentence]:
    """Yield one sentence of each place, and none of what is below a wrong type or key, or lacks for a misspelt one."""
    told: dict[Place, _Sentence] = {}
    for one in sorted(said, key=lambda one: _CLOSING.get(one.kind, len(_CLOSING))):
        above = (told.get(one.place[:end]) for end in range(len(one.place)))
        if one.place not in told and not any(each and each.kind in _CLOSING for each in above):
            told[one.place] = one
    hints = [(one.place[:-1], one.hint) for one in told.values() if one.kind == "unknown" and not one.usable]
    for place, one in told.items():
        meant = f"did you mean {place[-1]!r}?" if place else ""
        if one.kind != "required" or not any(
            at == place[:-1] and hint.startswith(meant) for at, hint in hints
        ):
            yield one


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
def validator(schema: FormatSchema, definition: str | None = None) -> Draft202012Validator:
    """Return what checks values against a schema, or one of its `$defs`."""
    checker = FormatChecker(formats=())
    for name, check in schema.checks.items():
        checker.checks(name, raises=ValueError)(partial(_passes, check))
    return Draft202012Validator(schema.part(definition), format_checker=checker)


def _passes(check: FormatCheck, value: object) -> bool:
    fault = check(value) if isinstance(value, str) else None
    if fault:
        raise ValueError(fault)
    return True


def _image_fault(text: str) -> str:
    return "is not a name of an image" if image_fault(text) else ""


def _sentences(error: ValidationError) -> Iterator[_Sentence]:
    """Yield places with what is wrong there and what to do, which is often what the schema itself says."""
    if error.validator == "anyOf":
        for inner in _nearest_branch(error):
            yield from _sentences(inner)
        return
    place, value, wanted = tuple(error.absolute_path), _json(error.instance), _json(error.validator_value)
    own = a_mapping(_json(error.schema))
    name, hint = label(place), str(own.get("description", ""))
    said = f"{name} is {shown(value)}"
    kind = "propertyNames" if "propertyNames" in error.absolute_schema_path else str(error.validator)
    if kind == "not" and wanted == {}:
        yield _Sentence(place, f"{name} {own.get('title', 'means nothing here')}", hint, "key")
    elif kind == "propertyNames":
        yield _Sentence((*place, str(value)), f"{name} has the key {value!r}", hint, "key")
    elif kind == "additionalProperties":
        yield from _unknown_keys(place, a_mapping(value), own)
    elif kind == "required":
        for key in _names(wanted):
            if key not in a_mapping(value):
                described = a_mapping(a_mapping(own.get("properties")).get(key)).get("description")
                lacks = f"{name} has no {key!r}" if place else f"there is no {key!r}"
                yield _Sentence((*place, key), lacks, str(described or f"add the key {key!r}"), kind)
    elif kind == "enum":
        menu = [one for one in _names(wanted) if one != "None"]
        what = "known types" if place[-1:] == ("type",) else "known values"
        yield _Sentence(place, said, listed(value, menu, what))
    elif kind == "type":
        words = type_words(_names(wanted))
        yield _Sentence(place, f"{said}, not {words}", hint or f"write {words}{_range(own)}", kind)
    elif kind in ("minimum", "maximum", "exclusiveMinimum"):
        yield _Sentence(place, f"{said}, out of range", hint or f"write a number{_range(own)}")
    elif kind == "pattern":
        # a key pasted where its variable's name belongs must not be repeated in a log
        yield _Sentence(
            place, f"{name}{'' if own.get('writeOnly') else f' {shown(value)}'} has the wrong form", hint
        )
    elif kind == "format":
        yield _Sentence(place, f"{name} {shown(value)} {error.cause}", hint)
    elif kind in ("minItems", "minLength", "minProperties"):
        yield _Sentence(place, f"{name} is empty", hint or "write something there")
    elif kind == "uniqueItems" and isinstance(value, list):
        double = next(item for item in value if value.count(item) > 1)
        yield _Sentence(place, f"{name} lists {shown(double)} twice", "keep one of them")
    else:
        yield _Sentence(place, said, hint)


def _unknown_keys(place: Place, value: JsonObject, own: JsonObject) -> Iterator[_Sentence]:
    inside = f" in {label(place)}" if place and isinstance(place[-1], str) else ""
    known = a_mapping(own.get("properties"))
    what = "known keys" if len(known) > 1 else "the only key"
    usable = own.get("unknownKeysWarn") is True
    for key in value:
        if key not in known:
            message = f"unknown key {named(key)}{inside}"
            yield _Sentence((*place, key), message, listed(key, known, what), "unknown", usable)


def _json(value: object) -> JsonValue:
    return cast("JsonValue", value)  # the library types them as possibly unset


def _names(wanted: JsonValue) -> list[str]:
    return [str(item) for item in wanted] if isinstance(wanted, list) else [str(wanted)]


def type_words(wanted: list[str]) -> str:
    """Return types of JSON Schema in words for people."""
    names = wanted if len(wanted) == 1 else [name for name in wanted if name != "null"]
    words = " or ".join(_TYPE_WORDS[name] for name in names)
    return words.replace("text or a number or true or false", "a value")


def _range(own: JsonObject) -> str:
    """Return the range of a number in words; empty where there is none."""
    low, high = own.get("minimum"), own.get("maximum")
    if "exclusiveMinimum" in own:
        return f" above {own['exclusiveMinimum']}"
    if low is None:
        return ""
    return f" {low} or more" if high is None else f" from {low} to {high}"


def _nearest_branch(error: ValidationError) -> list[ValidationError]:
    """Return the errors of the alternative whose type fits; of all of them one type error."""
    branches: dict[object, list[ValidationError]] = {}
    for inner in error.context or ():
        branches.setdefault(inner.schema_path[0], []).append(inner)
    for found in branches.values():
        if not any(item.validator == "type" and not item.path for item in found):
            return found
    firsts = [found[0] for found in branches.values()]
    described = [item for item in firsts if "description" in a_mapping(_json(item.schema))]
    return (described or firsts)[:1]
