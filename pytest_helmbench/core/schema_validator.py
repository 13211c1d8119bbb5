"""Holding JSON to a schema that a benchmark brings, in a bounded time whatever the two are."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend
from referencing import Registry

from pytest_helmbench.core.foreign_patterns import found
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.pattern_process import RuleTimeoutError
from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["holds_key", "limited_time", "patterns_in", "schema_validator"]

_LIMIT_S = 2.0
_COUNTED = ("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "items", "properties", "contains")
"""Keywords that lead from one schema to others: in them the time is looked at."""

_ends: ContextVar[float | None] = ContextVar("ends", default=None)

_Keyword = Callable[
    [Draft202012Validator, JsonValue, JsonValue, JsonObject], "Iterator[ValidationError] | None"
]


def schema_validator(schema: JsonObject) -> Draft202012Validator:
    """Return a validator of Draft 2020-12 without access to other addresses. It is to be used in `limited_time`.

    Raises:
        HelmbenchError: The schema asks for what cannot be told in bounded time.
    """
    if holds_key(schema, "unevaluatedProperties") and holds_key(schema, "patternProperties"):
        raise HelmbenchError(
            "response schema: patternProperties and unevaluatedProperties in one schema are not read here"
            "\n  hint: say what else is allowed with additionalProperties"
        )
    # An empty registry: a `$ref` to an address must never open a connection.
    return _BOUNDED(dict(schema), registry=Registry())


@contextmanager
def limited_time() -> Iterator[None]:
    """End validators of this thread after two seconds of its CPU time.

    Raises:
        RuleTimeoutError: The two seconds are over.
    """
    token = _ends.set(time.thread_time() + _LIMIT_S)
    try:
        yield
    finally:
        _ends.reset(token)


def patterns_in(schema: JsonObject) -> Iterator[str]:
    """Yield the regular expressions that a schema may search for."""
    for part in _parts(schema):
        pattern, by_pattern = part.get("pattern"), part.get("patternProperties")
        if isinstance(pattern, str):
            yield pattern
        if isinstance(by_pattern, Mapping):
            yield from by_pattern


def _parts(schema: JsonObject) -> Iterator[JsonObject]:
    waiting: list[JsonValue] = [dict(schema)]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            yield part
            waiting.extend(part.values())
        elif isinstance(part, list):
            waiting.extend(part)


def holds_key(schema: JsonObject, key: str) -> bool:
    """Return whether a key stands anywhere in a schema."""
    return any(key in part for part in _parts(schema))


def _check_time() -> None:
    ends = _ends.get()
    if ends is not None and time.thread_time() > ends:
        raise RuleTimeoutError(
            f"holding the reply to its schema took more than {_LIMIT_S:g} s"
            "\n  hint: references that lead to the same part over and over may take time without end"
        )


def _counted(keyword: _Keyword) -> _Keyword:
    def checked(
        validator: Draft202012Validator, value: JsonValue, instance: JsonValue, schema: JsonObject
    ) -> Iterator[ValidationError]:
        _check_time()
        yield from keyword(validator, value, instance, schema) or ()

    return checked


def _pattern(
    _validator: Draft202012Validator, pattern: JsonValue, instance: JsonValue, _schema: JsonObject
) -> Iterator[ValidationError]:
    _check_time()
    if isinstance(instance, str) and isinstance(pattern, str) and not found(pattern, instance):
        yield ValidationError("a text does not match its pattern")


def _pattern_properties(
    validator: Draft202012Validator, patterns: JsonValue, instance: JsonValue, _schema: JsonObject
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict) or not isinstance(patterns, Mapping):
        return
    for pattern, part in patterns.items():
        for name, value in instance.items():
            _check_time()
            if isinstance(part, bool | Mapping) and found(pattern, name):
                yield from validator.descend(value, part, path=name, schema_path=pattern)


def _additional_properties(
    validator: Draft202012Validator, wanted: JsonValue, instance: JsonValue, schema: JsonObject
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    known, patterns = schema.get("properties"), schema.get("patternProperties")
    names = known if isinstance(known, Mapping) else {}
    shapes = tuple(patterns) if isinstance(patterns, Mapping) else ()
    for name, value in instance.items():
        if name in names or any(found(shape, name) for shape in shapes):
            continue
        if wanted is False:
            yield ValidationError("a property is not allowed")
            return
        if isinstance(wanted, bool | Mapping):
            yield from validator.descend(value, wanted, path=name)


def _unique_items(
    _validator: Draft202012Validator, wanted: JsonValue, instance: JsonValue, _schema: JsonObject
) -> Iterator[ValidationError]:
    if wanted is True and isinstance(instance, list):
        forms = {json.dumps(_comparable(item), sort_keys=True) for item in instance}
        if len(forms) < len(instance):
            yield ValidationError("items are not unique")


def _multiple_of(
    validator: Draft202012Validator, wanted: JsonValue, instance: JsonValue, schema: JsonObject
) -> Iterator[ValidationError]:
    _check_time()
    try:
        yield from Draft202012Validator.VALIDATORS["multipleOf"](validator, wanted, instance, schema)
    except OverflowError:  # no float holds it, so what it is a multiple of is told by whole numbers
        if (
            not isinstance(instance, int)
            or not isinstance(wanted, int | float)
            or instance % Fraction(str(wanted))
        ):
            yield ValidationError("a number is no multiple")


def _comparable(value: JsonValue) -> JsonValue:
    """Return a value in the form that equal values share: 1.0 as 1."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_comparable(item) for item in value]
    if isinstance(value, dict):
        return {name: _comparable(item) for name, item in value.items()}
    return value


_BOUNDED: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator,
    {
        **{name: _counted(Draft202012Validator.VALIDATORS[name]) for name in _COUNTED},
        "pattern": _pattern,
        "patternProperties": _pattern_properties,
        "additionalProperties": _additional_properties,
        "multipleOf": _multiple_of,
        "uniqueItems": _unique_items,
    },
)
