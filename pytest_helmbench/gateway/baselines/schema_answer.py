"""Answers of the embedded models: the options that each takes, and a value for a response schema."""

from __future__ import annotations

import itertools
import json
import math
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import field
from difflib import get_close_matches
from fractions import Fraction
from typing import TypeVar

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError

BASELINE_IDS = ("baseline/lexical", "baseline/lookup", "baseline/random", "baseline/first")

_WORD = re.compile(r"[^\W_]+")
_SENTENCE_END = re.compile(r"[.!?](?=\s)|\n")
_SUFFIXES = ("ingly", "edly", "ation", "ness", "ment", "ing", "ies", "ed", "ly", "es", "s", "e", "y")
_SHORTEST_STEM = 3
_SHORTEST_CONTENT_WORD = 4  # shorter ones are mostly articles and prepositions
_LONGEST_SENTENCE = 300

_LARGEST = 10_000  # parts of an answer
_DEEPEST = 24  # references, one inside of the other
_MOST_STEPS = 100  # of numbers to choose from
_TYPES_BY_KEYWORD = {
    "properties": "object",
    "required": "object",
    "items": "array",
    "minItems": "array",
    "minimum": "number",
    "maximum": "number",
}

_Option = TypeVar("_Option")
_UNREAD = (
    "pattern oneOf allOf not if then else contains prefixItems patternProperties propertyNames minProperties"
    " maxProperties dependentRequired dependentSchemas unevaluatedProperties unevaluatedItems $dynamicRef $anchor"
)
_ENDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


class OptionPicker:
    """Chooses where a request leaves a choice. Options are texts, or values that JSON can hold.

    `first` takes the first of everything, `random` anything, `lexical` what shares most word stems with a text, and
    `lookup` counts the words too by which a line of the prompt explains an option (`- OPTION: …`, `| OPTION | … |`).

    Args:
        model_id: One of `BASELINE_IDS`.
        seed: Decides what `random` draws.
        text: The message, to which `lexical` and `lookup` compare the options.
        prompt: All that was sent, where `lookup` finds the explanations.

    Raises:
        HelmbenchError: No such baseline.

    Source:
        `lookup` is the simplified algorithm of M. Lesk, SIGDOC 1986: the sense whose definition overlaps most.
    """

    def __init__(self, model_id: str, seed: str, text: str, prompt: str = "") -> None:
        if model_id not in BASELINE_IDS:
            nearest = get_close_matches(model_id, BASELINE_IDS, n=1)
            hint = f"did you mean {nearest[0]!r}? " if nearest else ""
            raise HelmbenchError(
                f"{model_id}: there is no such baseline\n  hint: {hint}known baselines: {', '.join(BASELINE_IDS)}"
            )
        self._source = random.Random(seed) if model_id == "baseline/random" else None
        self._text = text if model_id in ("baseline/lexical", "baseline/lookup") else ""
        self._stems = frozenset(_stems(self._text))
        self._prompt = prompt if model_id == "baseline/lookup" else ""

    def ranked(self, options: Sequence[_Option]) -> list[_Option]:
        """Return all the options, the preferred one first."""
        if self._source is not None:
            return self._source.sample(list(options), len(options))
        return sorted(options, key=self._shared, reverse=True)  # stable: ties stay in order

    def tags(self, options: Sequence[_Option]) -> list[_Option]:
        """Return the options to put into a list, at least one."""
        if self._source is not None:
            count = self._source.randint(1, len(options))
            chosen = set(self._source.sample(range(len(options)), count))
            return [option for index, option in enumerate(options) if index in chosen]
        return [option for option in options if self._shared(option)] or [options[0]]

    def words(self) -> str:
        """Return free text."""
        return _first_sentence(self._text) or "ok"

    def shared_with(self, name: str, description: str) -> int:
        """Return how many words a tool shares with the message; 0 for a model that compares none."""
        return len(self._stems.intersection([*_stems(name), *_stems(description, _SHORTEST_CONTENT_WORD)]))

    def _shared(self, option: object) -> int:
        if not self._stems:
            return 0
        text = option if isinstance(option, str) else json.dumps(option)
        explained = _stems(self._explanation(text), _SHORTEST_CONTENT_WORD)
        return len(self._stems.intersection([*_stems(text), *explained]))

    def _explanation(self, option: str) -> str:
        line = re.search(rf"^[-*| ]*`?{re.escape(option)}`?[*:| ]+(.+)$", self._prompt, re.MULTILINE)
        return "" if line is None else line[1]


def _first_sentence(text: str) -> str:
    start = text.strip()[:_LONGEST_SENTENCE]
    end = _SENTENCE_END.search(start)
    return start if end is None else start[: end.end()].strip()


