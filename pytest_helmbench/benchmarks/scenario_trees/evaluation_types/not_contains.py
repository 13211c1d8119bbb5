"""`not_contains`: the reply holds no text of a list."""

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

__all__ = ["NotContains", "NotContainsType"]


@dataclass(frozen=True, slots=True)
class NotContains(TextCheck):
    """None of the texts occurs."""

    type: ClassVar[str] = "not_contains"

    expected: tuple[str, ...] = ()
    ignore_case: bool = False

    def holds(self, text: str) -> bool:
        """See `TextCheck.holds`."""
        text, *texts = (comparable(one, ignore_case=self.ignore_case) for one in (text, *self.expected))
        return not any(unwanted in text for unwanted in texts)

    def wanted(self) -> str:
        """See `ReplyCheck.wanted`."""
        return f"contains none of {', '.join(self.expected)}"

    def own_data(self) -> JsonObject:
        """See `TextCheck.own_data`."""
        return {"expected": [*self.expected], "ignore_case": self.ignore_case, "form": "NFC"}


class NotContainsType(ExpectedType):
    """`expected` lists texts of which none may occur."""

    name = NotContains.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "field": FIELD,
        "expected": EXPECTED,
        "ignore_case": IGNORE_CASE,
    }
    needed = ("expected",)
    of_empty = "no reply passes"

    def make(self, source: RuleSource, field: str | None) -> NotContains:
        """See `TextType.make`."""
        values = source.values
        ignore_case = values.get("ignore_case") is True
        return NotContains(field, source.by_severity, texts(values.get("expected")), ignore_case)
