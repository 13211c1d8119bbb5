"""Evaluation types whose rule reads one field of a JSON reply: from frontmatter to a rule that a reply can meet."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterator
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import FieldRule
from pytest_helmbench.benchmarks.scenario_trees.format.schema_fields import (
    found_field,
    item_parts,
    kinds_of,
    unreachable,
)
from pytest_helmbench.benchmarks.scenario_trees.places import bare_name
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.files.json_fields import a_text, texts
from pytest_helmbench.files.source import Fault, listed

__all__ = ["EXPECTED", "FIELD", "VALUES", "FieldType", "ListType"]

_VALUE: list[JsonValue] = ["string", "number", "boolean"]
VALUES: JsonObject = {"type": [*_VALUE, "array"], "items": {"type": _VALUE}, "minItems": 1}
"""A value as it is written, or a list of them."""
FIELD: JsonObject = {
    "description": "name the key of the reply, or a dotted path",
    "type": "string",
    "minLength": 1,
}
EXPECTED: JsonObject = {
    "description": "write the value, or for tag_threshold the list of tags, that the reply must have",
    **VALUES,
}


class FieldType(EvaluationType):
    """An evaluation type whose rule reads one field of a JSON reply; it needs a response schema."""

    values_key: ClassVar[str] = "expected"
    """Key of the values that the rule expects."""

    def rule(self, source: RuleSource) -> FieldRule | None:
        """See `EvaluationType.rule`."""
        line = source.document.line("evaluation")
        rule: FieldRule | None = None
        written = source.values.get(self.values_key, self.fallback(source))
        prompt = source.files.prompt
        if written is None:
            message = "nothing says which reply passes: there is neither 'category' nor 'evaluation'"
            hint = "add 'category: NAME' to the frontmatter, or 'evaluation:' with a type"
            source.reader.findings.add(prompt, Fault(line or 1, message, hint))
        else:
            field = a_text(source.values.get("field")) or "category"
            rule = self.make(source, field, texts(written))
        if source.files.schema is None:
            message = f"the response schema that {self.name} needs is missing"
            path = prompt.with_name(f"{bare_name(prompt.stem)}.json")
            source.reader.findings.add(path, Fault(None, message, "add a JSON Schema of the reply"))
        if rule is not None and source.schema is not None:
            source.reader.findings.add(prompt, *self._unmeetable(source, rule, source.schema))
        return rule

    def fallback(self, _source: RuleSource) -> JsonValue:
        """Return what is expected where `evaluation` does not say it; None for nothing."""
        return None

    @abstractmethod
    def make(self, source: RuleSource, field: str, expected: tuple[str, ...]) -> FieldRule:
        """Return the rule, filing what is wrong with the type's own keys."""

    @abstractmethod
    def misfit(self, field: str, kinds: Collection[str]) -> tuple[str, str] | None:
        """Return why the rule cannot read a field of these JSON types, and what to do about it; None if it can."""

    def _unmeetable(self, source: RuleSource, rule: FieldRule, schema: JsonObject) -> Iterator[Fault]:
        """Yield why no reply that fits the schema can meet a rule."""
        document = source.document
        found = found_field(schema, rule.field)
        line = document.line("evaluation", "field")
        if found.unknown is not None:
            message = f"the response schema has no field {found.unknown!r}"
            yield Fault(line, message, listed(found.unknown, found.known, "its fields"))
            return
        kinds = {kind for part in found.parts for kind in kinds_of(part)}
        misfit = self.misfit(rule.field, kinds) if kinds else None
        if misfit is not None:
            yield Fault(line, *misfit)
            return
        parts = found.parts
        if rule.reads_list:
            lists = (part for part in parts if "array" in kinds_of(part) or not kinds_of(part))
            parts = tuple(item_parts(schema, lists))
        for index, value in enumerate(rule.expected):
            line = document.line("evaluation", self.values_key, index) or document.line("category")
            yield from unreachable(value, parts, rule.field, line)


class ListType(FieldType):
    """A field type whose rules read lists."""

    def misfit(self, field: str, kinds: Collection[str]) -> tuple[str, str] | None:
        """See `FieldType.misfit`."""
        if "array" in kinds:
            return None
        message = f"{self.name} needs a list, but the field {field!r} is {' or '.join(sorted(kinds))}"
        return message, 'make it "type": "array" in the response schema'
