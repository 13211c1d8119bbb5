"""Holding a document to its JSON Schema, in our own sentences with lines and nearest words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from pytest_helmbench.files.schemas import schema
from pytest_helmbench.files.source import Fault, listed
from pytest_helmbench.files.yaml_text import Document, Place

__all__ = ["known_keys", "shown", "validate"]

_TYPE_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "empty",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}


def validate(document: Document, name: str, definition: str | None = None) -> list[Fault]:
    """Return what is wrong with a document, in the order of its lines.

    Args:
        document: What was read; its own faults come first.
        name: One of `SCHEMA_NAMES`.
        definition: One of the schema's `$defs` instead of the whole.
    """
    if document.data is None and document.faults:
        return list(document.faults)
    faults = [*document.faults]
    for error in _validator(name, definition).iter_errors(document.data):
        faults.extend(_translated(document, error))
    return sorted(dict.fromkeys(faults), key=lambda fault: fault.line or 0)


@lru_cache
def known_keys(name: str) -> tuple[str, ...]:
    """Return the top-level keys of a schema."""
    return tuple(schema(name)["properties"])


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
def _validator(name: str, definition: str | None) -> Draft202012Validator:
    whole = schema(name)
    return Draft202012Validator(whole if definition is None else whole["$defs"][definition])


def _place(error: ValidationError) -> Place:
    return tuple(error.absolute_path)


def _label(place: Iterable[str | int]) -> str:
    """Name a place: `evaluation.type`, `models entry 2`."""
    words = ""
    for step in place:
        words += f" entry {step + 1}" if isinstance(step, int) else f".{step}" if words else step
    return words.strip() or "the file"


def _own(error: ValidationError) -> dict[str, Any]:
    return error.schema if isinstance(error.schema, dict) else {}


def _instance(error: ValidationError) -> Any:
    return error.instance  # typed as possibly unset, which it is not once an error is raised


def _wanted(error: ValidationError) -> Any:
    return error.validator_value


def _translated(document: Document, error: ValidationError) -> Iterator[Fault]:
    if error.validator == "anyOf":
        for inner in _nearest_branch(error):
            yield from _translated(document, inner)
        return
    if "propertyNames" in error.absolute_schema_path:
        place = (*_place(error), str(_instance(error)))
        message = f"{_label(_place(error))} has the key {_instance(error)!r}"
        yield Fault(document.line(*place), message, _own(error).get("description", ""))
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
    known = _own(error).get("properties", {})
    place = _place(error)
    for key in _instance(error):
        if key not in known:
            inside = f" in {_label(place)}" if place and isinstance(place[-1], str) else ""
            yield Fault(
                document.line(*place, key),
                f"unknown key {key!r}{inside}",
                listed(key, known, "known keys" if len(known) > 1 else "the only key"),
            )


def _missing_keys(document: Document, error: ValidationError) -> Iterator[Fault]:
    place = _place(error)
    for key in _wanted(error):
        if key not in _instance(error):
            inside = f"{_label(place)} has no {key!r}" if place else f"there is no {key!r}"
            described = _own(error).get("properties", {}).get(key)
            hint = described.get("description", "") if isinstance(described, dict) else ""
            yield Fault(document.line(*place), inside, hint or f"add the key {key!r}")


def _off_menu(document: Document, error: ValidationError) -> Iterator[Fault]:
    message = f"{_label(_place(error))} is {shown(_instance(error))}"
    menu = [str(item) for item in _wanted(error)]
    what = "known types" if _place(error)[-1:] == ("type",) else "known values"
    yield Fault(document.line(*_place(error)), message, listed(_instance(error), menu, what))


def _wrong_type(document: Document, error: ValidationError) -> Iterator[Fault]:
    wanted = _wanted(error)
    names = [wanted] if isinstance(wanted, str) else [name for name in wanted if name != "null"]
    words = " or ".join(_TYPE_WORDS[name] for name in names)
    words = words.replace("text or a number or true or false", "a value")
    message = f"{_label(_place(error))} is {shown(_instance(error))}, not {words}"
    yield Fault(document.line(*_place(error)), message, _own(error).get("description", ""))


def _out_of_range(document: Document, error: ValidationError) -> Iterator[Fault]:
    own = _own(error)
    low, high = own.get("minimum"), own.get("maximum")
    if "exclusiveMinimum" in own:
        wanted = f"above {own['exclusiveMinimum']}"
    elif high is None:
        wanted = f"{low} or more"
    else:
        wanted = f"from {low} to {high}"
    message = f"{_label(_place(error))} is {shown(_instance(error))}, out of range"
    yield Fault(document.line(*_place(error)), message, own.get("description") or f"write a number {wanted}")


def _wrong_form(document: Document, error: ValidationError) -> Iterator[Fault]:
    own = _own(error)
    # a key pasted where its variable's name belongs must not be repeated in a log
    value = "" if own.get("writeOnly") else f" {shown(_instance(error))}"
    message = f"{_label(_place(error))}{value} has the wrong form"
    yield Fault(document.line(*_place(error)), message, own.get("description", ""))


def _empty(document: Document, error: ValidationError) -> Iterator[Fault]:
    message = f"{_label(_place(error))} is empty"
    yield Fault(document.line(*_place(error)), message, _own(error).get("description", ""))


def _twice(document: Document, error: ValidationError) -> Iterator[Fault]:
    double = next(item for item in _instance(error) if _instance(error).count(item) > 1)
    message = f"{_label(_place(error))} lists {shown(double)} twice"
    yield Fault(document.line(*_place(error)), message, "keep one of them")


def _excluded(document: Document, error: ValidationError) -> Iterator[Fault]:
    place = _place(error)
    if _wanted(error) == {}:  # a key of another evaluation type
        kind = document.data["evaluation"].get("type", "category_match")
        message = f"{_label(place)} means nothing for the type {kind}"
        yield Fault(document.line(*place), message, "remove the key, or change the type")
    else:
        message = f"{_label(place)} is {shown(_instance(error))}"
        yield Fault(document.line(*place), message, _own(error).get("description", ""))


_SENTENCES: dict[str, Callable[[Document, ValidationError], Iterator[Fault]]] = {
    "additionalProperties": _unknown_keys,
    "enum": _off_menu,
    "exclusiveMinimum": _out_of_range,
    "maximum": _out_of_range,
    "minItems": _empty,
    "minLength": _empty,
    "minimum": _out_of_range,
    "pattern": _wrong_form,
    "not": _excluded,
    "required": _missing_keys,
    "type": _wrong_type,
    "uniqueItems": _twice,
}
