"""A value that fits a JSON Schema: what the embedded models answer with. Choices are left to a `Taste`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice

from jsonschema.protocols import Validator

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.schema_validator import limited_time, schema_validator
from pytest_helmbench.gateway.baselines.joined_schemas import NoAnswerError, joined, pointed_at
from pytest_helmbench.gateway.baselines.keywords import (
    a_schema,
    bound,
    count,
    flag,
    names,
    parts,
    parts_by_name,
    text,
)
from pytest_helmbench.gateway.baselines.pattern_text import matching_texts, searches
from pytest_helmbench.gateway.baselines.plain_values import NUMBER_KEYWORDS, numbers, strings, values_like
from pytest_helmbench.gateway.baselines.tastes import Taste

__all__ = ["NoAnswerError", "schema_answer"]

_DEEPEST = 24
_MOST_REFERENCES = 50
_SPARE_KEYS = 50
_BRANCHES = ("anyOf", "oneOf")
_TYPE_KEYWORDS = {
    "object": ("properties", "required", "additionalProperties", "minProperties", "patternProperties"),
    "array": ("items", "prefixItems", "minItems", "maxItems", "contains", "uniqueItems"),
    "string": ("pattern", "minLength", "maxLength", "format"),
    "number": NUMBER_KEYWORDS,
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


def schema_answer(schema: dict[str, JsonValue], taste: Taste) -> JsonValue:
    """Return a value that fits the schema.

    Args:
        schema: JSON Schema (Draft 2020-12) with local references only.
        taste: Chooses where the schema leaves a choice.

    Raises:
        NoAnswerError: None was found: the schema contradicts itself, recurses without an end, or constrains
            strings and combinations beyond what is tried here.
        RuleTimeoutError: Looking for one took too long.
    """
    composer = _Composer(schema, schema_validator(schema), taste)
    with limited_time():
        answer = composer.value(schema, ("#",))
        if not composer.fits(schema, answer):
            raise NoAnswerError("no value was found that fits the response schema")
    return answer


@dataclass(frozen=True, slots=True)
class _Composer:
    """Makes values for the parts of one schema. A `path` holds the references that lead to a part."""

    root: dict[str, JsonValue]
    validator: Validator
    taste: Taste
    depth: int = 0

    def fits(self, schema: JsonObject | JsonValue, value: JsonValue) -> bool:
        return bool(self.validator.evolve(schema=schema).is_valid(value))

    def value(self, schema: JsonValue, path: tuple[str, ...]) -> JsonValue:
        if schema is False or self.depth > _DEEPEST:
            raise NoAnswerError("the response schema allows no value, or none that ends")
        flat, path = self._flat(a_schema(schema), path)
        options = self._options(flat, path)
        if options is not None:
            return self._first_fit(flat, self.taste.ranked(options))
        for branches in _BRANCHES:
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

    def _inside(self, schema: JsonValue, path: tuple[str, ...]) -> JsonValue:
        return _Composer(self.root, self.validator, self.taste, self.depth + 1).value(schema, path)

    def _first_fit(
        self, schema: JsonObject, candidates: Iterator[JsonValue] | Sequence[JsonValue]
    ) -> JsonValue:
        for candidate in candidates:
            if self.fits(schema, candidate):
                return candidate
        raise NoAnswerError("no candidate fits the response schema")

    def _flat(self, schema: JsonObject, path: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...]]:
        """Return the schema with its references and `allOf` merged into it."""
        for _ in range(_MOST_REFERENCES):
            whole: JsonValue
            if "$ref" in schema:
                target = text(schema, "$ref")
                path = (*path, target)
                whole = joined(_without(schema, "$ref"), pointed_at(self.root, target))
            elif "allOf" in schema:
                whole = _without(schema, "allOf")
                for part in parts(schema, "allOf"):
                    whole = joined(whole, part)
            else:
                return schema, path
            if whole is False:
                raise NoAnswerError("the response schema allows no value, or none that ends")
            schema = a_schema(whole)
        raise NoAnswerError("the response schema refers to itself without an end")

    def _recurs(self, schema: JsonValue, path: tuple[str, ...]) -> bool:
        """Return whether the schema leads back to where we come from."""
        if not isinstance(schema, dict):
            return False
        if schema.get("$ref") in path:
            return True
        return any(self._recurs(part, path) for key in ("allOf", *_BRANCHES) for part in parts(schema, key))

    def _options(self, schema: JsonObject, path: tuple[str, ...]) -> list[JsonValue] | None:
        """Return the values to choose from where the schema names them all, else None."""
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return list(parts(schema, "enum"))
        for key in _BRANCHES:
            if key in schema and not any(self._recurs(part, path) for part in parts(schema, key)):
                return self._options_of_branches(parts(schema, key), path)
        return None

    def _options_of_branches(
        self, branches: Sequence[JsonValue], path: tuple[str, ...]
    ) -> list[JsonValue] | None:
        found: list[JsonValue] = []
        for branch in branches:
            options = self._options(*self._flat(branch, path)) if isinstance(branch, dict) else None
            if options is None:
                return None
            found += options
        return found

    def _from_branches(self, schema: JsonObject, key: str, path: tuple[str, ...]) -> JsonValue:
        rest = _without(schema, key)
        branches = self.taste.ranked(parts(schema, key))
        wanted = []
        for branch in sorted(branches, key=lambda part: self._recurs(part, path)):
            both = joined(rest, branch)
            if key == "oneOf" and isinstance(both, dict) and "not" not in both:
                both = {**both, "not": {"anyOf": [part for part in branches if part is not branch]}}
            wanted.append(both)
        return self._first_possible(
            schema, wanted, path, f"no branch of {key} in the response schema can be met"
        )

    def _from_condition(self, schema: JsonObject, path: tuple[str, ...]) -> JsonValue:
        rest = _without(schema, "if", "then", "else")
        both = joined(schema["if"], schema.get("then", True))
        wanted = [joined(rest, both), joined(rest, schema.get("else", True))]
        return self._first_possible(
            schema, wanted, path, "neither branch of a condition in the response schema can be met"
        )

    def _first_possible(
        self, schema: JsonObject, wanted: Sequence[JsonValue], path: tuple[str, ...], problem: str
    ) -> JsonValue:
        for part in wanted:
            try:
                candidate = self._inside(part, path)
            except NoAnswerError:
                continue
            if self.fits(schema, candidate):
                return candidate
        raise NoAnswerError(problem)

    def _plain_values(self, schema: JsonObject, path: tuple[str, ...]) -> Iterator[JsonValue]:
        """Yield candidates by type, null last."""
        makers: Mapping[str, Callable[[], Iterator[JsonValue]]] = {
            "object": lambda: self._objects(schema, path),
            "array": lambda: self._arrays(schema, path),
            "string": lambda: strings(schema, self.taste),
            "integer": lambda: numbers(schema, self.taste, self.fits, whole=True),
            "number": lambda: numbers(schema, self.taste, self.fits, whole=False),
            "boolean": lambda: iter(self.taste.ranked([True, False])),
            "null": lambda: iter([None]),
        }
        failure: NoAnswerError | None = None
        for name in sorted(_types(schema), key=lambda name: name == "null"):
            try:
                yield from makers[name]()
            except NoAnswerError as error:
                failure = error
        if failure is not None:
            raise failure

    def _objects(self, schema: JsonObject, path: tuple[str, ...]) -> Iterator[dict[str, JsonValue]]:
        required = names(schema, "required")
        answer: dict[str, JsonValue] = {}
        for name in dict.fromkeys([*parts_by_name(schema, "properties"), *required]):
            part = _property(schema, name)
            if name in required:
                answer[name] = self._inside(part, path)
            elif not self._recurs(part, path) and part is not False:
                try:
                    answer[name] = self._inside(part, path)
                except NoAnswerError:
                    continue
        self._fill(schema, answer, path)
        spare = [name for name in answer if name not in required]
        most = bound(schema, "maxProperties")
        while spare and most is not None and len(answer) > most:
            del answer[spare.pop()]
        yield answer
        yield {name: item for name, item in answer.items() if name in required}

    def _fill(self, schema: JsonObject, answer: dict[str, JsonValue], path: tuple[str, ...]) -> None:
        """Add keys of our own until there are `minProperties`."""
        least = count(schema, "minProperties")
        keys = [f"key_{number}" for number in range(1, least + 1)]
        for pattern in islice(parts_by_name(schema, "patternProperties"), 1):
            made = (one for extra in range(_SPARE_KEYS) for one in matching_texts(pattern, extra))
            keys = [*islice(made, least * 2), *keys]
        for key in keys:
            if len(answer) >= least:
                return
            if key not in answer and self._allowed_name(schema, key):
                answer[key] = self._inside(_property(schema, key), path)

    def _allowed_name(self, schema: JsonObject, name: str) -> bool:
        if _property(schema, name) is False:
            return False
        return "propertyNames" not in schema or self.fits(schema["propertyNames"], name)

    def _arrays(self, schema: JsonObject, path: tuple[str, ...]) -> Iterator[list[JsonValue]]:
        least, most = count(schema, "minItems"), bound(schema, "maxItems")
        prefix = parts(schema, "prefixItems")
        if least == 0 and any(self._recurs(part, path) for part in prefix):
            prefix = []
        answer = [self._inside(part, path) for part in prefix[:most]]
        items = schema.get("items", True)
        nothing_else = bool(prefix) or items is False or most == 0 or self._recurs(items, path)
        wanted = max(least, 0 if nothing_else else 1)
        if "contains" in schema:
            part = joined(items, schema["contains"])
            answer += self._listed(part, count(schema, "minContains", 1), None, path, [])
        unique = flag(schema, "uniqueItems")
        answer = self._listed(items, wanted, most, path, answer, unique=unique)
        yield answer
        if len(answer) > least:
            yield answer[:least]

    def _listed(
        self,
        items: JsonValue,
        least: int,
        most: int | None,
        path: tuple[str, ...],
        start: list[JsonValue],
        *,
        unique: bool = False,
    ) -> list[JsonValue]:
        """Return `start` with further items, at least `least` in all."""
        if len(start) >= least and start:
            return start
        options = self._options(*self._flat(items, path)) if isinstance(items, dict) else None
        if options:
            fitting = [option for option in options if self.fits(items, option)]
            found = self._tags(fitting, least, most, start)
            if len(found) >= least or unique or not found:
                return found
            return found + [found[-1]] * (least - len(found))
        if len(start) >= least:
            return list(start)
        first = self._inside(items, path)
        if not unique:
            return start + [first] * (least - len(start))
        found = list(start)
        others = (item for item in values_like(first) if item not in found and self.fits(items, item))
        while len(found) < least and (item := next(others, None)) is not None:
            found.append(item)
        return found

    def _tags(
        self, options: Sequence[JsonValue], least: int, most: int | None, start: list[JsonValue]
    ) -> list[JsonValue]:
        """Return `start` with the options that belong there, and with others until there are `least`."""
        tags = self.taste.tags(options) if options and least else []
        others = [option for option in self.taste.ranked(options) if option not in tags]
        found = [*start, *(tag for tag in tags if tag not in start)][:most]
        return found + others[: max(0, least - len(found))]


def _without(schema: JsonObject, *keys: str) -> dict[str, JsonValue]:
    return {key: item for key, item in schema.items() if key not in keys}


def _property(schema: JsonObject, name: str) -> JsonValue:
    """Return the schema of a property."""
    named = parts_by_name(schema, "properties")
    found = [named[name]] if name in named else []
    by_pattern = parts_by_name(schema, "patternProperties")
    found += [part for pattern, part in by_pattern.items() if searches(pattern, name)]
    if not found:
        return schema.get("additionalProperties", True)
    whole = found[0]
    for part in found[1:]:
        whole = joined(whole, part)
    return whole


def _types(schema: JsonObject) -> Sequence[str]:
    if "type" in schema:
        return names(schema, "type")
    guessed = [name for name, keys in _TYPE_KEYWORDS.items() if any(key in schema for key in keys)]
    return guessed or ["string", "integer", "boolean", "null", "object", "array"]
