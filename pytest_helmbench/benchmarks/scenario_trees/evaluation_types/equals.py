"""`equals`: the reply is one of some texts, white space at its ends apart."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.check_type import ExpectedType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import matches
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_type import EXPECTED, FIELD
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import (
    IGNORE_CASE,
    Checked,
    TextCheck,
    as_text,
    comparable,
)
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.json_fields import texts

__all__ = ["Equals", "EqualsType"]


@dataclass(frozen=True, slots=True)
class Equals(TextCheck):
    """The text is one of the expected ones."""

    type: ClassVar[str] = "equals"

    expected: tuple[str, ...] = ()
    ignore_case: bool = False

    def holds(self, text: str) -> bool:
        """See `TextCheck.holds`."""
        text, *texts = (
            comparable(one.strip(), ignore_case=self.ignore_case) for one in (text, *self.expected)
        )
        return text in texts

    def seen(self, text: str) -> Checked:
        """See `TextCheck.seen`: the value of a field is no text."""
        return Checked(self.holds(text), text, is_text=self.field is None)

    def seen_value(self, value: JsonValue) -> Checked:
        """See `TextCheck.seen_value`: a number is compared by value, as `json_path` does."""
        found = self.seen(as_text(value))
        return found._replace(passed=found.passed or any(matches(wanted, value) for wanted in self.expected))

    def wanted(self) -> str:
        """See `ReplyCheck.wanted`."""
        return " or ".join(self.expected)

    def own_data(self) -> JsonObject:
        """See `TextCheck.own_data`."""
        by_value: JsonObject = {} if self.field is None else {"values": "by type"}
        return {"expected": [*self.expected], "ignore_case": self.ignore_case, "form": "NFC", **by_value}


class EqualsType(ExpectedType):
    """`expected` is the text, or lists texts of which any will do."""

    name = Equals.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "field": FIELD,
        "expected": EXPECTED,
        "ignore_case": IGNORE_CASE,
    }
    needed = ("expected",)
    of_empty = "an empty reply is wrong whatever is expected; a field may be empty ('field: NAME')"

    def is_empty(self, source: RuleSource, text: str) -> bool:
        """See `ExpectedType.is_empty`: white space is not compared, and a field that is empty is right."""
        return "field" not in source.values and not text.strip()

    def make(self, source: RuleSource, field: str | None) -> Equals:
        """See `TextType.make`."""
        values = source.values
        ignore_case = values.get("ignore_case") is True
        return Equals(field, source.by_severity, texts(values.get("expected")), ignore_case)
