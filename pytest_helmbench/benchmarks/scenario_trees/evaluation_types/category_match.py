"""`category_match`: a field of the reply holds one expected value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import (
    FieldRule,
    Missing,
    Observed,
    matches,
)

__all__ = ["CategoryMatch"]


@dataclass(frozen=True, slots=True)
class CategoryMatch(FieldRule):
    """The field holds the one expected value."""

    type: ClassVar[str] = "category_match"

    def passes(self, observed: Observed) -> bool:
        """See `FieldRule.passes`."""
        return not isinstance(observed, Missing) and matches(self.expected[0], observed)

    def wanted(self) -> str:
        """See `FieldRule.wanted`."""
        return ", ".join(self.expected)