def _stems(text: str, shortest_word: int = 1) -> Iterator[str]:
    return (_stem(word) for word in _WORD.findall(text.lower()) if len(word) >= shortest_word)


def _stem(word: str) -> str:
    for suffix in _SUFFIXES:
        if word.endswith(suffix) and len(word) - len(suffix) >= _SHORTEST_STEM:
            return word.removesuffix(suffix)
    return word


class NoAnswerError(Exception):
    """A schema that allows no value, or uses what embedded models do not read."""


def schema_answer(schema: JsonObject, picker: OptionPicker) -> JsonValue:
    """Return a value that fits a schema.

    Args:
        schema: JSON Schema of the subset that strict structured outputs allow: objects, arrays, `enum`, `const`,
            `anyOf`, texts, numbers, booleans, null, their simple bounds, and `$ref` into the schema itself.
        picker: Chooses where the schema leaves a choice.

    Raises:
        NoAnswerError: The schema contradicts itself, recurses without an end, or uses another keyword.
        TypeError: A keyword holds a value of another type than it should.
    """
    return _Composer(schema, picker).value(dict(schema), ())


@dataclass(frozen=True, slots=True)
class _Composer:
    """Makes values for the parts of one schema. A `path` holds the references that lead to a part."""

    root: JsonObject
    picker: OptionPicker
    made: Iterator[int] = field(default_factory=itertools.count)

    def value(self, schema: JsonValue, path: tuple[str, ...]) -> JsonValue:
        flat, path = self._resolved(schema, path)
        if len(path) > _DEEPEST or next(self.made) > _LARGEST:
            raise NoAnswerError("the response schema allows no value that ends")
        options = self._options(flat, path)
        if options is not None:
            return self.picker.ranked(options)[0]
        if "anyOf" in flat:
            return self._from_branches(flat, path)
        match _type_of(flat):
            case "object":
                return self._object(flat, path)
            case "array":
                return self._array(flat, path)
            case "string":
                return self._text(flat)
            case "integer" | "number" as name:
                return self._number(flat, whole=name == "integer")
            case "boolean":
                return self.picker.ranked([True, False])[0]
            case "null":
                return None
            case other:
                raise TypeError(f"{other!r} is not a type")

    def _resolved(self, schema: JsonValue, path: tuple[str, ...]) -> tuple[JsonObject, tuple[str, ...]]:
        """Return a schema with its references followed."""
        if schema is False:
            raise NoAnswerError("the response schema allows no value")
        flat = {} if schema is True else object_of(schema)
        while "$ref" in flat:
            target = _text(flat["$ref"])
            if len(path) > _DEEPEST:
                raise NoAnswerError("the response schema refers to itself without an end")
            path = (*path, target)
            beside = {key: value for key, value in flat.items() if key != "$ref"}
            flat = {**object_of(self._pointed_at(target)), **beside}
        unread = next((key for key in _UNREAD.split() if key in flat), None)
        if unread is not None:
            raise NoAnswerError(f"the response schema uses {unread!r}, which embedded models do not read")
        return flat, path

    def _pointed_at(self, pointer: str) -> JsonValue:
        if pointer != "#" and not pointer.startswith("#/"):
            raise NoAnswerError(f"the response schema refers to {pointer!r}, which is not part of it")
        found: JsonValue = dict(self.root)
        for part in pointer.split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or key not in found:
                raise NoAnswerError(f"the response schema refers to {pointer!r}, which is not there")
            found = found[key]
        return found

    def _recurs(self, schema: JsonValue, path: tuple[str, ...]) -> bool:
        """Return whether a schema leads back to where we come from."""
        if not isinstance(schema, dict):
            return False
        return schema.get("$ref") in path or any(
            self._recurs(part, path) for part in json_list(schema.get("anyOf", []))
        )

    def _options(self, schema: JsonObject, path: tuple[str, ...]) -> list[JsonValue] | None:
        """Return the values to choose from where the schema names them all, else None."""
        if "const" in schema:
            return [schema["const"]]
        if "enum" in schema:
            return json_list(schema["enum"])
        if "anyOf" not in schema or self._recurs(dict(schema), path):
            return None
        found: list[JsonValue] = []
        for branch in json_list(schema["anyOf"]):
            options = self._options(*self._resolved(branch, path))
            if options is None:
                return None
            found += options
        return found

    def _from_branches(self, schema: JsonObject, path: tuple[str, ...]) -> JsonValue:
        beside = {key: value for key, value in schema.items() if key != "anyOf"}
        failure = NoAnswerError("no branch of anyOf in the response schema can be met")
        branches = self.picker.ranked(json_list(schema["anyOf"]))
        for branch in sorted(branches, key=lambda part: self._recurs(part, path)):
            try:
                return self.value({**beside, **branch} if isinstance(branch, dict) else branch, path)
            except NoAnswerError as error:
                failure = error
        raise failure

    def _object(self, schema: JsonObject, path: tuple[str, ...]) -> JsonValue:
        named = object_of(schema.get("properties", {}))
        required = [_text(name) for name in json_list(schema.get("required", []))]
        answer: dict[str, JsonValue] = {}
        for name in dict.fromkeys([*named, *required]):
            part = named.get(name, schema.get("additionalProperties", True))
            if name in required or not (part is False or self._recurs(part, path)):
                answer[name] = self.value(part, path)
        return answer

    def _array(self, schema: JsonObject, path: tuple[str, ...]) -> JsonValue:
        least, most = _bound(schema, "minItems") or 0, _bound(schema, "maxItems")
        items = schema.get("items", True)
        wanted = max(least, 0 if most == 0 or items is False or self._recurs(items, path) else 1)
        if not wanted:
            return []
        options = self._options(*self._resolved(items, path))
        if options is None:
            found = [self.value(items, path)]
        else:
            tags = self.picker.tags(options)[:most]
            others = [option for option in self.picker.ranked(options) if option not in tags]
            found = tags + others[: max(0, least - len(tags))]
        if len(found) < least and schema.get("uniqueItems"):
            raise NoAnswerError(
                "the response schema uses 'uniqueItems' with more items than embedded models find"
            )
        return found + [found[-1]] * (least - len(found))

    def _text(self, schema: JsonObject) -> str:
        least = _bound(schema, "minLength") or 0
        words = self.picker.words()
        padded = words if len(words) >= least else ((words or "x") * least)[:least]
        return padded[: _bound(schema, "maxLength")]

    def _number(self, schema: JsonObject, *, whole: bool) -> int | float:
        """Return a number within the bounds, a whole step where there is one."""
        step = Fraction(str(schema.get("multipleOf", 1)))
        step = Fraction(step.numerator) if whole else step
        low = _edge(schema, "minimum", "exclusiveMinimum", 1, step)
        high = _edge(schema, "maximum", "exclusiveMaximum", -1, step)
        first = low if low is not None else min(0, high or 0)
        last = high if high is not None else first
        steps = range(first, min(last, first + _MOST_STEPS) + 1)
        if steps:
            number = step * (self.picker.ranked(steps) if low is not None else steps)[0]
            return number.numerator if number.denominator == 1 else float(number)
        if whole or "multipleOf" in schema:
            raise NoAnswerError("the response schema allows no number between its bounds")
        ends = [schema[key] for key in schema if key in _ENDS]
        return sum(float(str(end)) for end in ends) / len(ends)  # the bounds are closer than one step


