"""`list_includes`: a list in the reply holds every required value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import (
    FieldRule,
    Observed,
    matches,
)

__all__ = ["ListIncludes"]


@dataclass(frozen=True, slots=True)
class ListIncludes(FieldRule):
    """The list holds all expected values; others may stand beside them."""

    type: ClassVar[str] = "list_includes"

    def passes(self, observed: Observed) -> bool:
        """See `FieldRule.passes`."""
        return isinstance(observed, list) and all(
            any(matches(wanted, item) for item in observed) for wanted in self.expected
        )

    def wanted(self) -> str:
        """See `FieldRule.wanted`."""
        return f"includes {', '.join(self.expected)}"
