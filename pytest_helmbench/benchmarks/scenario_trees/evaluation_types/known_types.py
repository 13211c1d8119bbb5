"""The table of evaluation types, and the schema of frontmatter that follows."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.conversation_rule import ConversationRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    OF_TURNS,
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.judged_types import RUBRIC, SQE
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.python_type import PYTHON
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rules import (
    CombinedRule,
    FieldRule,
    LengthRule,
    MeasuredRule,
    PathRule,
    PatternRule,
    TextRule,
    steps_of,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.tool_calls import TOOL_CALLS
from pytest_helmbench.benchmarks.scenario_trees.format.schema_fields import (
    followed,
    found_field,
    item_parts,
    kinds_of,
    unreachable,
)
from pytest_helmbench.benchmarks.scenario_trees.format.side_files import PROMPT_FRONTMATTER
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.core.foreign_patterns import PatternError, check_pattern
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.source import Fault, listed
from pytest_helmbench.files.strict_json import a_mapping, a_number, a_text, a_whole_number, texts
from pytest_helmbench.files.validation import FormatSchema
from pytest_helmbench.files.yaml_text import Document, Place
from pytest_helmbench.judging.comparisons.exact import comparable

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
_NONE: Mapping[str, JsonObject] = MappingProxyType({})
_DEFAULT_FIELD = "category"
_OF_LISTS = ("list_includes", "tag_threshold")


def _expected_key(kind: str) -> str:
    """Return the key of the values that a type expects."""
    return "required" if kind == "list_includes" else "expected"


def _expected_value(source: RuleSource, kind: str) -> JsonValue:
    """Return what is expected, as written; `category_match` falls back on the frontmatter's `category`."""
    fallback = source.document.mapping().get("category") if kind == "category_match" else None
    return source.values.get(_expected_key(kind), fallback)


def _field_rule(source: RuleSource, kind: str) -> FieldRule:
    field, key = source.text("field") or _DEFAULT_FIELD, _expected_key(kind)
    schema = source.schema
    parts = () if schema is None else _compared(schema, kind, found_field(schema, field).parts)
    expected = source.typed((*source.place, key) if key in source.values else (_DEFAULT_FIELD,), parts)
    rule = FieldRule(kind, field, expected, source.by_severity)
    if kind != "tag_threshold":
        return rule
    least, most = (a_whole_number(source.values.get(key)) for key in ("min_correct", "max_incorrect"))
    return replace(rule, min_correct=least, max_incorrect=most or 0)


def _compared(schema: JsonObject, kind: str, parts: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
    """Return what a schema says of the values that a rule compares: those of a field, or of the items of its list."""
    if kind not in _OF_LISTS:
        return parts
    return item_parts(schema, (one for one in parts if "array" in kinds_of(one) or not kinds_of(one)))


def _check_field(source: RuleSource, kind: str) -> None:
    written = _expected_value(source, kind)
    if written is None and kind == "category_match" and source.has_only("field"):
        message = "nothing says which reply passes: there is neither 'category' nor 'evaluation'"
        source.fault(message, "add 'category: NAME' to the frontmatter, or 'evaluation:' with a type")
    prompt = source.files.prompt
    if source.files.schema is None:
        message = f"the response schema that {kind} needs is missing"
        path = prompt.with_name(f"{bare_name(prompt.stem)}.json")
        source.reader.findings.add(path, Fault(None, message, "add a JSON Schema of the reply"))
    field = a_text(source.values.get("field", _DEFAULT_FIELD))
    if written is not None and field and source.schema is not None:
        expected = texts(written) if kind in _OF_LISTS or isinstance(written, str) else ()
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
    is_here = _expected_key(rule.type) in source.values
    for index, value in enumerate(rule.expected):
        line = source.line(_expected_key(rule.type), index) if is_here else source.document.line("category")
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
    lambda source: _field_rule(source, "category_match"),
    lambda source: _check_field(source, "category_match"),
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
    {"field": FIELD, "required": TOOL_CALLS.keys["required"]},
    lambda source: _field_rule(source, "list_includes"),
    lambda source: _check_field(source, "list_includes"),
    needed=("field", "required"),
    narrowed={"required": {"description": "list the values that the reply's list must include", **_VALUES}},
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
    lambda source: _field_rule(source, "tag_threshold"),
    lambda source: _check_field(source, "tag_threshold"),
    needed=("field", "expected"),
)


