"""The types that read a reply's text, or one field of its JSON: `contains` and its like, `regex` and `length`."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable
from typing import NamedTuple

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.evaluation_type import (
    COUNT,
    EXPECTED,
    FIELD,
    EvaluationType,
    RuleSource,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import (
    ReplyRule,
    RuleFinding,
    at_field,
    json_checked,
    text_checked,
)
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.case_texts import observed_from
from pytest_helmbench.core.foreign_patterns import PatternError, check_pattern
from pytest_helmbench.core.foreign_patterns import found as pattern_found
from pytest_helmbench.core.json_types import JsonObject, JsonValue, as_text
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.files.strict_json import a_number, a_whole_number
from pytest_helmbench.judging.comparisons.exact import comparable, matches, place_of

_WORD = re.compile(r"\S+")
_SIZES: dict[str, Callable[[str], int]] = {
    "characters": len,
    "words": lambda text: sum(1 for _ in _WORD.finditer(text)),
    "lines": lambda text: sum(bool(line.strip()) for line in text.splitlines()),
}
_IGNORE_CASE: JsonObject = {
    "description": "true where capital and small letters are the same",
    "type": "boolean",
}


class _OfText(ReplyRule):
    """A rule over the reply's text, or over one field of its JSON (key or dotted path)."""

    __slots__ = ()

    field: str | None

    @abstractmethod
    def seen(self, value: JsonValue) -> RuleFinding:
        """Return the verdict on the text, or on the value of the field, and the values that a failure shows."""

    def checked(self, case: Case, reply: Reply, *, strict_json: bool) -> RuleFinding:
        if self.field is None:
            return text_checked(reply, self.seen)
        return json_checked(case, reply, at_field(self.field, self.seen), strict=strict_json)


@dataclass(frozen=True, slots=True)
class TextRule(_OfText):
    """A text contains all expected ones, none of them, or is one of them, white space at its ends apart.

    Args:
        type: `contains`, `not_contains` or `equals`.
        ignore_case: Capital and small letters are the same.
    """

    type: str
    field: str | None
    expected: tuple[str, ...]
    by_severity: bool = False
    ignore_case: bool = False

    def seen(self, value: JsonValue) -> RuleFinding:
        row = _ROWS[self.type]
        is_text, text = self.field is None or not row.by_value, as_text(value)
        passed = row.passes(self, value)
        if passed is row.is_found and (self.by_severity or not passed):
            places = (place_of(one, text, ignore_case=self.ignore_case) for one in self.expected)
            text = observed_from(text, min((at for at in places if at is not None), default=None))
        return RuleFinding(passed, text, is_text=is_text)

    def wanted(self) -> str:
        row = _ROWS[self.type]
        return f"{row.words}{row.between.join(self.expected)}"

    def data(self) -> JsonObject:
        """Return what the record keeps, with the form in which texts are compared."""
        by_value: JsonObject = {"values": "by type"} if _ROWS[self.type].by_value and self.field else {}
        return {**ReplyRule.data(self), "form": "NFKC", **by_value}

    def in_form(self, text: str) -> str:
        """Return a text in the form in which it is compared."""
        return comparable(text, ignore_case=self.ignore_case)


class _Row(NamedTuple):
    """One of the types of `TextRule`.

    Args:
        name: Value of `evaluation.type`.
        passes: Returns whether a text or the value of a field is right, polarity apart.
        words: The beginning of what passes.
        between: What stands there between two expected texts.
        of_empty: What follows of an empty text in `expected`.
        is_found: Its verdict where an expected text stands in the reply.
        by_value: White space at the ends counts nothing, and the number in a field is compared as `json_path` does.
    """

    name: str
    passes: Callable[[TextRule, JsonValue], bool]
    words: str
    between: str
    of_empty: str
    is_found: bool = True
    by_value: bool = False

    def read(self, source: RuleSource) -> TextRule:
        case = _ignores_case(source)
        return TextRule(self.name, source.text("field"), source.texts(), source.by_severity, case)

    def check(self, source: RuleSource) -> None:
        """File the empty texts in `expected`."""
        written = source.values.get("expected")
        for index, text in enumerate(written if isinstance(written, list) else [written]):
            if isinstance(text, str) and self._is_empty(source, text):
                message = f"{self.name}: an empty text in 'expected': {self.of_empty}"
                source.fault(message, "write a text, or remove the entry", "expected", index)

    def _is_empty(self, source: RuleSource, text: str) -> bool:
        """Return whether a text says nothing of a reply; the field of a reply may be empty."""
        compared = comparable(text, ignore_case=False)
        return "field" not in source.values and not compared.strip() if self.by_value else not compared

    def evaluation_type(self) -> EvaluationType:
        keys = {"field": FIELD, "expected": EXPECTED, "ignore_case": _IGNORE_CASE}
        return EvaluationType(self.name, keys, self.read, self.check, ("expected",), asks_for_polarity=True)


