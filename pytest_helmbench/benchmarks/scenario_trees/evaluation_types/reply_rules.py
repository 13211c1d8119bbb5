"""The rules themselves: one class for those that read a reply alike, with verdict, words and record."""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from dataclasses import replace

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import (
    Checked,
    ReplyRule,
    UnmeasuredError,
    as_text,
    at_field,
    json_checked,
    reply_at,
    text_checked,
)
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.case_texts import MARKS, has_lines
from pytest_helmbench.core.foreign_patterns import found as pattern_found
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Evaluation, Reply
from pytest_helmbench.core.scrub import HIDDEN_TEXT, excerpt, full_observed
from pytest_helmbench.judging.comparisons.exact import comparable, matches

_WORD = re.compile(r"\S+")
_STEP = re.compile(
    r"""\.(?P<name>[^.\[\]'"*\s]+)|\[(?P<index>-?\d{1,9})\]|\[(?P<quoted>'[^']*'|"[^"]*")\]|\.\*|\[\*\]"""
)
_LINE_LIMIT = 100
_MOST = 10_000
"""Values that a path is followed to; a `*` in a `*` can lead to very many."""

Step = str | int | None
"""A key, a place in a list, or None for all."""


@dataclass(frozen=True, slots=True)
class FieldRule(ReplyRule):
    """A field of a JSON reply holds the expected value, all of them in a list, or enough of them and few others.

    Args:
        type: `category_match`, `list_includes` or `tag_threshold`.
        field: Key or dotted path of the field.
        expected: Values as written in the file, and numbers where that is the schema's type.
        by_severity: See `ReplyRule.by_severity`.
        min_correct: Least number of expected tags, of which each counts once; None means all of them.
        max_incorrect: Most tags beyond the expected.
    """

    type: str
    field: str
    expected: tuple[str | float, ...]
    by_severity: bool = False
    min_correct: int | None = None
    max_incorrect: int = 0

    @property
    def reads_list(self) -> bool:
        """Whether the field holds a list of values."""
        return self.type != "category_match"

    def passes(self, observed: JsonValue) -> bool:
        """Return whether the value of the field is right, polarity apart."""
        if not self.reads_list:
            return matches(self.expected[0], observed)
        if not isinstance(observed, list):
            return False
        correct: set[str | float] = set()
        incorrect: set[str] = set()
        for tag in observed:
            hits = {wanted for wanted in self.expected if matches(wanted, tag)}
            correct |= hits
            if not hits:
                incorrect.add(json.dumps(tag, sort_keys=True))
        if self.type == "list_includes":
            return correct == set(self.expected)
        return len(correct) >= self._least() and len(incorrect) <= self.max_incorrect

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyRule.checked`."""
        return json_checked(case, reply, at_field(self.field, self._seen), strict=strict_json)

    def _seen(self, value: JsonValue) -> Checked:
        return Checked(self.passes(value), as_text(value))

    def wanted(self) -> str:
        """See `ReplyRule.wanted`."""
        listed = ", ".join(map(str, self.expected))
        if self.type == "tag_threshold":
            return f"at least {self._least()} of {listed}; at most {self.max_incorrect} others"
        return f"includes {listed}" if self.reads_list else listed

    def _least(self) -> int:
        return len(set(self.expected)) if self.min_correct is None else self.min_correct


class _OfText(ReplyRule):
    """A rule over the reply's text, or over one field of its JSON (key or dotted path)."""

    __slots__ = ()

    field: str | None

    @abstractmethod
    def seen(self, value: JsonValue) -> Checked:
        """Return the verdict on the text, or on the value of the field, and what people are told of it."""

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyRule.checked`."""
        if self.field is None:
            return text_checked(reply, self.seen)
        return json_checked(case, reply, at_field(self.field, self.seen), strict=strict_json)


@dataclass(frozen=True, slots=True)
class TextRule(_OfText):
    """A text contains all expected ones, none of them, or is one of them, white space at its ends apart.

    Args:
        type: `contains`, `not_contains` or `equals`.
        field: See `_OfText`.
        expected: Texts.
        by_severity: See `ReplyRule.by_severity`.
        ignore_case: Capital and small letters are the same.
    """

    type: str
    field: str | None
    expected: tuple[str, ...]
    by_severity: bool = False
    ignore_case: bool = False

    def seen(self, value: JsonValue) -> Checked:
        """See `_OfText.seen`: `equals` compares the number in a field by value, as `json_path` does."""
        text = as_text(value)
        if self.type == "equals":
            is_one = self._in_form(text).strip() in {self._in_form(one).strip() for one in self.expected}
            of_field = self.field is not None
            by_value = of_field and any(matches(wanted, value) for wanted in self.expected)
            return Checked(is_one or by_value, text, is_text=not of_field)
        formed = self._in_form(text)
        there = [self._in_form(one) in formed for one in self.expected]
        return Checked(all(there) if self.type == "contains" else not any(there), text, is_text=True)

    def wanted(self) -> str:
        """See `ReplyRule.wanted`."""
        listed = ", ".join(self.expected)
        words = {"contains": f"contains {listed}", "not_contains": f"contains none of {listed}"}
        return words.get(self.type, " or ".join(self.expected))

    def data(self) -> JsonObject:
        """See `ReplyRule.data`."""
        by_value: JsonObject = {"values": "by type"} if self.type == "equals" and self.field else {}
        return {**ReplyRule.data(self), "form": "NFKC", **by_value}

    def _in_form(self, text: str) -> str:
        return comparable(text, ignore_case=self.ignore_case)


@dataclass(frozen=True, slots=True)
class PatternRule(_OfText):
    """A regular expression is found, as the package `regex` finds it.

    Args:
        type: `regex`.
        field: See `_OfText`.
        pattern: `^` and `$` mean the ends of the reply; `(?m)` makes them those of lines.
        by_severity: See `ReplyRule.by_severity`.
        ignore_case: Capital and small letters are the same.
    """

    type: str
    field: str | None
    pattern: str
    by_severity: bool = False
    ignore_case: bool = False

    def seen(self, value: JsonValue) -> Checked:
        """See `_OfText.seen`."""
        text = as_text(value)
        pattern = f"(?i:{self.pattern})" if self.ignore_case else self.pattern
        return Checked(pattern_found(pattern, text), text, is_text=True)

    def wanted(self) -> str:
        """See `ReplyRule.wanted`."""
        return f"matches {self.pattern}"


@dataclass(frozen=True, slots=True)
class LengthRule(_OfText):
    """A text has at least and at most so many characters, words or lines that are not blank.

    Args:
        type: `length`.
        field: See `_OfText`.
        least: None for no least number.
        most: None for no greatest number.
        unit: `characters`, `words` or `lines`.
        by_severity: See `ReplyRule.by_severity`.
    """

    type: str
    field: str | None
    least: int | None
    most: int | None
    unit: str
    by_severity: bool = False

    def seen(self, value: JsonValue) -> Checked:
        """See `_OfText.seen`: people are told the size alone."""
        text = as_text(value).strip()
        if self.unit == "words":
            size = sum(1 for _ in _WORD.finditer(text))
        elif self.unit == "lines":
            size = sum(bool(line.strip()) for line in text.splitlines())
        else:
            size = len(text)
        passed = (self.least or 0) <= size and (self.most is None or size <= self.most)
        return Checked(passed, f"{size:,} {self.unit}")

    def wanted(self) -> str:
        """See `ReplyRule.wanted`."""
        parts = [f"at least {self.least}"] if self.least is not None else []
        parts += [f"at most {self.most}"] if self.most is not None else []
        return f"{' and '.join(parts)} {self.unit}"


@dataclass(frozen=True, slots=True)
class PathRule(ReplyRule):
    """Some value at a path in the reply's JSON is an expected one; without expected values, there is one.

    Args:
        type: `json_path`.
        path: `$.items[0].name`: keys, places in lists (from the end below 0), `*` for all.
        expected: See `FieldRule`; empty for any value.
        by_severity: See `ReplyRule.by_severity`.
    """

    type: str
    path: str
    expected: tuple[str | float, ...] = ()
    by_severity: bool = False

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyRule.checked`."""
        return json_checked(case, reply, self._seen, strict=strict_json)

    def _seen(self, value: JsonValue) -> Checked:
        found = [value]
        for step in steps_of(self.path) or []:
            found = [item for one in found for item in _next(one, step)][:_MOST]
        if not found:
            return Checked(False, f"(nothing at {self.path})")
        passed = not self.expected or any(
            matches(wanted, one) or (isinstance(one, dict | list) and wanted == as_text(one))
            for one in found
            for wanted in self.expected
        )
        return Checked(passed, as_text(found[0] if len(found) == 1 else found))

    def wanted(self) -> str:
        """See `ReplyRule.wanted`."""
        return f"{self.path} is {' or '.join(map(str, self.expected)) or 'there'}"


