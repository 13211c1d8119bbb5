"""The types that compare values of a JSON reply: in one field, or at the path of `json_path`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import NamedTuple, TypeAlias

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    COUNT,
    EXPECTED,
    FIELD,
    REQUIRED,
    VALUES,
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import (
    ReplyRule,
    RuleFinding,
    at_field,
    json_checked,
)
from pytest_helmbench.benchmarks.scenario_trees.format.schema_fields import (
    followed,
    found_field,
    item_parts,
    kinds_of,
    unreachable,
)
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.case_texts import observed_from
from pytest_helmbench.core.json_types import JsonObject, JsonValue, as_text
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.files.source import Fault, listed
from pytest_helmbench.files.strict_json import a_number, a_text, a_whole_number, texts
from pytest_helmbench.judging.comparisons.exact import matches

_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*\s]+)|\[(?P<index>-?\d{1,9})\]|\[(?P<quoted>'[^']*'|"[^"]*")\]|\.\*|\[\*\]"""
)
_MOST = 10_000
"""Values that a path is followed to; a `*` in a `*` can lead to very many."""

Step: TypeAlias = str | int | None
"""A key, a place in a list, or None for all."""
_DEFAULT_FIELD = "category"


@dataclass(frozen=True, slots=True)
class FieldRule(ReplyRule):
    """A field of a JSON reply holds the expected value, all of them in a list, or enough of them and few others.

    Args:
        type: `category_match`, `list_includes` or `tag_threshold`.
        field: Key or dotted path of the field.
        expected: Values as written in the file, and numbers where that is the schema's type.
        min_correct: Least number of expected tags, of which each counts once; None means all of them.
        max_incorrect: Most tags beyond the expected.
    """

    type: str
    field: str
    expected: tuple[str | float, ...]
    by_severity: bool = False
    min_correct: int | None = None
    max_incorrect: int = 0

    @property
    def least(self) -> int:
        """The least number of expected tags."""
        return len(set(self.expected)) if self.min_correct is None else self.min_correct

    @property
    def label(self) -> str | None:
        return None if _ROWS[self.type].reads_list else str(self.expected[0])

    def passes(self, observed: JsonValue) -> bool:
        """Return whether the value of the field is right, polarity apart."""
        return _ROWS[self.type].passes(self, observed)

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> RuleFinding:
        return json_checked(case, reply, at_field(self.field, self._seen), strict=strict_json)

    def _seen(self, value: JsonValue) -> RuleFinding:
        return RuleFinding(self.passes(value), _observed(value, self._decides))

    def _decides(self, tag: JsonValue) -> bool:
        return any(matches(wanted, tag) for wanted in self.expected) is not (self.type == "tag_threshold")

    def wanted(self) -> str:
        return _ROWS[self.type].words(self, ", ".join(map(str, self.expected)))


