"""Rules that read one field of a JSON reply: finding the field, comparing values, telling what came."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import ClassVar, Final, TypeAlias

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.rule import CaseRule
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, excerpt, scrub
from pytest_helmbench.judging.rule_hash import rule_hash

__all__ = ["MISSING", "FieldRule", "Missing", "Observed", "field_value", "matches"]

_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?\s*\Z", re.ASCII)


class Missing:
    """A field that the reply does not have: not the same as one that is null."""


MISSING: Final = Missing()

Observed: TypeAlias = "JsonValue | Missing"
"""What stands in a field of a reply."""


@dataclass(frozen=True, slots=True)
class FieldRule(CaseRule, ABC):
    """A rule that reads one field of a JSON reply.

    Args:
        field: Key or dotted path of the field.
        expected: Values as written in the file.
        by_severity: Invert the verdict where the base severity is below 0 (`polarity: by_severity`).
    """

    type: ClassVar[str]
    """Its name in frontmatter and on record."""

    reads_list: ClassVar[bool]
    """Whether the field holds a list of values."""

    field: str
    expected: tuple[str, ...]
    by_severity: bool = False

    @abstractmethod
    def passes(self, observed: Observed) -> bool:
        """Return whether the value of the field is right, polarity apart."""

    @abstractmethod
    def wanted(self) -> str:
        """Return what passes, in the fewest words, polarity apart: `HANDOFF`, `includes A, B`."""

    def expected_text(self, *, inverted: bool) -> str:
        """Return for people what passes."""
        text = self.wanted()
        return scrub(f"not: {text}" if inverted else text)

    def observed_text(self, observed: Observed) -> str:
        """Return the value that was judged, as people read it, cut."""
        if isinstance(observed, Missing):
            return f"(no field {self.field!r})"
        text = observed if isinstance(observed, str) else json.dumps(observed, ensure_ascii=False)
        return excerpt(text, OBSERVED_LIMIT)

    def data(self) -> JsonObject:
        """Return what the record keeps of it: all that decides.

        The two numbers belong to `tag_threshold`; they stand here since every rule on record is hashed with them.
        """
        return {
            "type": self.type,
            "field": self.field,
            "expected": list(self.expected),
            "min_correct": None,
            "max_incorrect": 0,
            "by_severity": self.by_severity,
        }

    def hashes(self) -> tuple[str, ...]:
        """Return the rule hash of the one evaluation that a case with this rule gets."""
        return (rule_hash(self.data()),)


def field_value(value: Observed, path: str) -> Observed:
    """Return what stands at a dotted path, or `MISSING`.

    A key that holds the dots itself comes first; a number also counts into a list.
    """
    if isinstance(value, Mapping):
        if path in value:
            return value[path]
        head, _, rest = path.partition(".")
        return field_value(value[head], rest) if rest and head in value else MISSING
    if isinstance(value, list):
        head, _, rest = path.partition(".")
        if head.isascii() and head.isdigit() and len(head) < 10 and int(head) < len(value):
            return field_value(value[int(head)], rest) if rest else value[int(head)]
    return MISSING


def matches(expected: str, observed: Observed) -> bool:
    """Return whether a JSON value is the one that the file writes as `expected`.

    The reply fits its schema, so the value has the schema's type, and that type decides: strings exactly,
    numbers by value (`2` is 2, and 2.0 where numbers are asked for), `true`, `false` and `null` as words.
    """
    if isinstance(observed, str):
        return expected == observed
    if isinstance(observed, bool):
        return expected.strip().lower() == ("true" if observed else "false")
    if isinstance(observed, int | float):
        return _NUMBER.match(expected) is not None and Decimal(expected.strip()) == Decimal(str(observed))
    return observed is None and expected.strip().lower() == "null"
