"""`length`: the reply is not shorter and not longer than it may be."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.check_type import TextType
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import RuleSource
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_type import FIELD
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_check import Checked, TextCheck
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.json_fields import a_number, a_text, a_whole_number

__all__ = ["Length", "LengthType"]

_UNITS = ("characters", "words", "lines")
_WORD = re.compile(r"\S+")


@dataclass(frozen=True, slots=True)
class Length(TextCheck):
    """The text has at least and at most so many characters, words or lines that are not blank.

    Args:
        least: None for no least number.
        most: None for no greatest number.
        unit: `characters`, `words` or `lines`.
    """

    type: ClassVar[str] = "length"

    least: int | None = None
    most: int | None = None
    unit: str = "characters"

    def holds(self, text: str) -> bool:
        """See `TextCheck.holds`."""
        size = self._size(text.strip())
        return (self.least or 0) <= size and (self.most is None or size <= self.most)

    def seen(self, text: str) -> Checked:
        """See `TextCheck.seen`: people are told the size alone."""
        return Checked(self.holds(text), f"{self._size(text.strip()):,} {self.unit}")

    def wanted(self) -> str:
        """See `ReplyCheck.wanted`."""
        parts = [f"at least {self.least}"] if self.least is not None else []
        parts += [f"at most {self.most}"] if self.most is not None else []
        return f"{' and '.join(parts)} {self.unit}"

    def own_data(self) -> JsonObject:
        """See `TextCheck.own_data`."""
        return {"min": self.least, "max": self.most, "unit": self.unit}

    def _size(self, text: str) -> int:
        if self.unit == "words":
            return sum(1 for _ in _WORD.finditer(text))
        if self.unit == "lines":
            return sum(bool(line.strip()) for line in text.splitlines())
        return len(text)


class LengthType(TextType):
    """`min`, `max` and `unit`."""

    name = Length.type
    keys: ClassVar[Mapping[str, JsonObject]] = {
        "field": FIELD,
        "min": {"type": "integer", "minimum": 0},
        "max": {"type": "integer", "minimum": 0},
        "unit": {"enum": [*_UNITS]},
    }
    asks_for_polarity = False

    def check(self, source: RuleSource) -> None:
        """See `EvaluationType.check`."""
        values = source.values
        least, most = (a_number(values.get(key)) for key in ("min", "max"))
        if not {"min", "max"} & values.keys():
            self.fault(source, "there is neither 'min' nor 'max'", "write 'max: 200', for example")
        if least is not None and most is not None and least > most:
            self.fault(source, f"min is {least:g}, max is {most:g}", "no reply can be both", "min")
        elif most == 0 and "field" not in values:
            message = "max is 0: an empty reply is wrong however long it may be"
            self.fault(source, message, "write 'max: 1' or more; a field may be empty ('field: NAME')", "max")

    def make(self, source: RuleSource, field: str | None) -> Length:
        """See `TextType.make`."""
        least, most = (a_whole_number(source.values.get(key)) for key in ("min", "max"))
        unit = a_text(source.values.get("unit")) or _UNITS[0]
        return Length(field, source.by_severity, least, most, unit)
