"""Rules that judge a reply by themselves, without a marking model: what all of them share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, TypeAlias

from pytest_helmbench.core.case import Case, CaseRule
from pytest_helmbench.core.case_texts import observed_excerpt
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Evaluation, Parse, Reply
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import HIDDEN_TEXT, OBSERVED_LIMIT, excerpt, scrub
from pytest_helmbench.judging.json_replies import read_reply
from pytest_helmbench.judging.rubric import rule_hash


class UnmeasuredError(HelmbenchError):
    """A reply lacks the figure that a rule measures."""


class Missing:
    """A field that the reply does not have: not the same as one that is null."""


MISSING: Final = Missing()

Observed: TypeAlias = "JsonValue | Missing"
"""The value of a field of a reply."""


class RuleFinding(NamedTuple):
    """The finding of a rule in a reply.

    Args:
        passed: Right or wrong, polarity apart.
        observed: For people: what came.
        reason: Why the reply is wrong for its form, whatever the polarity; None where it is sound.
        parse: How JSON was found; None where none was read.
        is_text: What came is running text of the model, not the value of a field.
        text: What came in full, where that is running text of the model and `observed` is without it.
        credit: In [0, 1], polarity apart; None where the verdict says it.
    """

    passed: bool
    observed: str
    reason: str | None = None
    parse: Parse | None = None
    is_text: bool = False
    text: str = ""
    credit: float | None = None


class ReplyRule(CaseRule, ABC):
    """A rule that gives its verdict at once; a case with it gets one evaluation."""

    __slots__ = ()

    type: str
    """Its name in frontmatter and on record."""

    by_severity: bool
    """Invert the verdict where the base severity is below 0 (`polarity: by_severity`)."""

    @abstractmethod
    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> RuleFinding:
        """Look at a reply to a case.

        Raises:
            UnmeasuredError: It cannot be measured.
        """

    @abstractmethod
    def wanted(self) -> str:
        """Return what passes, in the fewest words, polarity apart: `HANDOFF`, `includes A, B`."""

    def data(self) -> JsonObject:
        """Return what the record keeps of it: all that decides."""
        names: tuple[str, ...] = type(self).__slots__
        values = ((name, getattr(self, name)) for name in names)
        return {name: [*value] if isinstance(value, tuple) else value for name, value in values}

    def hashes(self) -> tuple[str, ...]:
        """Return the rule hash of the one evaluation that a case with this rule gets."""
        return (rule_hash(self.data()),)

    def evaluate(self, case: Case, reply: Reply, *, strict_json: bool) -> Evaluation:
        """Hold the reply to a case to the rule. One that is wrong for its form is wrong whatever the polarity.

        Raises:
            UnmeasuredError: See `checked`.
        """
        inverted = self.by_severity and case.severity < 0
        found = self.checked(case, reply, strict_json=strict_json)
        passed = found.reason is None and found.passed is not inverted
        credit = float(found.passed) if found.credit is None else found.credit
        credit = 1 - credit if inverted else credit
        observed = observed_excerpt(found.observed)
        text = found.observed if found.is_text else found.text
        return Evaluation(
            criterion="",
            rule=self.type,
            rule_hash=self.hashes()[0],
            passed=passed,
            credit=0.0 if found.reason is not None else credit,
            reason=found.reason,
            parse=found.parse,
            expected=scrub(f"not: {self.wanted()}" if inverted else self.wanted()),
            observed=HIDDEN_TEXT if found.is_text else observed,
            observed_text=observed_excerpt(text) if text else None,
        )


def json_checked(
    case: Case, reply: Reply, seen: Callable[[JsonValue], RuleFinding], *, strict: bool
) -> RuleFinding:
    """Return what is found in the JSON of a reply; one that has none is wrong for its form.

    Args:
        case: Its schema is what the JSON must fit.
        strict: No recovery of JSON from surrounding text.
    """
    reading = read_reply(reply, case.schema, strict=strict)
    if reading.reason is not None:
        # No word of the reply: this text is also shown where replies are not.
        breach = f"(JSON against its schema, {reading.breach})" if reading.breach else "(no readable JSON)"
        told = reply.form_fault_text(reading.reason) or excerpt(breach, OBSERVED_LIMIT)
        return RuleFinding(False, told, reading.reason, reading.parse)
    return seen(reading.value)._replace(parse=reading.parse)


def at_field(field: str, seen: Callable[[JsonValue], RuleFinding]) -> Callable[[JsonValue], RuleFinding]:
    """Return what looks at one field of a JSON value: key or dotted path; wrong where it is missing."""

    def looked(value: JsonValue) -> RuleFinding:
        observed = field_value(value, field)
        return (
            RuleFinding(False, f"(no field {field!r})") if isinstance(observed, Missing) else seen(observed)
        )

    return looked


def text_checked(reply: Reply, seen: Callable[[JsonValue], RuleFinding]) -> RuleFinding:
    """Return what is found in the whole text; a refusal, an empty or a cut reply is wrong for its form."""
    reason = reply.form_fault
    return seen(reply.text) if reason is None else RuleFinding(False, reply.form_fault_text(reason), reason)


def reply_at(rule: ReplyRule, reply: Reply, turn: int | None) -> Reply:
    """Return the reply of a turn; the one that carries the conversation for None.

    Raises:
        UnmeasuredError: The model is not asked at this turn.
    """
    found = [one for one in reply.turns or (reply,) if turn in (None, one.turn)]
    if not found:
        raise UnmeasuredError(f"{rule.type}: the model is not asked at turn {turn}")
    return reply if turn is None else found[0]


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