def _edge(schema: JsonObject, inclusive: str, exclusive: str, sign: int, step: Fraction) -> int | None:
    """Return the outermost whole number of steps within one side's bounds; None where it has none."""
    found: list[int] = []
    if inclusive in schema:
        found.append(math.ceil(sign * Fraction(str(schema[inclusive])) / step))
    if exclusive in schema:
        found.append(math.floor(sign * Fraction(str(schema[exclusive])) / step) + 1)
    return sign * max(found) if found else None


def _type_of(schema: JsonObject) -> str:
    stated = schema.get("type")
    if isinstance(stated, list):
        return _text(next((name for name in stated if name != "null"), "null"))
    if stated is not None:
        return _text(stated)
    return next((name for key, name in _TYPES_BY_KEYWORD.items() if key in schema), "string")


def object_of(value: JsonValue) -> dict[str, JsonValue]:
    """Return a JSON object, or raise a TypeError."""
    if isinstance(value, dict):
        return value
    raise TypeError(f"{type(value).__name__} is not an object")


def json_list(value: JsonValue) -> list[JsonValue]:
    """Return a JSON array, or raise a TypeError."""
    if isinstance(value, list):
        return value
    raise TypeError(f"{type(value).__name__} is not a list")


def _text(value: JsonValue) -> str:
    if isinstance(value, str):
        return value
    raise TypeError(f"{type(value).__name__} is not a text")


def _bound(schema: JsonObject, key: str) -> int | None:
    """Return a number of items or characters; None where the keyword is missing."""
    value = schema.get(key)
    if value is None or isinstance(value, int | float):
        return value if value is None else int(value)
    raise TypeError(f"{key} holds {type(value).__name__}")
