"""A text that must not occur and does: each rule shows its place, whatever stands before it."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest
from replies import reply_of

from pytest_helmbench.benchmarks.packs.families.free_response.family import (
    FreeRow,
    free_row,
    parity_free,
    read_free,
)
from pytest_helmbench.benchmarks.packs.families.text.text_family import AnswerFinding
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.combined_types import CombinedRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_types import FieldRule, PathRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rule import ReplyRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.text_types import PatternRule, TextRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.tool_calls import ToolCallsRule
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.scrub import excerpt, full_observed
from pytest_helmbench.core.tools import MadeCall

_LONG = "The harbour opens at nine and the ferry leaves an hour later. " * 9
_TAGS = [f"harbour{number}" for number in range(60)]
_FORBIDDEN = TextRule("not_contains", None, ("free of charge", "no refund"))
_FORMAT: JsonObject = {"type": "json_schema", "json_schema": {"name": "r", "schema": {"type": "object"}}}


def _json(**fields: object) -> str:
    return json.dumps({"note": _LONG, **fields}, ensure_ascii=False)


@pytest.mark.parametrize(
    ("rule", "reply", "shown"),
    [
        (_FORBIDDEN, f"{_LONG}It is free of charge. {_LONG}", "free of charge"),
        (_FORBIDDEN, f"{_LONG}You get no refund here, nor is it free of charge.", "no refund"),
        (_FORBIDDEN, f"{'ﬁn ' * 300}It is free \n of\u200b charge.", "free of\u200b charge"),
        (replace(_FORBIDDEN, ignore_case=True), f"{'Straße ' * 90}FREE OF CHARGE", "FREE OF CHARGE"),
        (replace(_FORBIDDEN, field="note"), _json(note=f"{_LONG}no refund"), "no refund"),
        (replace(_FORBIDDEN, field="tags"), _json(tags=[*_TAGS, "no refund"]), "no refund"),
        (_FORBIDDEN, f"{'x' * 900}no refund{'x' * 900}", "no refund"),
        (TextRule("contains", None, ("[1]",), True), f"{_LONG}As said [1].", "[1]"),
        (PatternRule("regex", None, r"\[\d+\]", True), f"{_LONG}As said [12].", "[12]"),
        (PatternRule("regex", "note", r"\d{4}", True), _json(note=f"{_LONG}pin 2468."), "2468"),
        (FieldRule("list_includes", "tags", ("spam",), True), _json(tags=[*_TAGS, "spam", *_TAGS]), "spam"),
        (FieldRule("tag_threshold", "tags", tuple(_TAGS), False, 1), _json(tags=[*_TAGS, "spam"]), "spam"),
        (PathRule("json_path", "$.tags[*]", ("spam",), True), _json(tags=[*_TAGS, "spam"]), "spam"),
        (CombinedRule("all", (_FORBIDDEN,)), f"{_LONG}You get no refund.", "no refund"),
    ],
)
def test_the_place_is_shown(rule: ReplyRule, reply: str, shown: str) -> None:
    form = _FORMAT if reply.startswith("{") else None
    case = Case("P1", (Message("user", "Hi"),), form, rule, severity=-1 if rule.by_severity else 1)
    found = rule.evaluate(case, reply_of(reply), strict_json=False)
    observed = " ".join(full_observed(found).split())
    assert not found.passed
    cut = 150 if isinstance(rule, CombinedRule) else 60  # the shortest of a report
    assert shown in excerpt(observed, cut)


def test_a_forbidden_call_is_shown_behind_many_others() -> None:
    calls = [MadeCall(1, "look_up", {"page": number}, "") for number in range(60)]
    reply = replace(reply_of(""), tool_calls=(*calls, MadeCall(1, "erase", {"page": 7}, "")))
    rule = ToolCallsRule(forbidden=("erase",))
    found = rule.evaluate(Case("P1", (Message("user", "Hi"),), None, rule), reply, strict_json=False)
    assert "erase(page=7)" in excerpt(found.observed_text or "", 60)
    assert "(unknown tool)" in excerpt(found.observed, 60)


@pytest.mark.parametrize("read", [read_free, parity_free])
def test_a_rejected_answer_of_a_pack_is_shown(read: Callable[[FreeRow, str], AnswerFinding]) -> None:
    lists: JsonObject = {"accepted_answers": ["at nine"], "rejected_answers": ["At midnight"]}
    row = free_row({"prompt": "When?"}, {"rubric": dict(lists)})
    assert "at midnight" in read(row, f"{_LONG}It closes at midnight.").statement[:60]


def test_a_place_near_the_beginning_leaves_the_text_whole() -> None:
    case = Case("P1", (Message("user", "Hi"),), None, _FORBIDDEN)
    found = _FORBIDDEN.evaluate(case, reply_of(f"It is free of charge. {_LONG}"), strict_json=False)
    assert full_observed(found).startswith("It is free")