_UNITS = ("characters", "words", "lines")
_IGNORE_CASE: JsonObject = {
    "description": "true where capital and small letters are the same",
    "type": "boolean",
}
_OF: JsonObject = {
    "description": "list rules, each with its 'type' and keys",
    "type": "array",
    "minItems": 1,
    "items": {"$ref": "#/$defs/rule"},
}


_TURN_NUMBER = re.compile(r"[1-9][0-9]{0,3}")
_RULES_OF_TURNS: JsonObject = {
    "turns": {
        "description": "write numbers of turns, and the rule for the model's reply to each",
        "type": "object",
        "minProperties": 1,
        "propertyNames": {
            "description": "write the number of a turn, from 1",
            "pattern": f"^{_TURN_NUMBER.pattern}$",
        },
        "additionalProperties": {"$ref": "#/$defs/rule"},
    },
    "each": {"$ref": "#/$defs/rule"},
}


def _ignores_case(source: RuleSource) -> bool:
    return source.values.get("ignore_case") is True


def _of_texts(name: str, of_empty: str) -> EvaluationType:
    """Return a type with texts in `expected`; `of_empty` says what follows of an empty one."""

    def read(source: RuleSource) -> TextRule:
        case = _ignores_case(source)
        return TextRule(name, source.text("field"), source.texts(), source.by_severity, case)

    def is_empty(source: RuleSource, text: str) -> bool:
        """Return whether a text says nothing of a reply: `equals` compares no white space, and fields may be empty."""
        compared = comparable(text, ignore_case=False)
        return not compared if name != "equals" else "field" not in source.values and not compared.strip()

    def check(source: RuleSource) -> None:
        written = source.values.get("expected")
        for index, text in enumerate(written if isinstance(written, list) else [written]):
            if isinstance(text, str) and is_empty(source, text):
                message = f"{name}: an empty text in 'expected': {of_empty}"
                source.fault(message, "write a text, or remove the entry", "expected", index)

    keys = {"field": FIELD, "expected": EXPECTED, "ignore_case": _IGNORE_CASE}
    return EvaluationType(name, keys, read, check, needed=("expected",), asks_for_polarity=True)


CONTAINS = _of_texts("contains", "every reply holds it")
NOT_CONTAINS = _of_texts("not_contains", "no reply passes")
EQUALS = _of_texts(
    "equals", "an empty reply is wrong whatever is expected; a field may be empty ('field: NAME')"
)


def _pattern(source: RuleSource) -> PatternRule:
    pattern = source.text("pattern") or ""
    return PatternRule("regex", source.text("field"), pattern, source.by_severity, _ignores_case(source))


def _check_pattern(source: RuleSource) -> None:
    try:
        check_pattern(source.text("pattern") or "")
    except PatternError as error:
        hint = "write it as Python's `re` or the package `regex` reads it, in single quotes"
        source.fault(f"regex: {error}", hint, "pattern")


REGEX = EvaluationType(
    "regex",
    {
        "field": FIELD,
        "pattern": {
            "description": "write a regular expression, in single quotes",
            "type": "string",
            "minLength": 1,
        },
        "ignore_case": _IGNORE_CASE,
    },
    _pattern,
    _check_pattern,
    needed=("pattern",),
    asks_for_polarity=True,
)


def _path(source: RuleSource) -> PathRule:
    path, schema = source.text("path") or "", source.schema
    steps = ["0" if isinstance(step, int) else step for step in steps_of(path) or []]
    parts = () if schema is None else followed(schema, steps).parts
    return PathRule("json_path", path, source.typed((*source.place, "expected"), parts), source.by_severity)


def _check_path(source: RuleSource) -> None:
    path = source.text("path")
    if path and steps_of(path) is None:
        hint = "write keys, places and '*' behind '$': $.items[0].name, $['a key'], $.items[*].id"
        shown = json.dumps(path, ensure_ascii=False)
        source.fault(f"json_path: {shown} is no path that is read here", hint, "path")


JSON_PATH = EvaluationType(
    "json_path",
    {
        "path": {"description": "write a path such as $.items[0].name", "type": "string", "minLength": 1},
        "expected": EXPECTED,
    },
    _path,
    _check_path,
    needed=("path",),
    asks_for_polarity=True,
)


