"""`list_includes`: a list in the reply holds every required value."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import (
    FieldRule,
    Observed,
    matches,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_type import FIELD, VALUES, ListType
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["ListIncludes", "ListIncludesType"]


@dataclass(frozen=True, slots=True)
class ListIncludes(FieldRule):
    """The list holds all expected values; others may stand beside them."""

    type: ClassVar[str] = "list_includes"
    reads_list: ClassVar[bool] = True

    def passes(self, observed: Observed) -> bool:
        """See `FieldRule.passes`."""
        return isinstance(observed, list) and all(
            any(matches(wanted, item) for item in observed) for wanted in self.expected
        )

    def wanted(self) -> str:
        """See `FieldRule.wanted`."""
        return f"includes {', '.join(self.expected)}"


class ListIncludesType(ListType):
    """`required` lists the values that must be there."""

    name = ListIncludes.type
    values_key = "required"
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "field": FIELD,
        "required": {"description": "list the values that the reply's list must include", **VALUES},
    }
    needed = ("field", "required")
    asks_for_polarity = True

    def make(self, source: RuleSource, field: str, expected: tuple[str, ...]) -> ListIncludes:
        """See `FieldType.make`."""
        return ListIncludes(field, expected, source.by_severity)
