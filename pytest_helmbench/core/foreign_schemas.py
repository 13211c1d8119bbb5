"""JSON checked against a schema that a benchmark brings, in bounded time whatever the two are."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from fractions import Fraction
from functools import lru_cache

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema.validators import extend, validator_for
from referencing import Registry
from referencing.exceptions import Unresolvable

from pytest_helmbench.core.bounded_calls import BOUNDED_CALLS, NoTimeToWait, TakesTimeError
from pytest_helmbench.core.foreign_patterns import found
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.problem import HelmbenchError

_SLOW_KEYS = frozenset(
    {"$dynamicRef", "patternProperties", "uniqueItems", "unevaluatedItems", "unevaluatedProperties"}
)
_MOST_AT_ONCE = 50_000
"""Parts of a schema, its references written out, times parts of a value: up to here no process is asked."""

_VALUES_A_PART = 20
"""Values of an `enum` that take as long as a part."""

_SHORT = 10_000
"""Characters of a schema that is checked against that of its draft at once."""

_TOO_DEEP = "too deep"

_DEFINITION = re.compile(r"#/(\$defs|definitions)/([^/~%]+)")


def schema_violation(schema: JsonObject, value: JsonValue) -> str | None:
    """Return where and by which keyword a value breaks a schema (`$.category: enum`).

    Args:
        schema: Draft 2020-12, not changed afterwards; it reaches no other address.

    Returns:
        Empty where the value fits, None where its nesting is too deep to tell.

    Raises:
        HelmbenchError: A `$ref` leads nowhere, or a pattern cannot be read.
        RuleTimeoutError: It took more than two seconds.
        TakesTimeError: Inside of `NoTimeToWait`, it may take long.
    """
    if _is_quick(schema, value):
        with suppress(TakesTimeError), NoTimeToWait():
            return _breach(_validator(_Identity(schema)), value)
    try:
        breach = BOUNDED_CALLS.call(
            f"{__name__}:breach_in_process", json.dumps(schema), value, what="holding a reply to its schema"
        )
    except RecursionError:
        return None
    return breach if isinstance(breach, str) else None


def schema_fault(schema: JsonObject) -> tuple[str, tuple[str | int, ...]] | None:
    """Return why a schema is none by the draft that it names, and keys and places that lead there.

    Raises:
        RecursionError: It is nested too deeply.
        RuleTimeoutError: It took more than two seconds.
    """
    text = json.dumps(schema)
    found: JsonValue
    if len(text) <= _SHORT:
        found = fault_in_process(text)
    else:
        found = BOUNDED_CALLS.call(f"{__name__}:fault_in_process", text, what="reading a response schema")
    if found == _TOO_DEEP:
        raise RecursionError
    if not isinstance(found, list):
        return None
    return str(found[0]), tuple(step for step in found[1:] if isinstance(step, str | int))


def fault_in_process(text: str) -> list[JsonValue] | str | None:
    """Do what `schema_fault` does where it may take long."""
    schema = json.loads(text)
    named = isinstance(schema.get("$schema", ""), str)
    validator = validator_for(schema, default=Draft202012Validator) if named else Draft202012Validator
    try:
        validator.check_schema(schema)
    except SchemaError as error:
        return [error.message, *error.path]
    except RecursionError:
        return _TOO_DEEP
    return None


def breach_in_process(schema: str, value: JsonValue) -> str | None:
    """Do what `schema_violation` does where it may take long."""
    return _breach(_read(schema), value)


def _unhurried(schema: JsonObject) -> Draft202012Validator:
    """Return a validator that reaches no other address; what it does takes as long as it takes."""
    # An empty registry: a `$ref` to an address must never open a connection.
    return _VALIDATOR(dict(schema), registry=Registry())


class _Identity:
    """A schema as a cache key: by identity, and kept alive so that the identity stays its own."""

    __slots__ = ("schema",)

    def __init__(self, schema: JsonObject) -> None:
        self.schema = schema

    def __hash__(self) -> int:
        return id(self.schema)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Identity) and other.schema is self.schema


@lru_cache(maxsize=1024)
def _validator(identity: _Identity) -> Draft202012Validator:
    return _unhurried(identity.schema)


@lru_cache(maxsize=64)
def _read(schema: str) -> Draft202012Validator:
    return _unhurried(json.loads(schema))


def _breach(validator: Draft202012Validator, value: JsonValue) -> str | None:
    try:
        error = next(iter(validator.iter_errors(value)), None)
    except RecursionError:
        return None
    except Unresolvable as error:
        raise HelmbenchError(
            f"response schema: $ref {error.ref!r} leads nowhere\n  hint: put what it refers to under '$defs'"
        ) from error
    return "" if error is None else f"{error.json_path}: {error.validator}"


def _is_quick(schema: JsonObject, value: JsonValue) -> bool:
    """Return whether every part of the schema, checked against every part of the value, is soon done."""
    parts = _parts(_Identity(schema))
    return parts is not None and parts * _size(value) <= _MOST_AT_ONCE


@lru_cache(maxsize=1024)
def _parts(identity: _Identity) -> int | None:
    """Return the number of parts, those behind a reference counted wherever it stands; None for too many to count."""
    schema, count = identity.schema, 0
    waiting: list[tuple[JsonValue, tuple[str, ...]]] = [(dict(schema), ())]
    while waiting:
        part, path = waiting.pop()
        if isinstance(part, list):
            count += len(part) // _VALUES_A_PART
            waiting.extend((item, path) for item in part)
        if not isinstance(part, dict):
            continue
        count += 1
        target = part.get("$ref")
        if count > _MOST_AT_ONCE or target in path or not _SLOW_KEYS.isdisjoint(part):
            return None
        waiting.extend((item, path) for item in part.values())
        if count > 1 and "$id" in part:
            return None
        if isinstance(target, str) and (target.startswith("#") or "$id" in schema):
            definition = _DEFINITION.fullmatch(target)
            definitions = schema.get(definition[1]) if definition else None
            if definition is None or not isinstance(definitions, Mapping):
                return None
            waiting.append((definitions.get(definition[2]), (*path, target)))
    return count


def _size(value: JsonValue) -> int:
    count = 0
    waiting = [value]
    while waiting:
        part = waiting.pop()
        count += 1
        if isinstance(part, list | dict):
            waiting.extend(part.values() if isinstance(part, dict) else part)
    return count


def _pattern(
    _validator: Draft202012Validator, pattern: JsonValue, instance: JsonValue, _schema: JsonObject
) -> Iterator[ValidationError]:
    if isinstance(instance, str) and isinstance(pattern, str) and found(pattern, instance) is None:
        yield ValidationError("a text does not match its pattern")


def _multiple_of(
    validator: Draft202012Validator, wanted: JsonValue, instance: JsonValue, schema: JsonObject
) -> Iterator[ValidationError]:
    try:
        yield from Draft202012Validator.VALIDATORS["multipleOf"](validator, wanted, instance, schema)
    except OverflowError:  # no float holds it, so whole numbers decide what it is a multiple of
        if not isinstance(instance, int) or instance % Fraction(str(wanted)):
            yield ValidationError("a number is not a multiple")


_VALIDATOR: type[Draft202012Validator] = extend(  # type: ignore[no-untyped-call]
    Draft202012Validator, {"pattern": _pattern, "multipleOf": _multiple_of}
)