def _length(source: RuleSource) -> LengthRule:
    least, most = (a_whole_number(source.values.get(key)) for key in ("min", "max"))
    unit = source.text("unit") or _UNITS[0]
    return LengthRule("length", source.text("field"), least, most, unit, source.by_severity)


def _check_length(source: RuleSource) -> None:
    values = source.values
    least, most = (a_number(values.get(key)) for key in ("min", "max"))
    if source.has_only("field", "unit"):
        source.fault("length: there is neither 'min' nor 'max'", "write 'max: 200', for example")
    if least is not None and most is not None and least > most:
        source.fault(f"length: min is {least:g}, max is {most:g}", "no reply can be both", "min")
    elif most == 0 and "field" not in values:
        message = "length: max is 0: an empty reply is wrong however long it may be"
        source.fault(message, "write 'max: 1' or more; a field may be empty ('field: NAME')", "max")


LENGTH = EvaluationType(
    "length",
    {
        "field": FIELD,
        "min": {"type": "integer", "minimum": 0},
        "max": {"type": "integer", "minimum": 0},
        "unit": {"enum": [*_UNITS]},
    },
    _length,
    _check_length,
)


def _measured(name: str, key: str, words: str, more: Mapping[str, JsonObject] = _NONE) -> EvaluationType:
    """Return a type whose key is a bound, of which `words` say what it counts."""

    def read(source: RuleSource) -> MeasuredRule:
        figure, turn = a_number(source.values.get(key)) or 0.0, a_whole_number(source.values.get("turn"))
        return MeasuredRule(name, figure, source.by_severity, turn)

    bound: JsonObject = {
        "description": f"write a number of {words} above 0",
        "type": "number",
        "exclusiveMinimum": 0,
    }
    return EvaluationType(name, {key: bound, **more}, read, RuleSource.check_turn, needed=(key,))


LATENCY_BELOW = _measured("latency_below", "seconds", "seconds", {"turn": TOOL_CALLS.keys["turn"]})
COST_BELOW = _measured("cost_below", "usd", "USD")


def _combined(name: str) -> EvaluationType:
    """Return `all` or `any`, whose key `of` lists rules."""

    def parts(source: RuleSource) -> Iterator[tuple[int, EvaluationType, RuleSource]]:
        """Yield the rules whose type is known."""
        listed = source.values.get("of")
        for index, values in enumerate(listed if isinstance(listed, list) else ()):
            kind = EVALUATION_TYPES.get(a_text(a_mapping(values).get("type")) or "")
            if kind is not None:
                yield index, kind, replace(source, place=(*source.place, "of", index))

    def check(source: RuleSource) -> None:
        for index, kind, part in parts(source):
            if "polarity" in part.values:
                message = f"{name}: {kind.name} has a polarity of its own"
                source.fault(message, f"give it to {name!r} itself", "of", index, "polarity")
            if kind.is_judged:
                message = f"{name}: {kind.name} is judged by a model and stands alone"
                source.fault(message, "give it a scenario of its own", "of", index)
            else:
                kind.check(part)

    def read(source: RuleSource) -> CombinedRule:
        rules = (kind.read(part) for _, kind, part in parts(source) if not kind.is_judged)
        healthy = tuple(rule for rule in rules if isinstance(rule, ReplyRule))
        return CombinedRule(name, healthy, source.by_severity)

    return EvaluationType(name, {"of": _OF}, read, check, needed=("of",), asks_for_polarity=True)


_TYPES = (
    CATEGORY_MATCH,
    LIST_INCLUDES,
    TAG_THRESHOLD,
    SQE,
    CONTAINS,
    NOT_CONTAINS,
    EQUALS,
    REGEX,
    JSON_PATH,
    LENGTH,
    LATENCY_BELOW,
    COST_BELOW,
    TOOL_CALLS,
    RUBRIC,
    PYTHON,
    _combined("all"),
    _combined("any"),
)

EVALUATION_TYPES: Mapping[str, EvaluationType] = MappingProxyType({kind.name: kind for kind in _TYPES})
"""By name, in the order in which they are told. The first is meant where frontmatter names none."""


