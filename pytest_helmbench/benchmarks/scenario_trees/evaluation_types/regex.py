"""`regex`: a regular expression is found in the reply, as the package `regex` finds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.check_type import TextType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_type import FIELD
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import IGNORE_CASE, TextCheck
from pytest_helmbench.core.foreign_patterns import PatternError, check_pattern, found
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.json_fields import a_text

__all__ = ["Regex", "RegexType"]


@dataclass(frozen=True, slots=True)
class Regex(TextCheck):
    """The expression is found somewhere. `^` and `$` mean the ends of the reply; `(?m)` makes them those of lines."""

    type: ClassVar[str] = "regex"

    pattern: str = ""
    ignore_case: bool = False

    def holds(self, text: str) -> bool:
        """See `TextCheck.holds`."""
        return found(f"(?i:{self.pattern})" if self.ignore_case else self.pattern, text)

    def wanted(self) -> str:
        """See `ReplyCheck.wanted`."""
        return f"matches {self.pattern}"

    def own_data(self) -> JsonObject:
        """See `TextCheck.own_data`."""
        return {"pattern": self.pattern, "ignore_case": self.ignore_case}


class RegexType(TextType):
    """`pattern` is the expression."""

    name = Regex.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "field": FIELD,
        "pattern": {
            "description": "write a regular expression, in single quotes",
            "type": "string",
            "minLength": 1,
        },
        "ignore_case": IGNORE_CASE,
    }
    needed = ("pattern",)

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`."""
        try:
            check_pattern(a_text(source.values.get("pattern")) or "")
        except PatternError as error:
            self.fault(
                source,
                str(error),
                "write it as Python's `re` or the package `regex` reads it, in single quotes",
                "pattern",
            )

    def make(self, source: RuleSource, field: str | None) -> Regex:
        """See `TextType.make`."""
        pattern = a_text(source.values.get("pattern")) or ""
        return Regex(field, source.by_severity, pattern, source.values.get("ignore_case") is True)
