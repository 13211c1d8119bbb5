"""Field rules: comparison, verdicts, and what they tell people."""

from __future__ import annotations

import json
from dataclasses import replace
from types import MappingProxyType
from typing import Any

import pytest
from replies import reply_of

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_types import FieldRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import MISSING, field_value
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.text_types import TextRule
from pytest_helmbench.core.case import Case, CaseRule, Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Parse, Reply
from pytest_helmbench.judging.comparisons.exact import matches
from pytest_helmbench.judging.judge import case_passed
from pytest_helmbench.judging.rubric import Criterion, JudgeRule, rule_hash


def reply(text: str, finish_reason: str | None = "stop", refusal: str | None = None) -> Reply:
    return reply_of(text, finish_reason, refusal)


def case(rule: CaseRule, schema: Any = None, severity: int = 5) -> Case:
    wanted: JsonObject = {
        "type": "json_schema",
        "json_schema": {"name": "a", "strict": True, "schema": schema or {}},
    }
    return Case("P1-B1-S1-C1-PT1", (Message("user", "Hi"),), wanted, rule, severity)


@pytest.mark.parametrize(
    ("expected", "observed", "same"),
    [
        ("HANDOFF", "HANDOFF", True),
        ("HANDOFF", "handoff", False),
        ("HANDOFF", "HANDOFF ", False),
        ("2", 2, True),
        ("2", "2", True),
        (2, "2", False),
        (2, 2.0, True),
        (1.5, "1.5", False),
        (1, True, False),
        ("2", 3, False),
        ("02", "2", False),
        ("2.0", 2, True),
        ("0.1", 0.1, True),
        ("1e2", 100, True),
        ("1_0", 10, False),
        ("٢", 2, False),
        ("NO", False, False),
        ("NO", "NO", True),
        ("false", False, True),
        ("True", True, True),
        ("1", True, False),
        ("true", 1, False),
        ("true", "True", False),
        ("null", None, True),
        ("", None, False),
        ("NaN", 1.5, False),
        ("1e999999999", 1, False),
        ("{}", {}, False),
    ],
)
def test_expected_is_compared_as_the_schemas_type(expected: str | float, observed: Any, same: bool) -> None:
    assert matches(expected, observed) is same


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("category", "A"),
        ("result.label", 1),
        ("result.tags.1", "y"),
        ("a.b", "literal"),
        ("result", {"label": 1, "tags": ["x", "y"]}),
        ("result.nope", MISSING),
        ("category.x", MISSING),
        ("result.tags.9", MISSING),
        ("nothing", MISSING),
        ("empty", None),
    ],
)
def test_fields_may_be_dotted_paths(path: str, value: Any) -> None:
    document: JsonValue = {
        "category": "A",
        "result": {"label": 1, "tags": ["x", "y"]},
        "a.b": "literal",
        "empty": None,
    }
    assert field_value(document, path) == value


LIST = FieldRule("list_includes", "tags", ("A", "2"))
TAGS = FieldRule("tag_threshold", "tags", ("A", "B", "C"))


@pytest.mark.parametrize(
    ("rule", "observed", "passed"),
    [
        (LIST, ["A", 2, "Z"], True),
        (LIST, ["A"], False),
        (LIST, [], False),
        (LIST, "A2", False),
        (TAGS, ["C", "B", "A"], True),
        (TAGS, ["A", "B", "C", "A"], True),
        (TAGS, ["A", "B"], False),
        (TAGS, ["A", "B", "C", "D"], False),
        (TAGS, None, False),
        (replace(TAGS, min_correct=1), ["A", "A"], True),
        (replace(TAGS, min_correct=2), ["A", "A"], False),
        (replace(TAGS, min_correct=0), [], True),
        (replace(TAGS, max_incorrect=1), ["A", "B", "C", "D", "D"], True),
        (replace(TAGS, max_incorrect=1), ["A", "B", "C", "D", "E"], False),
        (replace(TAGS, expected=("1", "1.0")), [1], True),
        (replace(TAGS, expected=("A", "A")), ["A"], True),
    ],
)
def test_lists_are_judged_by_their_rule(rule: FieldRule, observed: Any, passed: bool) -> None:
    assert rule.passes(observed) is passed


