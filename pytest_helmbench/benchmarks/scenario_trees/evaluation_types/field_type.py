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
_FIELD = "category"
EXPECTED: JsonObject = {
    "description": "write the value, or for tag_threshold the list of tags, that the reply must have",
    **VALUES,
}


class FieldType(EvaluationType):
    """An evaluation type whose rule reads one field of a JSON reply; it needs a response schema."""

    values_key: ClassVar[str] = "expected"
    """Key of the values that the rule expects."""

    reads_list: ClassVar[bool] = False
    """Whether the field holds a list."""

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`."""
        written = self._written(source)
        if written is None and self.values_key not in (*source.values, *self.needed):
            message = "nothing says which reply passes: there is neither 'category' nor 'evaluation'"
            source.fault(message, "add 'category: NAME' to the frontmatter, or 'evaluation:' with a type")
        prompt = source.files.prompt
        if source.files.schema is None:
            message = f"the response schema that {self.name} needs is missing"
            path = prompt.with_name(f"{bare_name(prompt.stem)}.json")
            source.reader.findings.add(path, Fault(None, message, "add a JSON Schema of the reply"))
        field = a_text(source.values.get("field", _FIELD))
        if written is not None and field and source.schema is not None:
            expected = texts(written) if self.reads_list or isinstance(written, str) else ()
            faults = self._unmeetable(source, field, expected, source.schema)
            source.reader.findings.add(prompt, *faults)

    def rule(self, source: RuleSource) -> FieldRule:
        """See `EvaluationType.rule`."""
        field = a_text(source.values.get("field")) or _FIELD
        return self.make(source, field, texts(self._written(source)))

    def _written(self, source: RuleSource) -> JsonValue:
        """Return what is expected, as written."""
        return source.values.get(self.values_key, self.fallback(source))

    def fallback(self, _source: RuleSource) -> JsonValue:
        """Return what is expected where `evaluation` does not say it; None for nothing."""
        return None

    @abstractmethod
    def make(self, source: RuleSource, field: str, expected: tuple[str, ...]) -> FieldRule:
        """Return the rule."""

    @abstractmethod
    def misfit(self, field: str, kinds: Collection[str]) -> tuple[str, str] | None:
        """Return why the rule cannot read a field of these JSON types, and what to do about it; None if it can."""

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
        kinds = {kind for part in found.parts for kind in kinds_of(part)}
        misfit = self.misfit(field, kinds) if kinds else None
        if misfit is not None:
            yield Fault(line, *misfit)
            return
        parts = found.parts
        if self.reads_list:
            lists = (part for part in parts if "array" in kinds_of(part) or not kinds_of(part))
            parts = tuple(item_parts(schema, lists))
        is_here = self.values_key in source.values
        for index, value in enumerate(expected):
            line = source.line(self.values_key, index) if is_here else source.document.line("category")
            yield from unreachable(value, parts, field, line)


class ListType(FieldType):
    """A field type whose rules read lists."""

    reads_list = True

    def misfit(self, field: str, kinds: Collection[str]) -> tuple[str, str] | None:
        """See `FieldType.misfit`."""
        if "array" in kinds:
            return None
        message = f"{self.name} needs a list, but the field {field!r} is {' or '.join(sorted(kinds))}"
        return message, 'make it "type": "array" in the response schema'
