"""`category_match`: a field of the reply holds one expected value."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import (
    FieldRule,
    Missing,
    Observed,
    matches,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_type import EXPECTED, FIELD, FieldType
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["CategoryMatch", "CategoryMatchType"]


@dataclass(frozen=True, slots=True)
class CategoryMatch(FieldRule):
    """The field holds the one expected value."""

    type: ClassVar[str] = "category_match"
    reads_list: ClassVar[bool] = False

    def passes(self, observed: Observed) -> bool:
        """See `FieldRule.passes`."""
        return not isinstance(observed, Missing) and matches(self.expected[0], observed)

    def wanted(self) -> str:
        """See `FieldRule.wanted`."""
        return ", ".join(self.expected)


class CategoryMatchType(FieldType):
    """The type that a scenario has where it names none: `category` alone says what passes."""

    name = CategoryMatch.type
    keys: ClassVar[Mapping[str, JsonObject]] = {"field": FIELD, "expected": EXPECTED}
    narrowed: ClassVar[Mapping[str, JsonObject]] = {
        "expected": {
            "description": "category_match takes one value; list_includes and tag_threshold take lists",
            "not": {"type": "array"},
        }
    }
    asks_for_polarity = True

    def fallback(self, source: RuleSource) -> JsonValue:
        """Return the frontmatter's `category`."""
        return source.document.mapping().get("category")

    def make(self, source: RuleSource, field: str, expected: tuple[str, ...]) -> CategoryMatch:
        """See `FieldType.make`."""
        return CategoryMatch(field, expected, source.by_severity)

    def misfit(self, field: str, kinds: Collection[str]) -> tuple[str, str] | None:
        """See `FieldType.misfit`."""
        if not set(kinds) <= {"array", "object"}:
            return None
        message = f"{self.name} cannot compare the field {field!r}, which is {' or '.join(sorted(kinds))}"
        return message, "use list_includes or tag_threshold for a list"