def _has_all(rule: TextRule, value: JsonValue) -> bool:
    text = rule.in_form(as_text(value))
    return all(rule.in_form(one) in text for one in rule.expected)


def _has_none(rule: TextRule, value: JsonValue) -> bool:
    text = rule.in_form(as_text(value))
    return not any(rule.in_form(one) in text for one in rule.expected)


def _equals(rule: TextRule, value: JsonValue) -> bool:
    text = rule.in_form(as_text(value)).strip()
    if text in {rule.in_form(one).strip() for one in rule.expected}:
        return True
    return rule.field is not None and any(matches(wanted, value) for wanted in rule.expected)


@dataclass(frozen=True, slots=True)
class PatternRule(_OfText):
    """A regular expression is found, as the package `regex` finds it.

    Args:
        pattern: `^` and `$` mean the ends of the reply; `(?m)` makes them those of lines.
        ignore_case: Capital and small letters are the same.
    """

    type: str
    field: str | None
    pattern: str
    by_severity: bool = False
    ignore_case: bool = False

    def seen(self, value: JsonValue) -> RuleFinding:
        text = as_text(value)
        pattern = f"(?i:{self.pattern})" if self.ignore_case else self.pattern
        place = pattern_found(pattern, text)
        return RuleFinding(place is not None, observed_from(text, place), is_text=True)

    def wanted(self) -> str:
        return f"matches {self.pattern}"


@dataclass(frozen=True, slots=True)
class LengthRule(_OfText):
    """A text has at least and at most so many characters, words or lines that are not blank.

    Args:
        least: None for no least number.
        most: None for no greatest number.
        unit: `characters`, `words` or `lines`.
    """

    type: str
    field: str | None
    least: int | None
    most: int | None
    unit: str
    by_severity: bool = False

    def seen(self, value: JsonValue) -> RuleFinding:
        """Return the verdict on the size, which a failure shows without the text."""
        text = as_text(value).strip()
        size = _SIZES[self.unit](text)
        passed = (self.least or 0) <= size and (self.most is None or size <= self.most)
        return RuleFinding(passed, f"{size:,} {self.unit}")

    def wanted(self) -> str:
        parts = [f"at least {self.least}"] if self.least is not None else []
        parts += [f"at most {self.most}"] if self.most is not None else []
        return f"{' and '.join(parts)} {self.unit}"


def _ignores_case(source: RuleSource) -> bool:
    return source.values.get("ignore_case") is True


def _pattern(source: RuleSource) -> PatternRule:
    pattern = source.text("pattern") or ""
    return PatternRule("regex", source.text("field"), pattern, source.by_severity, _ignores_case(source))


def _check_pattern(source: RuleSource) -> None:
    try:
        check_pattern(source.text("pattern") or "")
    except PatternError as error:
        hint = "write it as Python's `re` or the package `regex` reads it, in single quotes"
        source.fault(f"regex: {error}", hint, "pattern")


def _length(source: RuleSource) -> LengthRule:
    least, most = (a_whole_number(source.values.get(key)) for key in ("min", "max"))
    unit = source.text("unit") or "characters"
    return LengthRule("length", source.text("field"), least, most, unit, source.by_severity)


def _check_length(source: RuleSource) -> None:
    values = source.values
    least, most = (a_number(values.get(key)) for key in ("min", "max"))
    if source.has_only("field", "unit"):
        source.fault("length: there is neither 'min' nor 'max'", "write 'max: 200', for example")
    if least is not None and most is not None and least > most:
        source.fault(f"length: min is {least:g}, max is {most:g}", "no reply can be both", "min")
    elif most == 0 and "field" not in values:
        message = "length: max is 0: an empty reply is wrong however long it may be"
        source.fault(message, "write 'max: 1' or more; a field may be empty ('field: NAME')", "max")


_ROWS = {
    row.name: row
    for row in (
        _Row("contains", _has_all, "contains ", ", ", "every reply holds it"),
        _Row("not_contains", _has_none, "contains none of ", ", ", "no reply passes", is_found=False),
        _Row(
            "equals",
            _equals,
            "",
            " or ",
            "an empty reply is wrong whatever is expected; a field may be empty ('field: NAME')",
            by_value=True,
        ),
    )
}
REGEX = EvaluationType(
    "regex",
    {
        "field": FIELD,
        "pattern": {
            "description": "write a regular expression, in single quotes",
            "type": "string",
            "minLength": 1,
        },
        "ignore_case": _IGNORE_CASE,
    },
    _pattern,
    _check_pattern,
    needed=("pattern",),
    asks_for_polarity=True,
)
LENGTH = EvaluationType(
    "length",
    {"field": FIELD, "min": COUNT, "max": COUNT, "unit": {"enum": [*_SIZES]}},
    _length,
    _check_length,
)
TEXT_TYPES = (*(row.evaluation_type() for row in _ROWS.values()), REGEX)
