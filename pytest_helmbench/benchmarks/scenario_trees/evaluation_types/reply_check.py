"""Rules that look at a reply as it came, its text or one field of it: what they share."""

from __future__ import annotations

import json
from abc import abstractmethod
from typing import ClassVar, NamedTuple
from unicodedata import normalize

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_rule import (
    Missing,
    field_value,
    form_fault,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Parse, Reply
from pytest_helmbench.core.scrub import OBSERVED_LIMIT, excerpt, scrub
from pytest_helmbench.core.shown_texts import HIDDEN_TEXT
from pytest_helmbench.judging.json_replies import read_reply

__all__ = ["IGNORE_CASE", "Checked", "ReplyCheck", "TextCheck", "as_text", "comparable"]

IGNORE_CASE: JsonObject = {
    "description": "true where capital and small letters are the same",
    "type": "boolean",
}


class Checked(NamedTuple):
    """What a check found.

    Args:
        passed: Right or wrong, polarity apart.
        observed: For people: what came.
        reason: Why the reply is wrong for its form, whatever the polarity; None where it is sound.
        parse: How JSON was found; None where none was read.
        is_text: What came is running text of the model, not the value of a field.
    """

    passed: bool
    observed: str
    reason: str | None = None
    parse: Parse | None = None
    is_text: bool = False


class ReplyCheck(ReplyRule):
    """A rule that finds a verdict, which polarity may turn."""

    __slots__ = ()

    @abstractmethod
    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """Look at a reply.

        Raises:
            UnmeasuredError: It cannot be measured.
        """

    @abstractmethod
    def wanted(self) -> str:
        """Return what passes, in the fewest words, polarity apart."""

    def evaluate(self, case: Case, reply: Reply, *, strict_json: bool) -> Evaluation:
        """See `ReplyRule.evaluate`. A reply that is wrong for its form is wrong whatever the polarity."""
        inverted = self.is_inverted(case)
        found = self.checked(case, reply, strict_json=strict_json)
        passed = found.reason is None and found.passed is not inverted
        (rule_hash,) = self.hashes()
        wanted = self.wanted()
        observed = excerpt(scrub(found.observed), OBSERVED_LIMIT)
        return Evaluation(
            criterion="",
            rule=self.type,
            rule_hash=rule_hash,
            passed=passed,
            credit=1.0 if passed else 0.0,
            reason=found.reason,
            parse=found.parse,
            expected=scrub(f"not: {wanted}" if inverted else wanted),
            observed=HIDDEN_TEXT if found.is_text else observed,
            observed_text=observed if found.is_text else None,
        )


@dataclass(frozen=True, slots=True)
class TextCheck(ReplyCheck):
    """A check of the reply's text, or of one field of its JSON.

    Args:
        field: Key or dotted path of the field; None for the whole text.
        by_severity: Invert the verdict where the base severity is below 0.
    """

    field: str | None = None
    by_severity: bool = False

    type: ClassVar[str]

    @abstractmethod
    def holds(self, text: str) -> bool:
        """Return whether a text passes."""

    def seen(self, text: str) -> Checked:
        """Return the verdict on a text, and what people are told of it: the text itself."""
        return Checked(self.holds(text), text, is_text=True)

    def seen_value(self, value: JsonValue) -> Checked:
        """Return the verdict on the value of a field: on its text, where nothing else is said."""
        return self.seen(as_text(value))

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyCheck.checked`. A refusal, an empty reply and one that was cut are wrong for their form."""
        if self.field is None:
            reason = _text_fault(reply)
            return self.seen(reply.text) if reason is None else Checked(False, form_fault(reason), reason)
        reading = read_reply(reply.text, reply.finish_reason, reply.refusal, case.schema, strict=strict_json)
        if reading.reason is not None:
            return Checked(False, form_fault(reading.reason, reading.breach), reading.reason, reading.parse)
        value = field_value(reading.value, self.field)
        if isinstance(value, Missing):
            return Checked(False, f"(no field {self.field!r})", None, reading.parse)
        return self.seen_value(value)._replace(parse=reading.parse)

    def data(self) -> JsonObject:
        """See `ReplyRule.data`."""
        return {"type": self.type, "field": self.field, "by_severity": self.by_severity, **self.own_data()}

    @abstractmethod
    def own_data(self) -> JsonObject:
        """Return what the record keeps of the rule's own keys."""


_QUOTES = str.maketrans({"’": "'", "‘": "'", "ʼ": "'", "“": '"', "”": '"', "„": '"', "\u00a0": " "})


def comparable(text: str, *, ignore_case: bool) -> str:
    """Return a text in the form that texts are compared in: one kind of quotes and spaces, letters composed (NFC)."""
    text = normalize("NFC", text.translate(_QUOTES))
    return normalize("NFC", text.casefold()) if ignore_case else text


def as_text(value: JsonValue) -> str:
    """Return a JSON value as text: a text as it is, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _text_fault(reply: Reply) -> str | None:
    if (reply.refusal and reply.refusal.strip()) or reply.finish_reason == "refusal":
        return "refusal"
    if reply.finish_reason == "length":
        return "truncated"
    return None if reply.text.strip() else "empty"