class _Row(NamedTuple):
    """One of these types; arguments that it shares with `EvaluationType` are explained there.

    Args:
        passes: Returns whether a value of the field is right, polarity apart.
        words: Returns what passes, from the rule and its listed values.
        expected: The key of the expected values.
        fallback: The key of the frontmatter that replaces a missing `expected`; empty for none.
        reads_list: The field holds a list of values.
    """

    name: str
    passes: Callable[[FieldRule, JsonValue], bool]
    words: Callable[[FieldRule, str], str]
    keys: Mapping[str, JsonObject]
    needed: tuple[str, ...] = ()
    narrowed: Mapping[str, JsonObject] = {}
    expected: str = "expected"
    fallback: str = ""
    reads_list: bool = True
    asks_for_polarity: bool = True

    def read(self, source: RuleSource) -> FieldRule:
        field, key, schema = source.text("field") or _DEFAULT_FIELD, self.expected, source.schema
        parts = () if schema is None else self.compared(schema, found_field(schema, field).parts)
        expected = source.typed((*source.place, key) if key in source.values else (self.fallback,), parts)
        least, most = (a_whole_number(source.values.get(key)) for key in ("min_correct", "max_incorrect"))
        return FieldRule(self.name, field, expected, source.by_severity, least, most or 0)

    def compared(self, schema: JsonObject, parts: tuple[JsonObject, ...]) -> tuple[JsonObject, ...]:
        """Return what a schema says of the values to compare: those of a field, or of the items of its list."""
        if not self.reads_list:
            return parts
        return item_parts(schema, (one for one in parts if "array" in kinds_of(one) or not kinds_of(one)))

    def check(self, source: RuleSource) -> None:
        fallback = source.document.mapping().get(self.fallback)
        written = source.values.get(self.expected, fallback)
        if written is None and self.fallback and source.has_only("field"):
            message = "nothing says which reply passes: there is neither 'category' nor 'evaluation'"
            source.fault(message, "add 'category: NAME' to the frontmatter, or 'evaluation:' with a type")
        prompt = source.files.prompt
        if source.files.schema is None:
            message = f"the response schema that {self.name} needs is missing"
            path = prompt.with_name(f"{bare_name(prompt.stem)}.json")
            source.reader.findings.add(path, Fault(None, message, "add a JSON Schema of the reply"))
        field = a_text(source.values.get("field", _DEFAULT_FIELD))
        if written is not None and field and source.schema is not None:
            expected = texts(written) if self.reads_list or isinstance(written, str) else ()
            faults = self._unmeetable(source, field, expected, source.schema)
            source.reader.findings.add(prompt, *faults)
        least, distinct = a_number(source.values.get("min_correct")), len(set(source.texts()))
        if "min_correct" in self.keys and least is not None and distinct and least > distinct:
            message = f"min_correct is {least:g}, but only {distinct} tags are expected"
            source.fault(message, f"write a number up to {distinct}", "min_correct")

    def _unmeetable(
        self, source: RuleSource, field: str, expected: tuple[str, ...], schema: JsonObject
    ) -> Iterator[Fault]:
        """Yield why no reply that fits the schema can meet a rule."""
        found = found_field(schema, field)
        line = source.line("field")
        if found.unknown is not None:
            message = f"the response schema has no field {found.unknown!r}"
            yield Fault(line, message, listed(found.unknown, found.known, "its fields"))
            return
        misfit = self._misfit(field, {kind for part in found.parts for kind in kinds_of(part)})
        if misfit is not None:
            yield Fault(line, *misfit)
            return
        parts, is_here = self.compared(schema, found.parts), self.expected in source.values
        for index, value in enumerate(expected):
            line = source.line(self.expected, index) if is_here else source.document.line(self.fallback)
            yield from unreachable(str(value), parts, field, line)

    def _misfit(self, field: str, kinds: Collection[str]) -> tuple[str, str] | None:
        """Return why the type cannot read a field of these JSON types, and what to do about it; None if it can."""
        shown = " or ".join(sorted(kinds))
        if self.reads_list and kinds and "array" not in kinds:
            message = f"{self.name} needs a list, but the field {field!r} is {shown}"
            return message, 'make it "type": "array" in the response schema'
        if not self.reads_list and kinds and set(kinds) <= {"array", "object"}:
            message = f"{self.name} cannot compare the field {field!r}, which is {shown}"
            return message, "use list_includes or tag_threshold for a list"
        return None

    def evaluation_type(self) -> EvaluationType:
        asks = self.asks_for_polarity
        return EvaluationType(
            self.name, self.keys, self.read, self.check, self.needed, self.narrowed, asks_for_polarity=asks
        )


def _tags(rule: FieldRule, observed: JsonValue) -> tuple[set[str | float], set[str]] | None:
    """Return the expected values in a list, and its other values as JSON; None where there is no list."""
    if not isinstance(observed, list):
        return None
    correct: set[str | float] = set()
    incorrect: set[str] = set()
    for tag in observed:
        hits = {wanted for wanted in rule.expected if matches(wanted, tag)}
        correct |= hits
        if not hits:
            incorrect.add(json.dumps(tag, sort_keys=True))
    return correct, incorrect


def _observed(value: JsonValue, decides: Callable[[JsonValue], bool]) -> str:
    """Return a value as text; a list from a few words before its first value that decides."""
    items = value if isinstance(value, list) else []
    place = next((at for at, one in enumerate(items) if decides(one)), None)
    return observed_from(as_text(value), place and len(as_text(items[:place])))


def _includes_all(rule: FieldRule, observed: JsonValue) -> bool:
    tags = _tags(rule, observed)
    return tags is not None and tags[0] == set(rule.expected)


