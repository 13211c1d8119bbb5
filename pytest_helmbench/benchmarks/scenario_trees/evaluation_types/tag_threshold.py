"""`tag_threshold`: a list in the reply holds enough of the expected tags and not too many others."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import (
    FieldRule,
    Observed,
    matches,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_type import EXPECTED, FIELD, ListType
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.json_fields import a_number, a_whole_number, texts

__all__ = ["TagThreshold", "TagThresholdType"]


@dataclass(frozen=True, slots=True)
class TagThreshold(FieldRule):
    """The list holds enough of the expected tags and few enough others; a tag counts once.

    Args:
        min_correct: Least number of expected tags; None means all of them.
        max_incorrect: Most tags beyond the expected.
    """

    type: ClassVar[str] = "tag_threshold"
    reads_list: ClassVar[bool] = True

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


class TagThresholdType(ListType):
    """`expected` lists the tags; two numbers say how many must and how many others may come."""

    name = TagThreshold.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "field": FIELD,
        "expected": EXPECTED,
        "min_correct": {"type": "integer", "minimum": 0},
        "max_incorrect": {"type": "integer", "minimum": 0},
    }
    needed = ("field", "expected")

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`."""
        ListType.check(self, source)
        least = a_number(source.values.get("min_correct"))
        distinct = len(set(texts(source.values.get("expected"))))
        if least is not None and distinct and least > distinct:
            message = f"min_correct is {least:g}, but only {distinct} tags are expected"
            source.fault(message, f"write a number up to {distinct}", "min_correct")

    def make(self, source: RuleSource, field: str, expected: tuple[str, ...]) -> TagThreshold:
        """See `FieldType.make`."""
        least = a_whole_number(source.values.get("min_correct"))
        most = a_whole_number(source.values.get("max_incorrect")) or 0
        return TagThreshold(field, expected, source.by_severity, least, most)
