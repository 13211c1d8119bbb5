"""`tag_threshold`: a list in the reply holds enough of the expected tags and not too many others."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import (
    FieldRule,
    Observed,
    matches,
)
from pytest_helmbench.core.json_types import JsonObject

__all__ = ["TagThreshold"]


@dataclass(frozen=True, slots=True)
class TagThreshold(FieldRule):
    """The list holds enough of the expected tags and few enough others; a tag counts once.

    Args:
        min_correct: Least number of expected tags; None means all of them.
        max_incorrect: Most tags beyond the expected.
    """

    type: ClassVar[str] = "tag_threshold"

    min_correct: int | None = None
    max_incorrect: int = 0

    def passes(self, observed: Observed) -> bool:
        """See `FieldRule.passes`."""
        if not isinstance(observed, list):
            return False
        expected = set(self.expected)
        correct: set[str] = set()
        incorrect: set[str] = set()
        for tag in observed:
            hits = {wanted for wanted in expected if matches(wanted, tag)}
            correct |= hits
            if not hits:
                incorrect.add(json.dumps(tag, sort_keys=True))
        return len(correct) >= self._least() and len(incorrect) <= self.max_incorrect

    def wanted(self) -> str:
        """See `FieldRule.wanted`."""
        return f"at least {self._least()} of {', '.join(self.expected)}; at most {self.max_incorrect} others"

    def data(self) -> JsonObject:
        """See `FieldRule.data`."""
        return {**FieldRule.data(self), "min_correct": self.min_correct, "max_incorrect": self.max_incorrect}

    def _least(self) -> int:
        return len(set(self.expected)) if self.min_correct is None else self.min_correct
