"""`contains`: the reply holds every text of a list."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.check_type import ExpectedType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_type import EXPECTED, FIELD
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import (
    IGNORE_CASE,
    TextCheck,
    comparable,
)
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.json_fields import texts

__all__ = ["Contains", "ContainsType"]


@dataclass(frozen=True, slots=True)
class Contains(TextCheck):
    """All texts occur."""

    type: ClassVar[str] = "contains"

    expected: tuple[str, ...] = ()
    ignore_case: bool = False

    def holds(self, text: str) -> bool:
        """See `TextCheck.holds`."""
        text, *texts = (comparable(one, ignore_case=self.ignore_case) for one in (text, *self.expected))
        return all(wanted in text for wanted in texts)

    def wanted(self) -> str:
        """See `ReplyCheck.wanted`."""
        return f"contains {', '.join(self.expected)}"

    def own_data(self) -> JsonObject:
        """See `TextCheck.own_data`."""
        return {"expected": [*self.expected], "ignore_case": self.ignore_case, "form": "NFC"}


class ContainsType(ExpectedType):
    """`expected` lists texts that must all occur."""

    name = Contains.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "field": FIELD,
        "expected": EXPECTED,
        "ignore_case": IGNORE_CASE,
    }
    needed = ("expected",)
    of_empty = "every reply holds it"

    def make(self, source: RuleSource, field: str | None) -> Contains:
        """See `TextType.make`."""
        values = source.values
        ignore_case = values.get("ignore_case") is True
        return Contains(field, source.by_severity, texts(values.get("expected")), ignore_case)
