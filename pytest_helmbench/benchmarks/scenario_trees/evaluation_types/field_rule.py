"""Rules that read one field of a JSON reply: finding the field, comparing values, telling what came."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Mapping
from decimal import Decimal
from typing import ClassVar, Final, TypeAlias

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, excerpt, scrub
from pytest_helmbench.judging.json_replies import read_reply

__all__ = ["MISSING", "FieldRule", "Missing", "Observed", "field_value", "form_fault", "matches"]

_NUMBER = re.compile(r"\s*[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d{1,4})?\s*\Z", re.ASCII)


class Missing:
    """A field that the reply does not have: not the same as one that is null."""


MISSING: Final = Missing()

Observed: TypeAlias = "JsonValue | Missing"
"""What stands in a field of a reply."""


@dataclass(frozen=True, slots=True)
class FieldRule(ReplyRule):
    """A rule that reads one field of a JSON reply.

    Args:
        field: Key or dotted path of the field.
        expected: Values as written in the file.
        by_severity: Invert the verdict where the base severity is below 0 (`polarity: by_severity`).
    """

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

    def evaluate(self, case: Case, reply: Reply, *, strict_json: bool) -> Evaluation:
        """See `ReplyRule.evaluate`. A reply that cannot be read is wrong whatever the polarity."""
        inverted = self.is_inverted(case)
        reading = read_reply(reply.text, reply.finish_reason, reply.refusal, case.schema, strict=strict_json)
        if reading.reason is None:
            observed = field_value(reading.value, self.field)
            passed = self.passes(observed) is not inverted
            shown = self.observed_text(observed)
        else:
            passed = False
            shown = form_fault(reading.reason, reading.breach)
        (rule_hash,) = self.hashes()
        return Evaluation(
            criterion="",
            rule=self.type,
            rule_hash=rule_hash,
            passed=passed,
            credit=1.0 if passed else 0.0,
            reason=reading.reason,
            parse=reading.parse,
            expected=self.expected_text(inverted=inverted),
            observed=shown,
        )


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


def form_fault(reason: str | None, breach: str = "") -> str:
    """Return for people why a reply cannot be read."""
    # No word of the reply: this text is also shown where replies are not.
    texts = {
        "refusal": "(a refusal)",
        "truncated": "(cut at the token limit)",
        "empty": "(empty)",
        "invalid_json": "(no readable JSON)",
    }
    return texts.get(reason or "") or excerpt(f"(JSON against its schema, {breach})", OBSERVED_LIMIT)