def steps_of(path: str) -> list[Step] | None:
    """Return the steps of a path; None where it is none."""
    position, steps = 1 if path.startswith("$") else 0, list[Step]()
    if not path.startswith(("$", ".", "[")):
        path = f".{path}"
    while position < len(path):
        found = _STEP.match(path, position)
        if found is None:
            return None
        if found["index"] is not None:
            steps.append(int(found["index"]))
        elif found["quoted"] is not None:
            steps.append(found["quoted"][1:-1])
        else:
            steps.append(found["name"])
        position = found.end()
    return steps


def _next(value: JsonValue, step: Step) -> Iterator[JsonValue]:
    if step is None:
        yield from value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    elif isinstance(step, int):
        if isinstance(value, list) and -len(value) <= step < len(value):
            yield value[step]
    elif isinstance(value, dict) and step in value:
        yield value[step]


@dataclass(frozen=True, slots=True)
class MeasuredRule(ReplyRule):
    """The seconds or USD that a reply took lie below a bound.

    Seconds go from sending the request that was answered to the last byte, our own waiting apart; USD are of the
    case's own call, as the provider, `models.yml` or the price list has it.

    In a conversation the slowest turn counts, and the sum of all calls.

    Args:
        type: `latency_below` or `cost_below`.
        bound: Above 0.
        by_severity: See `ReplyRule.by_severity`.
        turn: The turn that is measured; None for all of the conversation.
    """

    type: str
    bound: float
    by_severity: bool = False
    turn: int | None = None

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyRule.checked`."""
        del case, strict_json
        reply = reply_at(self, reply, self.turn)
        if self.type == "latency_below":
            figure = None if reply.recorded else reply.latency_ms / 1000
            unknown = "the reply is a stored one, so nothing was measured"
        else:
            figure = reply.first_cost_usd if reply.recorded else reply.usage.cost_usd
            unknown = "the cost of the call is unknown: give the model a price: in models.yml"
        if figure is None:
            raise UnmeasuredError(f"{self.type}: {unknown}")
        return Checked(figure < self.bound, self._text(figure))

    def wanted(self) -> str:
        """See `ReplyRule.wanted`."""
        turn = "" if self.turn is None else f" at turn {self.turn}"
        return f"below {self._text(self.bound)}{turn}"

    def data(self) -> JsonObject:
        """See `ReplyRule.data`."""
        return {key: value for key, value in ReplyRule.data(self).items() if (key, value) != ("turn", None)}

    def _text(self, figure: float) -> str:
        return f"{figure:.3g} s" if self.type == "latency_below" else f"{figure:.6g} USD"


@dataclass(frozen=True, slots=True)
class CombinedRule(ReplyRule):
    """Several rules over one reply, of which all or any must pass.

    Args:
        type: `all` or `any`.
        rules: In file order.
        by_severity: See `ReplyRule.by_severity`; that of a part counts nothing.
    """

    type: str
    rules: tuple[ReplyRule, ...]
    by_severity: bool = False

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> Checked:
        """See `ReplyRule.checked`."""
        plain = replace(case, severity=0)
        parts: list[Evaluation] = []
        unknown: list[UnmeasuredError] = []
        for rule in self.rules:
            try:
                parts.append(rule.evaluate(plain, reply, strict_json=strict_json))
            except UnmeasuredError as error:
                unknown.append(error)
        needs_all = self.type == "all"
        passed = (all if needs_all else any)(part.passed for part in parts)
        if unknown and passed is needs_all:
            raise unknown[0]  # what could not be measured decides
        reason = None if passed else next((part.reason for part in parts if part.reason), None)
        parse = next((part.parse for part in parts if part.parse), None)
        observed, text = (_told(parts, with_text=with_text) for with_text in (False, True))
        return Checked(passed, observed, reason, parse, text="" if text == observed else text)

    def refusal(self) -> str:
        """See `CaseRule.refusal`."""
        return next(filter(None, (rule.refusal() for rule in self.rules)), "")

    def wanted(self) -> str:
        """See `ReplyRule.wanted`."""
        parts = (f"({one.wanted()})" if isinstance(one, CombinedRule) else one.wanted() for one in self.rules)
        return (" and " if self.type == "all" else " or ").join(parts)

    def data(self) -> JsonObject:
        """See `ReplyRule.data`."""
        rules: list[JsonValue] = [dict(rule.data()) for rule in self.rules]
        return {"type": self.type, "of": rules, "by_severity": self.by_severity}


def _told(parts: Iterable[Evaluation], *, with_text: bool) -> str:
    """Return what several rules observed, a line for each: right or wrong, expected, and the value that decided."""
    lines: list[str] = []
    for part in parts:
        observed = full_observed(part) if with_text else part.observed
        line = f"{MARKS[part.passed]} {part.rule}: expected {_in_line(part.expected)}"
        if has_lines(observed):
            lines += [line, *(f"  {inner}" for inner in observed.splitlines())]
        else:
            lines.append(line if observed == HIDDEN_TEXT else f"{line}, observed {_in_line(observed)}")
    return "\n".join(lines)


def _in_line(text: str) -> str:
    return excerpt(" ".join(text.split()), _LINE_LIMIT)