CATEGORY = FieldRule("category_match", "category", ("HANDOFF",))
SCHEMA = {
    "type": "object",
    "properties": {"category": {"enum": ["HANDOFF", "CONTINUE"]}},
    "required": ["category"],
}


def test_a_right_answer_passes_with_all_that_a_row_needs() -> None:
    row = CATEGORY.evaluate(case(CATEGORY, SCHEMA), reply('{"category": "HANDOFF"}'), strict_json=False)
    assert (row.criterion, row.rule, row.passed, row.credit, row.reason) == (
        "",
        "category_match",
        True,
        1.0,
        None,
    )
    assert (row.parse, row.expected, row.observed, row.justification) == (
        Parse.STRICT,
        "HANDOFF",
        "HANDOFF",
        None,
    )
    assert (row.rule_hash,) == CATEGORY.hashes()
    assert case_passed((row,))


def test_polarity_by_severity_turns_the_verdict_below_zero_and_only_there() -> None:
    rule = replace(CATEGORY, by_severity=True)
    verdicts = {
        (severity, category): rule.evaluate(
            case(rule, SCHEMA, severity), reply(json.dumps({"category": category})), strict_json=False
        )
        for severity in (-1, 0, 1)
        for category in ("HANDOFF", "CONTINUE")
    }
    assert {key for key, row in verdicts.items() if row.passed} == {
        (-1, "CONTINUE"),
        (0, "HANDOFF"),
        (1, "HANDOFF"),
    }
    assert verdicts[-1, "HANDOFF"].expected == "not: HANDOFF"
    assert verdicts[-1, "HANDOFF"].credit == 0.0


@pytest.mark.parametrize("severity", [5, -5])
@pytest.mark.parametrize(
    ("answer", "reason", "observed"),
    [
        (reply("secret words"), "invalid_json", "(no readable JSON)"),
        (reply('{"category": "secret"}'), "schema_violation", "(JSON against its schema, $.category: enum)"),
        (reply(""), "empty", "(empty)"),
        (reply('{"category": "HANDOFF"}', "length"), "truncated", "(cut at the token limit)"),
        (reply("", refusal="secret"), "refusal", "(a refusal)"),
    ],
)
def test_a_fault_of_form_is_wrong_whatever_the_polarity_and_shows_no_text(
    answer: Any, reason: str, observed: Any, severity: int
) -> None:
    rule = replace(CATEGORY, by_severity=True)
    row = rule.evaluate(case(rule, SCHEMA, severity), answer, strict_json=False)
    assert (row.passed, row.credit, row.reason, row.observed) == (False, 0.0, reason, observed)


def test_strict_json_reaches_the_reading() -> None:
    asked, answer = case(CATEGORY, SCHEMA), reply('So: {"category": "HANDOFF"}')
    assert CATEGORY.evaluate(asked, answer, strict_json=False).parse is Parse.RECOVERED
    assert CATEGORY.evaluate(asked, answer, strict_json=True).reason == "invalid_json"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        (CATEGORY, "HANDOFF"),
        (LIST, "includes A, 2"),
        (TAGS, "at least 3 of A, B, C; at most 0 others"),
        (replace(TAGS, min_correct=1, max_incorrect=2), "at least 1 of A, B, C; at most 2 others"),
    ],
)
def test_expected_is_told_in_few_words(rule: FieldRule, expected: str) -> None:
    assert rule.evaluate(case(rule), reply("{}"), strict_json=False).expected == expected


