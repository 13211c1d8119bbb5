"""A value for any JSON Schema: what the embedded models answer with. Choices are left to a `Taste`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice
from typing import Any, Protocol

from jsonschema import Draft202012Validator
from jsonschema.protocols import Validator
from referencing import Registry

from pytest_helmbench.gateway.baselines.pattern_text import matching_texts, searches

__all__ = ["NoAnswerError", "Taste", "schema_answer"]

_DEEPEST = 24
_SPARE_KEYS = 50
_FORMATS = {
    "date": "2024-01-01",
    "date-time": "2024-01-01T00:00:00Z",
    "time": "00:00:00Z",
    "duration": "P1D",
    "email": "name@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "ipv6": "2001:db8::1",
    "json-pointer": "/ok",
    "regex": "ok",
    "uri": "https://example.org/",
    "uri-reference": "/ok",
    "uuid": "00000000-0000-4000-8000-000000000000",
}
_TYPE_KEYS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_CHECKED = (
    "not",
    "anyOf",
    "oneOf",
    "if",
    "contains",
    "propertyNames",
    "dependentSchemas",
    "dependentRequired",
)
_HIGHEST_WINS = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_LOWEST_WINS = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")


class NoAnswerError(Exception):
    """No value was found that fits the schema."""


class Taste(Protocol):
    """What makes one embedded model differ from another."""

    def ranked(self, options: Sequence[Any]) -> list[Any]:
        """Return all the options, the preferred one first."""
        ...

    def tags(self, options: Sequence[Any]) -> list[Any]:
        """Return the options to put into a list, at least one."""
        ...

    def words(self) -> str:
        """Return free text."""
        ...


def schema_answer(schema: Mapping[str, Any], taste: Taste) -> Any:
    """Return a value that fits the schema.

    Args:
        schema: JSON Schema (Draft 2020-12) with local references only.
        taste: Chooses where the schema leaves a choice.

    Raises:
        NoAnswerError: None was found: the schema contradicts itself, recurses without an end, or constrains
            strings and combinations beyond what is tried here.
    """
    composer = _Composer(Draft202012Validator(schema, registry=Registry()), taste)
    answer = composer.value(schema, ("#",))
    if not composer.fits(schema, answer):
        raise NoAnswerError("no value was found that fits the response schema")
    return answer


@dataclass(frozen=True, slots=True)
class _Composer:
    validator: Validator
    taste: Taste
    depth: int = 0

    def fits(self, schema: Any, value: Any) -> bool:
        return bool(self.validator.evolve(schema=schema).is_valid(value))

    def value(self, schema: Any, path: tuple[str, ...]) -> Any:
        """Return a value; `path` holds the references that were followed to get here."""
        if schema is False or self.depth > _DEEPEST:
            raise NoAnswerError("the response schema allows no value, or none that ends")
        flat, path = self._flat({} if schema is True else schema, path)
        options = self._options(flat, path)
        if options is not None:
            return self._first_fit(flat, self.taste.ranked(options))
        for branches in ("anyOf", "oneOf"):
            if branches in flat:
                return self._from_branches(flat, branches, path)
        if "if" in flat:
            return self._from_condition(flat, path)
        candidates = self._plain_values(flat, path)
        if any(key in flat for key in _CHECKED):
            return self._first_fit(flat, candidates)
        for candidate in candidates:
            return candidate
        raise NoAnswerError("the response schema allows no value")

    def _inside(self, schema: Any, path: tuple[str, ...]) -> Any:
        return _Composer(self.validator, self.taste, self.depth + 1).value(schema, path)

    def _first_fit(self, schema: Mapping[str, Any], candidates: Iterator[Any] | Sequence[Any]) -> Any:
        for candidate in candidates:
            if self.fits(schema, candidate):
                return candidate
        raise NoAnswerError("no candidate fits the response schema")

    def _flat(
        self, schema: Mapping[str, Any], path: tuple[str, ...]
    ) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Return the schema with its references and `allOf` merged into it."""
        for _ in range(50):
            if "$ref" in schema:
                target = schema["$ref"]
                rest = {key: item for key, item in schema.items() if key != "$ref"}
                path = (*path, target)
                schema = _merged(rest, _pointed(self.validator.schema, target))
            elif "allOf" in schema:
                rest = {key: item for key, item in schema.items() if key != "allOf"}
                for part in schema["allOf"]:
                    rest = _merged(rest, part)
                schema = rest
            else:
                return schema, path
        raise NoAnswerError("the response schema refers to itself without an end")

    def _recurs(self, schema: Any, path: tuple[str, ...]) -> bool:
        """Return whether the schema leads back to where we come from."""
        if not isinstance(schema, Mapping):
            return False
        if schema.get("$ref") in path:
            return True
        return any(
            self._recurs(part, path) for key in ("allOf", "anyOf", "oneOf") for part in schema.get(key, ())
        )

    def _options(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> list[Any] | None:
        """Return the values to choose from where the schema names them all, else None."""
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return list(schema["enum"])
        for key in ("anyOf", "oneOf"):
            if key in schema and not any(self._recurs(part, path) for part in schema[key]):
                found: list[Any] = []
                for part in schema[key]:
                    if not isinstance(part, Mapping):
                        return None
                    options = self._options(*self._flat(part, path))
                    if options is None:
                        return None
                    found += options
                return found
        return None

    def _from_branches(self, schema: Mapping[str, Any], key: str, path: tuple[str, ...]) -> Any:
        rest = {name: item for name, item in schema.items() if name != key}
        branches = self.taste.ranked(schema[key])
        for branch in sorted(branches, key=lambda part: self._recurs(part, path)):
            wanted = _merged(rest, branch)
            if key == "oneOf" and "not" not in wanted and isinstance(wanted, Mapping):
                wanted = {**wanted, "not": {"anyOf": [part for part in branches if part is not branch]}}
            try:
                candidate = self._inside(wanted, path)
            except NoAnswerError:
                continue
            if self.fits(schema, candidate):
                return candidate
        raise NoAnswerError(f"no branch of {key} in the response schema can be met")

    def _from_condition(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Any:
        rest = {name: item for name, item in schema.items() if name not in ("if", "then", "else")}
        both = _merged(schema["if"], schema.get("then", True))
        for branch in (both, schema.get("else", True)):
            try:
                candidate = self._inside(_merged(rest, branch), path)
            except NoAnswerError:
                continue
            if self.fits(schema, candidate):
                return candidate
        raise NoAnswerError("neither branch of a condition in the response schema can be met")

    def _plain_values(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[Any]:
        """Yield candidates by type, null last."""
        types = _types(schema)
        makers: Mapping[str, Callable[[], Iterator[Any]]] = {
            "object": lambda: self._objects(schema, path),
            "array": lambda: self._arrays(schema, path),
            "string": lambda: self._strings(schema),
            "integer": lambda: self._numbers(schema, whole=True),
            "number": lambda: self._numbers(schema, whole=False),
            "boolean": lambda: iter(self.taste.ranked([True, False])),
            "null": lambda: iter([None]),
        }
        failure: NoAnswerError | None = None
        for name in sorted(types, key=lambda name: name == "null"):
            try:
                yield from makers[name]()
            except NoAnswerError as error:
                failure = error
        if failure is not None:
            raise failure

    def _objects(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[dict[str, Any]]:
        properties: Mapping[str, Any] = schema.get("properties", {})
        required: list[str] = schema.get("required", [])
        answer: dict[str, Any] = {}
        for name in dict.fromkeys([*properties, *required]):
            part = self._property(schema, name)
            if name in required:
                answer[name] = self._inside(part, path)
            elif not self._recurs(part, path) and part is not False:
                try:
                    answer[name] = self._inside(part, path)
                except NoAnswerError:
                    continue
        self._fill(schema, answer, path)
        spare = [name for name in answer if name not in required]
        while spare and len(answer) > schema.get("maxProperties", math.inf):
            del answer[spare.pop()]
        yield answer
        yield {name: item for name, item in answer.items() if name in required}

    def _property(self, schema: Mapping[str, Any], name: str) -> Any:
        parts = [schema["properties"][name]] if name in schema.get("properties", {}) else []
        parts += [
            part for pattern, part in schema.get("patternProperties", {}).items() if searches(pattern, name)
        ]
        if not parts:
            return schema.get("additionalProperties", True)
        whole = parts[0]
        for part in parts[1:]:
            whole = _merged(whole, part)
        return whole

    def _fill(self, schema: Mapping[str, Any], answer: dict[str, Any], path: tuple[str, ...]) -> None:
        """Add keys of our own until there are `minProperties`."""
        least = schema.get("minProperties", 0)
        patterns = list(schema.get("patternProperties", {}))
        names = [f"key_{number}" for number in range(1, least + 1)]
        if patterns:
            names = [
                *islice(
                    (text for extra in range(_SPARE_KEYS) for text in matching_texts(patterns[0], extra)),
                    least * 2,
                ),
                *names,
            ]
        for name in names:
            if len(answer) >= least:
                return
            if name not in answer and self._allowed_name(schema, name):
                answer[name] = self._inside(self._property(schema, name), path)

    def _allowed_name(self, schema: Mapping[str, Any], name: str) -> bool:
        if self._property(schema, name) is False:
            return False
        return "propertyNames" not in schema or self.fits(schema["propertyNames"], name)

    def _arrays(self, schema: Mapping[str, Any], path: tuple[str, ...]) -> Iterator[list[Any]]:
        least, most = schema.get("minItems", 0), schema.get("maxItems", math.inf)
        prefix = schema.get("prefixItems", [])
        answer: list[Any] = []
        if least == 0 and any(self._recurs(part, path) for part in prefix):
            prefix = []
        answer += [self._inside(part, path) for part in prefix[: None if most == math.inf else most]]
        items = schema.get("items", True)
        wanted = max(least, 0 if prefix or items is False or self._recurs(items, path) else min(1, most))
        if "contains" in schema:
            part = _merged(items, schema["contains"])
            answer += self._listed(part, schema.get("minContains", 1), math.inf, path, [])
        unique = schema.get("uniqueItems", False)
        answer = self._listed(items, wanted, most, path, answer, unique=unique)
        yield answer
        if len(answer) > least:
            yield answer[:least]

    def _listed(
        self,
        items: Any,
        least: int,
        most: float,
        path: tuple[str, ...],
        start: list[Any],
        *,
        unique: bool = False,
    ) -> list[Any]:
        """Return `start` with further items, at least `least` in all."""
        if len(start) >= least and start:
            return start
        options = None
        if isinstance(items, Mapping):
            flat, inner = self._flat(items, path)
            options = self._options(flat, inner)
        if options:
            fitting = [option for option in options if self.fits(items, option)]
            tags = self.taste.tags(fitting) if fitting and least else []
            others = [option for option in self.taste.ranked(fitting) if option not in tags]
            found = [*start, *[tag for tag in tags if tag not in start]]
            found = found if most == math.inf else found[: int(most)]
            found += others[: max(0, least - len(found))]
            if len(found) >= least or unique or not found:
                return found
            return found + [found[-1]] * (least - len(found))
        found = list(start)
        if len(found) < least:
            first = self._inside(items, path)
            if not unique:
                return found + [first] * (least - len(found))
            variants = (item for item in _variants(first) if item not in found and self.fits(items, item))
            while len(found) < least and (item := next(variants, None)) is not None:
                found.append(item)
        return found

    def _strings(self, schema: Mapping[str, Any]) -> Iterator[str]:
        least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        if "pattern" in schema:
            samples = (
                text
                for extra in range(max(least, 1) + 2)
                for text in matching_texts(schema["pattern"], extra)
            )
            yield from (text for text in samples if least <= len(text) <= most)
            return
        text = _FORMATS.get(schema.get("format", ""), "") or self.taste.words()
        for words in (text, "ok", "yes", "no", "a", "0", "none", ""):
            padded = words if len(words) >= least else ((words or "x") * least)[:least]
            yield padded if most == math.inf else padded[: int(most)]

    def _numbers(self, schema: Mapping[str, Any], *, whole: bool) -> Iterator[int | float]:
        step = Fraction(str(schema.get("multipleOf", 1)))
        step = Fraction(step.numerator) if whole else step
        low, high = _bounds(schema)
        first = 0 if low is None else math.ceil(low / step)
        if low is None and high is not None:
            first = min(0, math.floor(high / step) - 8)
        last = first + 100 if high is None else math.floor(high / step)
        steps: Sequence[int] = range(first, min(last, first + 100) + 1)
        found = [_json_number(step * number) for number in steps]
        fitting = [number for number in found if self.fits(_number_part(schema), number)]
        if fitting:
            yield from self.taste.ranked(fitting) if low is not None and high is not None else fitting
            if not whole:
                halves = (number + 0.5 for number in fitting)
                yield from (half for half in halves if self.fits(_number_part(schema), half))
        elif not whole and low is not None and high is not None:
            yield float((low + high) / 2)  # the bounds are closer than one step


def _merged(left: Any, right: Any) -> Any:
    """Return a schema that both sides allow, as far as keywords can be joined."""
    if left is False or right is False:
        return False
    if left is True or not left:
        return right
    if right is True or not right:
        return left
    joined = dict(left)
    for key, value in right.items():
        joined[key] = _joined(key, joined[key], value) if key in joined else value
    return joined


def _joined(key: str, left: Any, right: Any) -> Any:
    if left == right:
        return left
    if key in _HIGHEST_WINS:
        return max(left, right)
    if key in _LOWEST_WINS:
        return min(left, right)
    if key in ("properties", "patternProperties", "$defs"):
        return {
            name: _merged(left.get(name, True), right.get(name, True))
            for name in dict.fromkeys([*left, *right])
        }
    if key == "required":
        return list(dict.fromkeys([*left, *right]))
    if key == "enum":
        return [value for value in left if value in right]
    if key == "type":
        return _common_types(left, right)
    if key in ("items", "additionalProperties", "contains", "propertyNames"):
        return _merged(left, right)
    if key == "allOf":
        return [*left, *right]
    return right


def _common_types(left: str | list[str], right: str | list[str]) -> list[str]:
    ours = [left] if isinstance(left, str) else left
    theirs = [right] if isinstance(right, str) else right
    common = [name for name in ours if name in theirs]
    if "integer" not in common and "integer" in {*ours, *theirs} and "number" in {*ours, *theirs}:
        common.append("integer")
    return common


def _pointed(root: Any, pointer: str) -> Any:
    """Return what a local reference points at, by JSON pointer or anchor."""
    found: Any = root
    if not pointer.startswith("#"):
        raise NoAnswerError(f"the response schema refers to {pointer!r}, which is not part of it")
    for part in pointer[1:].split("/")[1:]:
        key = part.replace("~1", "/").replace("~0", "~").replace("%25", "%")
        if isinstance(found, list) and key.isdigit() and int(key) < len(found):
            found = found[int(key)]
        elif isinstance(found, Mapping) and key in found:
            found = found[key]
        else:
            raise NoAnswerError(f"the response schema refers to {pointer!r}, which is not there")
    if "/" not in pointer and len(pointer) > 1:
        anchored = (part for part in root.get("$defs", {}).values() if part.get("$anchor") == pointer[1:])
        found = next(anchored, True)
    return found


def _types(schema: Mapping[str, Any]) -> Sequence[str]:
    named = schema.get("type")
    if named is not None:
        return [named] if isinstance(named, str) else named
    guessed = [name for name, keys in _TYPE_KEYS.items() if any(key in schema for key in keys)]
    return guessed or ["string", "integer", "boolean", "null", "object", "array"]


def _bounds(schema: Mapping[str, Any]) -> tuple[Fraction | None, Fraction | None]:
    lows = [Fraction(str(schema[key])) for key in ("minimum", "exclusiveMinimum") if key in schema]
    highs = [Fraction(str(schema[key])) for key in ("maximum", "exclusiveMaximum") if key in schema]
    return max(lows, default=None), min(highs, default=None)


def _number_part(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: schema[key] for key in _TYPE_KEYS["number"] if key in schema}


def _json_number(value: Fraction) -> int | float:
    return value.numerator if value.denominator == 1 else float(value)


def _variants(value: Any) -> Iterator[Any]:
    """Yield the value and others like it, for lists without repetition."""
    yield value
    for number in range(1, 1_000):
        if isinstance(value, bool):
            yield not value
            return
        if isinstance(value, str):
            yield f"{value}{number}"
            yield f"{value[: -len(str(number))]}{number}"
        elif isinstance(value, int | float):
            yield value + number
            yield value - number
        elif isinstance(value, list):
            yield value * (number + 1)
            yield from ([*value[:-1], item] for item in islice(_variants(value[-1]), 3) if value)
        elif isinstance(value, dict):
            for name, item in value.items():
                for other in islice(_variants(item), number + 1):
                    yield {**value, name: other}
        else:
            return
