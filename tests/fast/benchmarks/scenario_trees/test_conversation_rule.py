"""Rules of conversations: which reply each judges, what it says, and what a judge is shown."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from replies import reply_of

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.combined_types import CombinedRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.conversation_rule import (
    ConversationRule,
    in_turns,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_types import FieldRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.measured_types import MeasuredRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.text_types import LengthRule, TextRule
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.tool_calls import NeededCall, ToolCallsRule
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Outcome, Reply
from pytest_helmbench.core.scrub import HIDDEN_TEXT
from pytest_helmbench.core.tools import CannedAnswer, Tool, Toolbox
from pytest_helmbench.engine.dialogue import Dialogue
from pytest_helmbench.gateway.call import Origin
from pytest_helmbench.gateway.providers.endpoints import replay_endpoint
from pytest_helmbench.judging.judge import earlier_utterances, judge_messages, judged_text, load_template
from pytest_helmbench.judging.rubric import Criterion, JudgeRule, rule_hash

_CRITERION = Criterion("", "Is it SAFE?", ("SAFE", "UNSAFE"), ("SAFE",))
_JUDGED = JudgeRule((_CRITERION,))
_HELP = TextRule("contains", None, ("help",))
_SHORT = LengthRule("length", None, None, 20, "characters")
_CATEGORY = FieldRule("category_match", "category", ("A",))
_SLOW, _DEAR = MeasuredRule("latency_below", 2.0), MeasuredRule("cost_below", 0.9)
_SCHEMA: JsonValue = {"required": ["response", "category"], "properties": {"response": {"type": "string"}}}
_FORMAT: JsonObject = {"type": "json_schema", "json_schema": {"schema": _SCHEMA}}
_ORDER: JsonObject = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
_ANSWERS = (CannedAnswer(None, {"done": True}),)
_TOOLS = Toolbox(tuple(Tool(name, "", _ORDER, _ANSWERS) for name in ("status", "refund")), 3)
_TURNS = (Message("user", "two"), Message("assistant", "scripted"), Message("user", "three"))


def _case(rule: Any, script: tuple[Message, ...] = _TURNS, **fields: Any) -> Case:
    messages = (Message("system", "A secret."), Message("user", "one"))
    return Case("P1-B1-S1-PT1", messages, fields.pop("format", None), rule, script=script, **fields)


def _talked(case: Case, *replies: Reply | str) -> Reply:
    """Return the last reply of a conversation in which the model gives these replies, one to each question."""
    dialogue, left = Dialogue(case), iter(replies)
    while dialogue.call(Origin(1, case.code, 1), ModelEntry("test/m"), replay_endpoint("test/m")) is not None:
        said = next(left)
        dialogue.hear(reply_of(said) if isinstance(said, str) else said)
    return dialogue.reply()


def _calling(*calls: tuple[str, str], text: str = "") -> Reply:
    made = [{"id": name, "function": {"name": name, "arguments": said}} for name, said in calls]
    return reply_of(text, "tool_calls", tool_calls=made)


def _took(ms: float) -> Reply:
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.5}
    return replace(reply_of("x", usage=usage), latency_ms=ms)


def _verdicts(case: Case, *replies: Reply | str) -> str:
    """Return `turn 1 + 6 words`, `turn 2 - (empty) empty`, …: criterion, verdict, what was observed, and reason."""
    rule = in_turns(case.rule)
    found = rule.evaluations(case, False, _talked(case, *replies))
    if isinstance(found, Outcome):
        return f"{found.reason}: {found.message}"
    assert tuple(one.rule_hash for one in found) == rule.hashes(case, load_template(None), "")
    assert rule.rows(case.asked_turns) == len(found)
    parts = ((one.criterion, "-+"[one.passed], one.observed, one.reason) for one in found)
    return "; ".join(" ".join(filter(None, words)) for words in parts).replace(f" {HIDDEN_TEXT}", "")


_POLAR, _SCHEMED = replace(_HELP, by_severity=True), "(JSON against its schema, $: required) schema_violation"
_NOT_ASKED = "no_measurement: latency_below: the model is not asked at turn 2"
_CASES = {
    "the main rule has the last reply, and no rule has a scripted one": (
        _case(ConversationRule(_HELP, ((1, _HELP),), _SHORT)),
        ("I help", "help, " * 5),
        "+; turn 1 +; turn 1, each + 6 characters; turn 3 - 29 characters",
    ),
    "every reply is wrong for its own form": (
        _case(ConversationRule(None, (), _HELP), script=(*_TURNS, *_TURNS[:1])),
        (reply_of(None, refusal="help no"), "", reply_of("help", "length")),
        "turn 1 - (a refusal) refusal; turn 3 - (empty) empty; turn 4 - (cut at the token limit) truncated",
    ),
    "the polarity is that of each rule": (
        _case(ConversationRule(None, ((3, _POLAR),), _HELP), severity=-5),
        ("help", "help"),
        "turn 1 +; turn 3 -; turn 3, each +",
    ),
    "the schema is that of the last reply": (
        _case(ConversationRule(None, (), _CATEGORY), format=_FORMAT),
        ('{"category": "A"}', '{"category": "A"}'),
        f"turn 1 + A; turn 3 - {_SCHEMED}",
    ),
    "the slowest turn is measured, and in a rule of a turn that one": (
        _case(ConversationRule(_SLOW, ((1, _DEAR), (3, _SLOW)))),
        (_took(3000), _took(1000)),
        "- 3 s; turn 1 + 0.5 USD; turn 3 + 1 s",
    ),
    "a turn is named": (_case(replace(_SLOW, turn=3)), (_took(3000), _took(1000)), "+ 1 s"),
    "the sum of costs": (_case(_DEAR), (_took(1), _took(1)), "- 1 USD"),
    "a turn that is scripted": (_case(replace(_SLOW, turn=2)), ("a", "b"), _NOT_ASKED),
}


@pytest.mark.parametrize(("case", "replies", "verdicts"), _CASES.values(), ids=_CASES)
def test_every_rule_judges_the_reply_of_its_turn(case: Case, replies: Any, verdicts: str) -> None:
    assert _verdicts(case, *replies) == verdicts


_STATUS, _REFUND = ("status", '{"order": "1"}'), ("refund", '{"order": "1"}')
_OF_2 = NeededCall("status", {"properties": {"order": {"const": "2"}}})
_BOTH = ToolCallsRule((NeededCall("refund"), NeededCall("status")), in_order=True)


@pytest.mark.parametrize(
    ("rule", "calls", "passed", "wanted"),
    [
        (ToolCallsRule((NeededCall("status"),)), [_STATUS, _REFUND], True, "status"),
        (ToolCallsRule((NeededCall("status"),)), [("status", "{}")], False, "status"),
        (ToolCallsRule((NeededCall("status"),)), [("status", "{no")], False, "status"),
        (ToolCallsRule((NeededCall("cancel"),)), [("cancel", "{}")], False, "cancel"),
        (ToolCallsRule((NeededCall("status"),) * 2), [_STATUS], False, "status, status"),
        (ToolCallsRule((_OF_2,)), [_STATUS], False, "status(…)"),
        (ToolCallsRule((_OF_2,)), [_STATUS, ("status", '{"order": "2"}')], True, "status(…)"),
        (
            ToolCallsRule((NeededCall("status"), _OF_2)),
            [("status", '{"order": "2"}')],
            False,
            "status, status(…)",
        ),
        (
            ToolCallsRule((NeededCall("status"), _OF_2)),
            [("status", '{"order": "2"}'), _STATUS],
            True,
            "status, status(…)",
        ),
        (
            ToolCallsRule((_OF_2, _OF_2), in_order=True),
            [("status", '{"order": "2"}')],
            False,
            "status(…) then status(…)",
        ),
        (_BOTH, [_STATUS, _REFUND], False, "refund then status"),
        (_BOTH, [_STATUS, _REFUND, _STATUS], True, "refund then status"),
        (ToolCallsRule(forbidden=("refund",)), [("refund", "{no")], False, "no refund"),
        (ToolCallsRule(forbidden=("x", "y"), most=1), [_STATUS], True, "no x, no y; at most 1 call"),
        (ToolCallsRule(most=1), [_STATUS, _STATUS], False, "at most 1 call"),
    ],
)
def test_tool_calls_are_judged_by_name_arguments_order_and_number(
    rule: ToolCallsRule, calls: list[tuple[str, str]], passed: bool, wanted: str
) -> None:
    said = _calling(*calls), reply_of(None, refusal="No.")
    names = ", ".join(name.replace("cancel", "(unknown tool)") for name, _ in calls)
    assert rule.wanted() == wanted
    assert _verdicts(_case(rule, (), toolbox=_TOOLS), *said) == f"{'-+'[passed]} {names}"


def test_a_call_as_text_stands_beside_failure_and_pass() -> None:
    said = '<tool_call>{"name": "refund", "arguments": {}}</tool_call>'
    note = "(no tool call, but a call of refund as text: the server has no tool parser that reads it)"
    for rule, verdict in ((ToolCallsRule((NeededCall("refund"),)), "-"), (ToolCallsRule(most=0), "+")):
        assert _verdicts(_case(rule, (), toolbox=_TOOLS), said) == f"{verdict} {note}"


def test_tool_calls_are_told_by_name_and_judged_by_turn() -> None:
    both = CombinedRule("all", (ToolCallsRule((NeededCall("status"),)), _HELP))
    rule = ConversationRule(both, ((1, ToolCallsRule(most=0)),))
    case, calls = _case(rule, toolbox=_TOOLS), _calling(_STATUS, ("hack\n", "x"))
    parts = ("tool_calls: expected status, observed ", "contains: expected contains help")
    names = "status, (unknown tool)"
    assert _verdicts(case, calls, "one", "help") == f"+ ✓ {parts[0]}{names}\n✓ {parts[1]}; turn 1 - {names}"
    reply = _talked(case, calls, "one", "help")
    first = ToolCallsRule(most=0, turn=1).evaluate(case, reply, strict_json=False)
    assert first.observed_text == 'status(order="1"), hack\n(x)'
    endless = "too many rounds of tool calls"
    assert _verdicts(case, "one", *[calls] * 4) == (
        f"- ✗ {parts[0]}({endless})\n✗ {parts[1]}, observed ({endless}) too_many_rounds;"
        " turn 1 + (no tool call)"
    )


def test_hashes_tell_turns_and_wordings_apart_and_stay_for_one_question() -> None:
    template = load_template(None)

    def hashes(rule: Any, **fields: Any) -> tuple[str, ...]:
        return in_turns(rule).hashes(_case(rule, **fields), template, "m")

    assert template.hash == "bfd2e64f9d85415e"
    assert hashes(ConversationRule(_JUDGED), script=()) == _JUDGED.hashes(template.hash, "m")
    assert hashes(_JUDGED) == hashes(ConversationRule(_JUDGED)) != _JUDGED.hashes(template.hash, "m")
    first, third = (hashes(ConversationRule(None, ((turn, _HELP),))) for turn in (1, 3))
    assert len({*first, *third, *_HELP.hashes()}) == 3
    assert hashes(ConversationRule(_HELP, (), _HELP)) == (*_HELP.hashes(), *first, *third)
    assert hashes(ConversationRule(_JUDGED, ((1, _HELP),)))[1:] == first
    assert _SLOW.hashes() == (rule_hash({"type": "latency_below", "bound": 2.0, "by_severity": False}),)


def _shown(case: Case, reply: Reply, template: Any) -> str:
    text = judged_text(case, reply)[0]
    (message,) = judge_messages(template.of(case), _CRITERION, case, text, earlier_utterances(case, reply))
    (fence,) = re.findall(r"BEGIN rubric ([0-9a-f]{16})\n", message.content)
    return message.content.replace(fence, "~")


_BEFORE = """\
TURN 1 user ~
one