def _has_enough(rule: FieldRule, observed: JsonValue) -> bool:
    tags = _tags(rule, observed)
    return tags is not None and len(tags[0]) >= rule.least and len(tags[1]) <= rule.max_incorrect


@dataclass(frozen=True, slots=True)
class PathRule(ReplyRule):
    """Some value at a path in the reply's JSON is an expected one; without expected values, there is one.

    Args:
        path: `$.items[0].name`: keys, places in lists (from the end below 0), `*` for all.
        expected: See `FieldRule`; empty for any value.
    """

    type: str
    path: str
    expected: tuple[str | float, ...] = ()
    by_severity: bool = False

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> RuleFinding:
        return json_checked(case, reply, self._seen, strict=strict_json)

    def _seen(self, value: JsonValue) -> RuleFinding:
        found = [value]
        for step in steps_of(self.path) or []:
            found = [item for one in found for item in _next(one, step)][:_MOST]
        if not found:
            return RuleFinding(False, f"(nothing at {self.path})")
        passed = not self.expected or any(map(self._is_expected, found))
        observed = as_text(found[0]) if len(found) == 1 else _observed(found, self._is_expected)
        return RuleFinding(passed, observed)

    def _is_expected(self, value: JsonValue) -> bool:
        return any(
            matches(wanted, value) or (isinstance(value, dict | list) and wanted == as_text(value))
            for wanted in self.expected
        )

    def wanted(self) -> str:
        return f"{self.path} is {' or '.join(map(str, self.expected)) or 'there'}"


def steps_of(path: str) -> list[Step] | None:
    """Return the steps of a path; None where it is none."""
    position, steps = 1 if path.startswith("$") else 0, list[Step]()
    if not path.startswith(("$", ".", "[")):
        path = f".{path}"
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            return None
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["quoted"] is not None:
            steps.append(found["quoted"][1:-1])
        else:
            steps.append(found["name"])
        position = found.end()
    return steps


def _next(value: JsonValue, step: Step) -> Iterator[JsonValue]:
    if step is None:
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
    elif isinstance(value, dict) and step in value:
        yield value[step]


def _read_path(source: RuleSource) -> PathRule:
    path, schema = source.text("path") or "", source.schema
    steps = ["0" if isinstance(step, int) else step for step in steps_of(path) or []]
    parts = () if schema is None else followed(schema, steps).parts
    return PathRule("json_path", path, source.typed((*source.place, "expected"), parts), source.by_severity)


def _check_path(source: RuleSource) -> None:
    path = source.text("path")
    if path and steps_of(path) is None:
        hint = "write keys, places and '*' behind '$': $.items[0].name, $['a key'], $.items[*].id"
        shown = json.dumps(path, ensure_ascii=False)
        source.fault(f"json_path: {shown} is not a path that is read here", hint, "path")


_ROWS = {
    row.name: row
    for row in (
        _Row(
            "category_match",
            lambda rule, observed: matches(rule.expected[0], observed),
            lambda _rule, values: values,
            {"field": FIELD, "expected": EXPECTED},
            narrowed={
                "expected": {
                    "description": "category_match takes one value; list_includes and tag_threshold take lists",
                    "not": {"type": "array"},
                }
            },
            fallback="category",
            reads_list=False,
        ),
        _Row(
            "list_includes",
            _includes_all,
            lambda _rule, values: f"includes {values}",
            {"field": FIELD, "required": REQUIRED},
            ("field", "required"),
            {"required": {"description": "list the values that the reply's list must include", **VALUES}},
            expected="required",
        ),
        _Row(
            "tag_threshold",
            _has_enough,
            lambda rule, values: f"at least {rule.least} of {values}; at most {rule.max_incorrect} others",
            {"field": FIELD, "expected": EXPECTED, "min_correct": COUNT, "max_incorrect": COUNT},
            ("field", "expected"),
            asks_for_polarity=False,
        ),
    )
}
FIELD_TYPES = tuple(row.evaluation_type() for row in _ROWS.values())
JSON_PATH = EvaluationType(
    "json_path",
    {
        "path": {"description": "write a path such as $.items[0].name", "type": "string", "minLength": 1},
        "expected": EXPECTED,
    },
    _read_path,
    _check_path,
    needed=("path",),
    asks_for_polarity=True,
)