@pytest.mark.parametrize(
    ("observed", "shown"),
    [
        (["A", "ü"], '["A", "ü"]'),
        (None, "null"),
        ("\x1b[2J\ud83d", "\\x1b[2J\ufffd"),
        ("x" * 5_000, "x" * 199 + "…"),
    ],
)
def test_observed_is_scrubbed_and_cut(observed: Any, shown: str) -> None:
    answer = reply(json.dumps({"tags": observed}))
    assert TAGS.evaluate(case(TAGS), answer, strict_json=False).observed == shown
    missing = TAGS.evaluate(case(TAGS), reply("{}"), strict_json=False)
    assert (missing.passed, missing.observed) == (False, "(no field 'tags')")


def test_the_rule_hash_changes_with_everything_that_decides() -> None:
    criterion = Criterion("CR1", "rubric", ("A", "B"), ("A",), credit={"A": 1.0})
    rules: list[FieldRule | Criterion | JudgeRule] = [
        CATEGORY,
        replace(CATEGORY, expected=("X",)),
        replace(CATEGORY, by_severity=True),
        replace(CATEGORY, field="x"),
        replace(CATEGORY, expected=LIST.expected, field=LIST.field),
        LIST,
        replace(TAGS, expected=LIST.expected),
        replace(TAGS, expected=LIST.expected, min_correct=1),
        replace(TAGS, expected=LIST.expected, max_incorrect=1),
        criterion,
        replace(criterion, rubric="other \ud83d"),
        replace(criterion, credit={"A": 0.5}),
        JudgeRule((criterion,)),
    ]
    hashes = {rule_hash(rule.data()) for rule in rules} | {
        rule_hash(criterion.data(), "t1", "m"),
        rule_hash(criterion.data(), "t2", "m"),
    }
    assert len(hashes) == len(rules) + 2
    assert all(len(value) == 16 and int(value, 16) >= 0 for value in hashes)
    assert CATEGORY.hashes() == replace(CATEGORY).hashes()
    assert rule_hash(replace(criterion, credit=MappingProxyType({"A": 1.0})).data()) == rule_hash(
        criterion.data()
    )


def test_the_hashes_of_rules_on_record_stay_what_they_are() -> None:
    criteria = (Criterion("", "r", ("A", "B"), ("A",), credit={"A": 1.0}),)
    tags = FieldRule("tag_threshold", "c", ("A", "B"), True, 1, 2)
    assert FieldRule("category_match", "c", ("A", "ü")).hashes() == ("640c1dc58dcf7ab0",)
    assert FieldRule("list_includes", "c", ("A",), by_severity=True).hashes() == ("5c277cdad12114cd",)
    assert tags.hashes() == ("2563b3c982f53483",)
    assert JudgeRule(criteria, by_severity=True).hashes("t1", "m") == ("b55e0705f6522833",)


@pytest.mark.parametrize(
    ("text", "expected", "ignore_case"),
    [("I’m sorry.", "I'm sorry", False), ("A CAFE\u0301 in to\u200bwn", "caf\u00e9 in\u00a0town", True)],
)
def test_texts_are_compared_in_one_form(text: str, expected: str, ignore_case: bool) -> None:
    verdicts = {"contains": True, "not_contains": False, "equals": False}
    for kind, passed in verdicts.items():
        assert TextRule(kind, None, (expected,), ignore_case=ignore_case).seen(text).passed is passed
    assert not TextRule("contains", None, (f"{expected}x",), ignore_case=ignore_case).seen(text).passed
    assert TextRule("equals", None, (f" {text} ",)).seen(f"\u200b {text}\n").passed


@pytest.mark.parametrize(
    ("expected", "value", "is_equal"),
    [("5", 5.0, True), ("5.0", 5, True), ("1e1", 10, True), ("5", 5.5, False), ("5.0", "5", False)],
)
def test_the_number_in_a_field_is_compared_by_value(
    expected: str, value: float | str, is_equal: bool
) -> None:
    assert TextRule("equals", "n", (expected,)).seen(value).passed is is_equal
