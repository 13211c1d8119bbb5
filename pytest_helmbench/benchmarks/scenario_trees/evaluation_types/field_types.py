"""Evaluation types that read one field of a JSON reply, and what no reply that fits its schema can meet."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rules import FieldRule
from pytest_helmbench.benchmarks.scenario_trees.format.schema_fields import (
    found_field,
    item_parts,
    kinds_of,
    unreachable,
)
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.source import Fault, listed
from pytest_helmbench.files.strict_json import a_number, a_text, a_whole_number, texts

_VALUE: list[JsonValue] = ["string", "number", "boolean"]
_VALUES: JsonObject = {"type": [*_VALUE, "array"], "items": {"type": _VALUE}, "minItems": 1}
"""A value as it is written, or a list of them."""
FIELD: JsonObject = {
    "description": "name the key of the reply, or a dotted path",
    "type": "string",
    "minLength": 1,
}
EXPECTED: JsonObject = {
    "description": "write the value, or for tag_threshold the list of tags, that the reply must have",
    **_VALUES,
}
_FIELD = "category"
_LISTS = ("list_includes", "tag_threshold")


def _key(kind: str) -> str:
    """Return the key of the values that a type expects."""
    return "required" if kind == "list_includes" else "expected"


def _written(source: RuleSource, kind: str) -> JsonValue:
    """Return what is expected, as written; `category_match` falls back on the frontmatter's `category`."""
    fallback = source.document.mapping().get("category") if kind == "category_match" else None
    return source.values.get(_key(kind), fallback)


def _read(source: RuleSource, kind: str) -> FieldRule:
    field, key = source.text("field") or _FIELD, _key(kind)
    schema = source.schema
    parts = () if schema is None else _compared(schema, kind, found_field(schema, field).parts)
    expected = source.typed((*source.place, key) if key in source.values else (_FIELD,), parts)
    rule = FieldRule(kind, field, expected, source.by_severity)
    if kind != "tag_threshold":
        return rule
    least, most = (a_whole_number(source.values.get(key)) for key in ("min_correct", "max_incorrect"))
    return replace(rule, min_correct=least, max_incorrect=most or 0)


def _compared(schema: JsonObject, kind: str, parts: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    """Return what a schema says of the values that a rule compares: those of a field, or of the items of its list."""
    if kind not in _LISTS:
        return parts
    return item_parts(schema, (one for one in parts if "array" in kinds_of(one) or not kinds_of(one)))


def _check(source: RuleSource, kind: str) -> None:
    written = _written(source, kind)
    if written is None and kind == "category_match" and source.has_only("field"):
        message = "nothing says which reply passes: there is neither 'category' nor 'evaluation'"
        source.fault(message, "add 'category: NAME' to the frontmatter, or 'evaluation:' with a type")
    prompt = source.files.prompt
    if source.files.schema is None:
        message = f"the response schema that {kind} needs is missing"
        path = prompt.with_name(f"{bare_name(prompt.stem)}.json")
        source.reader.findings.add(path, Fault(None, message, "add a JSON Schema of the reply"))
    field = a_text(source.values.get("field", _FIELD))
    if written is not None and field and source.schema is not None:
        expected = texts(written) if kind in _LISTS or isinstance(written, str) else ()
        faults = _unmeetable(source, FieldRule(kind, field, expected), source.schema)
        source.reader.findings.add(prompt, *faults)
    least = a_number(source.values.get("min_correct"))
    distinct = len(set(source.texts()))
    if kind == "tag_threshold" and least is not None and distinct and least > distinct:
        message = f"min_correct is {least:g}, but only {distinct} tags are expected"
        source.fault(message, f"write a number up to {distinct}", "min_correct")


def _unmeetable(source: RuleSource, rule: FieldRule, schema: JsonObject) -> Iterator[Fault]:
    """Yield why no reply that fits the schema can meet a rule."""
    found = found_field(schema, rule.field)
    line = source.line("field")
    if found.unknown is not None:
        message = f"the response schema has no field {found.unknown!r}"
        yield Fault(line, message, listed(found.unknown, found.known, "its fields"))
        return
    misfit = _misfit(rule, {kind for part in found.parts for kind in kinds_of(part)})
    if misfit is not None:
        yield Fault(line, *misfit)
        return
    parts = _compared(schema, rule.type, found.parts)
    is_here = _key(rule.type) in source.values
    for index, value in enumerate(rule.expected):
        line = source.line(_key(rule.type), index) if is_here else source.document.line("category")
        yield from unreachable(str(value), parts, rule.field, line)


def _misfit(rule: FieldRule, kinds: Collection[str]) -> tuple[str, str] | None:
    """Return why a rule cannot read a field of these JSON types, and what to do about it; None if it can."""
    shown = " or ".join(sorted(kinds))
    if rule.reads_list and kinds and "array" not in kinds:
        message = f"{rule.type} needs a list, but the field {rule.field!r} is {shown}"
        return message, 'make it "type": "array" in the response schema'
    if not rule.reads_list and kinds and set(kinds) <= {"array", "object"}:
        message = f"{rule.type} cannot compare the field {rule.field!r}, which is {shown}"
        return message, "use list_includes or tag_threshold for a list"
    return None


CATEGORY_MATCH = EvaluationType(
    "category_match",
    {"field": FIELD, "expected": EXPECTED},
    lambda source: _read(source, "category_match"),
    lambda source: _check(source, "category_match"),
    narrowed={
        "expected": {
            "description": "category_match takes one value; list_includes and tag_threshold take lists",
            "not": {"type": "array"},
        }
    },
    asks_for_polarity=True,
)
"""The type that a scenario has where it names none: `category` alone says what passes."""

LIST_INCLUDES = EvaluationType(
    "list_includes",
    {
        "field": FIELD,
        "required": {"description": "list the values that the reply's list must include", **_VALUES},
    },
    lambda source: _read(source, "list_includes"),
    lambda source: _check(source, "list_includes"),
    needed=("field", "required"),
    asks_for_polarity=True,
)
TAG_THRESHOLD = EvaluationType(
    "tag_threshold",
    {
        "field": FIELD,
        "expected": EXPECTED,
        "min_correct": {"type": "integer", "minimum": 0},
        "max_incorrect": {"type": "integer", "minimum": 0},
    },
    lambda source: _read(source, "tag_threshold"),
    lambda source: _check(source, "tag_threshold"),
    needed=("field", "expected"),
)