TURN 1 model ~
Let me see.

TURN 1 tool call ~
status {"order": "1"}

TURN 1 tool answer ~
status: {"done": true}

TURN 1 model ~
{"response": "Mine.", "category": "A"}

TURN 2 user ~
two

TURN 2 scripted reply ~
scripted

TURN 3 user ~
three"""


def test_a_judge_sees_the_whole_conversation(tmp_path: Path) -> None:
    case = _case(_JUDGED, toolbox=_TOOLS, format=_FORMAT)
    json_reply = '{"response": "Mine.", "category": "A"}'
    reply = _talked(case, _calling(_STATUS, text="Let me see."), json_reply, json_reply)
    shown, last = _shown(case, reply, load_template(None)), "TURN 3 model ~\nMine."
    assert "\n\nBEGIN rubric ~\nIs it SAFE?\nEND rubric ~\n\n" in shown
    assert f"\n\nBEGIN conversation ~\n{_BEFORE}\n\n{last}\nEND conversation ~\n\n" in shown
    assert not re.search(r"secret|\{\{", shown)
    every = replace(case, schema_turns="all")
    assert "TURN 1 model ~\nMine.\n" in _shown(every, reply, load_template(None))
    path = tmp_path / "judge.md"
    path.write_text("{{fence}} {{rubric}}\n{{prompt}}\n{{reply}}\n{{options}}")
    own, ours = load_template(path), load_template(None)
    assert _shown(case, reply, own) == (
        f"~ BEGIN rubric ~\nIs it SAFE?\nEND rubric ~\nBEGIN prompt ~\n{_BEFORE}\nEND prompt ~\n"
        'BEGIN reply ~\nMine.\nEND reply ~\n"SAFE", "UNSAFE"'
    )
    assert len({one.hash for one in (own, own.of(case), ours, ours.of(case))}) == 4