def evaluation_type_of(document: Document) -> EvaluationType | None:
    """Return the type that frontmatter asks for; None where it asks for none that is known."""
    evaluation = document.mapping().get("evaluation", {})
    if not isinstance(evaluation, dict):
        return None
    main, own = _TYPES[0], evaluation.keys() - OF_TURNS
    if "type" in evaluation:
        found = EVALUATION_TYPES.get(a_text(evaluation["type"]) or "")
    else:
        found = main if own <= {*main.keys, "polarity"} else None  # else a type may be meant
    if own == evaluation.keys():
        return found
    return _conversation(found if own or "category" in document.mapping() else None)


def _conversation(main: EvaluationType | None) -> EvaluationType:
    """Return a type with rules for single replies beside its own rule, which judges the last; None for no such rule."""

    def parts(source: RuleSource) -> Iterator[tuple[Place, EvaluationType, RuleSource]]:
        """Yield the rules whose type is known, each with its place below the evaluation."""
        of_turns = [("turns", turn) for turn in a_mapping(source.values.get("turns"))]
        for place in (*of_turns, ("each",)):
            part = replace(source, place=(*source.place, *place))
            kind = EVALUATION_TYPES.get(part.text("type") or "")
            if kind is not None:
                yield place, kind, part

    def check(source: RuleSource) -> None:
        if main is not None:
            main.check(source)
        for place, kind, part in parts(source):
            if kind.is_judged:
                message = (
                    f"{place[0]}: {kind.name} is judged by a model, which is shown the whole conversation"
                )
                hint = f"make it the rule of the evaluation itself: 'type: {kind.name}'"
                source.fault(message, hint, *place)
            else:
                kind.check(part)
        for turn in a_mapping(source.values.get("turns")):
            if _TURN_NUMBER.fullmatch(turn) is not None:
                source.check_asked(int(turn), "turns", turn)

    def read(source: RuleSource) -> ConversationRule | None:
        found = [(place, kind.read(part)) for place, kind, part in parts(source)]
        rules = {place: rule for place, rule in found if isinstance(rule, ReplyRule)}
        turns = sorted((int(place[1]), rule) for place, rule in rules.items() if place[0] == "turns")
        own = None if main is None else main.read(source)
        if len(rules) < len(found) or isinstance(own, ConversationRule) or (main is not None and own is None):
            return None
        return ConversationRule(own, tuple(turns), rules.get(("each",)))

    shown = main or _TYPES[0]
    return replace(shown, check=check, read=read, reads_rubric=main is not None and main.reads_rubric)


def frontmatter_schema(types: tuple[EvaluationType, ...]) -> dict[str, JsonValue]:
    """Return the JSON Schema of a prompt file's frontmatter.

    Args:
        types: The evaluation types that it may ask for; the first where it names none.
    """
    whole = PROMPT_FRONTMATTER.document()
    properties = dict(a_mapping(whole["properties"]))
    keys = {key: dict(schema) for kind in types for key, schema in kind.keys.items()}
    of_rule: dict[str, JsonValue] = {
        "type": {"enum": [kind.name for kind in types]},
        **keys,
        "polarity": {"enum": ["by_severity"]},
    }
    rule: dict[str, JsonValue] = {
        **a_mapping(properties["evaluation"]),
        "properties": of_rule,
        "additionalProperties": False,
        "allOf": [_branch(kind, keys, named=kind is not types[0]) for kind in types],
    }
    properties["evaluation"] = {**rule, "properties": {**of_rule, **_RULES_OF_TURNS}}
    return {**whole, "properties": properties, "$defs": {"rule": {**rule, "required": ["type"]}}}


def _branch(kind: EvaluationType, keys: Mapping[str, JsonObject], *, named: bool) -> JsonValue:
    """Return what holds for one type: its keys, and none of the others'.

    Args:
        kind: The type.
        keys: Those of all types.
        named: Whether it must be named to be meant.
    """
    condition: dict[str, JsonValue] = {"properties": {"type": {"const": kind.name}}}
    if named:
        condition["required"] = ["type"]
    asked: dict[str, JsonValue] = {}
    for key in keys:
        if key in kind.narrowed:
            asked[key] = dict(kind.narrowed[key])
        elif key not in kind.keys:
            asked[key] = {"not": {}}
    then: dict[str, JsonValue] = {"required": list(kind.needed)} if kind.needed else {}
    return {"if": condition, "then": {**then, "properties": asked}}


SCENARIO_SCHEMA = FormatSchema("scenario", lambda: frontmatter_schema(_TYPES))
"""Of the frontmatter of `S1.md` and `MCSQE.md`."""
