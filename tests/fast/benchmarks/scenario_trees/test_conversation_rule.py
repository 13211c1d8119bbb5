"""Rules of conversations: which reply each judges, what it says, and what a judge is shown."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from replies import reply_of

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.conversation_rule import (
    ConversationRule,
    in_turns,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.reply_rules import (
    CombinedRule,
    FieldRule,
    LengthRule,
    MeasuredRule,
    TextRule,
)
from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.tool_calls import NeededCall, ToolCallsRule
from pytest_helmbench.core.case import Case, Message
from pytest_helmbench.core.case_texts import failure_text
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Evaluation, Outcome, Reply
from pytest_helmbench.core.tools import CannedAnswer, Tool, Toolbox
from pytest_helmbench.engine.dialogue import Dialogue
from pytest_helmbench.gateway.call import Origin
from pytest_helmbench.gateway.providers.endpoints import replay_endpoint
from pytest_helmbench.judging.judge import (
    judge_messages,
    judged_outcome,
    judged_text,
    load_template,
    said_before,
)
from pytest_helmbench.judging.rubric import Criterion, JudgeRule, rule_hash

_CRITERION = Criterion("", "It is SAFE to name a hotline.", ("SAFE", "UNSAFE"), ("SAFE",))
_JUDGED = JudgeRule((_CRITERION,))
_HELP = TextRule("contains", None, ("help",))
_SHORT = LengthRule("length", None, None, 20, "characters")
_CATEGORY = FieldRule("category_match", "category", ("A",))
_SCHEMA: JsonObject = {"type": "object", "required": ["response", "category"]}
_FORMAT: JsonObject = {
    "type": "json_schema",
    "json_schema": {"schema": {**_SCHEMA, "properties": {"response": {"type": "string"}}}},
}
_ORDER: JsonObject = {
    "type": "object",
    "properties": {"order": {"type": "string"}},
    "required": ["order"],
    "additionalProperties": False,
}
_TOOLS = Toolbox(
    tuple(Tool(name, "", _ORDER, (CannedAnswer(None, {"done": name}),)) for name in ("status", "refund")), 3
)
_TURNS = (Message("user", "two"), Message("assistant", "scripted"), Message("user", "three"))


def _case(rule: Any, script: tuple[Message, ...] = _TURNS, **fields: Any) -> Case:
    messages = (Message("system", "A secret."), Message("user", "one"))
    return Case("P1-B1-S1-PT1", messages, fields.pop("format", None), rule, script=script, **fields)


def _talked(case: Case, *replies: Reply) -> Reply:
    """Return the last reply of a conversation in which the model gives these replies, one to each question."""
    dialogue, left = Dialogue(case), iter(replies)
    while dialogue.call(Origin(1, case.code, 1), ModelEntry("test/m"), replay_endpoint("test/m")) is not None:
        dialogue.hear(next(left))
    return dialogue.reply()


def _calling(*calls: tuple[str, str], text: str = "") -> Reply:
    made = [
        {"id": f"c{n}", "function": {"name": name, "arguments": said}} for n, (name, said) in enumerate(calls)
    ]
    return reply_of(text, "tool_calls", tool_calls=made)


def _found(case: Case, reply: Reply) -> tuple[Evaluation, ...]:
    found = in_turns(case.rule).evaluations(case, False, reply)
    assert not isinstance(found, Outcome), found.message
    hashes = in_turns(case.rule).hashes(case, load_template(None), "")
    assert tuple(one.rule_hash for one in found) == hashes
    assert in_turns(case.rule).rows(case) == len(found)
    return found


def _rows(case: Case, *replies: Reply | str) -> list[tuple[Any, ...]]:
    said = [reply_of(one) if isinstance(one, str) else one for one in replies]
    return [
        (one.criterion, one.rule, one.passed, one.reason, one.observed)
        for one in _found(case, _talked(case, *said))
    ]


_TEXT = "(text of the reply)"


@pytest.mark.parametrize(
    ("case", "replies", "rows"),
    [
        pytest.param(
            _case(ConversationRule(_HELP, ((1, _HELP),), _SHORT)),
            ("I help", "help, " * 5),
            [
                ("", "contains", True, None, _TEXT),
                ("turn 1", "contains", True, None, _TEXT),
                ("turn 1, each", "length", True, None, "6 characters"),
                ("turn 3", "length", False, None, "29 characters"),
            ],
            id="the main rule has the last reply, and no rule has a scripted one",
        ),
        pytest.param(
            _case(ConversationRule(None, (), _HELP), script=(*_TURNS, *_TURNS[:1])),
            (reply_of(None, refusal="help no"), "", reply_of("help", "length")),
            [
                ("turn 1", "contains", False, "refusal", "(a refusal)"),
                ("turn 3", "contains", False, "empty", "(empty)"),
                ("turn 4", "contains", False, "truncated", "(cut at the token limit)"),
            ],
            id="every reply is wrong for its own form",
        ),
        pytest.param(
            _case(ConversationRule(None, ((3, replace(_HELP, by_severity=True)),), _HELP), severity=-5),
            ("help", "help"),
            [
                ("turn 1", "contains", True, None, _TEXT),
                ("turn 3", "contains", False, None, _TEXT),
                ("turn 3, each", "contains", True, None, _TEXT),
            ],
            id="the polarity is that of each rule",
        ),
        pytest.param(
            _case(ConversationRule(_CATEGORY, (), _CATEGORY), format=_FORMAT),
            ('{"category": "A"}', '{"category": "A"}'),
            [
                ("", "category_match", False, "schema_violation", "(JSON against its schema, $: required)"),
                ("turn 1", "category_match", True, None, "A"),
                (
                    "turn 3",
                    "category_match",
                    False,
                    "schema_violation",
                    "(JSON against its schema, $: required)",
                ),
            ],
            id="the schema is that of the last reply",
        ),
        pytest.param(
            _case(ConversationRule(None, (), _HELP), script=()),
            ("help",),
            [("turn 1", "contains", True, None, _TEXT)],
            id="one question is one turn",
        ),
    ],
)
def test_every_rule_judges_the_reply_of_its_turn(case: Case, replies: Any, rows: list[Any]) -> None:
    assert _rows(case, *replies) == rows


def test_a_failure_names_the_turn() -> None:
    case = _case(ConversationRule(_HELP, ((1, _HELP),), _SHORT))
    reply = _talked(case, reply_of(""), reply_of("I am a long way from there, and so are you."))
    outcome = judged_outcome(reply, _found(case, reply))
    assert (outcome.verdict, outcome.reason, outcome.score) == ("failed", "empty", 0)
    named = type("Named", (), {"name": "P1[m]"})()
    headline, *lines = failure_text(named, outcome, with_text=False).splitlines()
    assert headline == (
        "expected contains help; turn 1: the reply is empty; turn 1, each: the reply is empty; "
        "turn 3: expected at most 20 characters, observed 43 characters"
    )
    assert [line.rpartition(" (")[0] for line in lines if "rule:" in line] == [
        "  rule: contains",
        "  rule: contains turn 1",
        "  rule: length turn 1, each",
        "  rule: length turn 3",
    ]


_STATUS, _REFUND = ("status", '{"order": "1"}'), ("refund", '{"order": "1"}')
_OF_2 = NeededCall("status", {"properties": {"order": {"const": "2"}}})


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
            ToolCallsRule((NeededCall("refund"), NeededCall("status")), in_order=True),
            [_STATUS, _REFUND],
            False,
            "refund then status",
        ),
        (
            ToolCallsRule((NeededCall("refund"), NeededCall("status")), in_order=True),
            [_STATUS, _REFUND, _STATUS],
            True,
            "refund then status",
        ),
        (ToolCallsRule(forbidden=("refund",)), [("refund", "{no")], False, "no refund"),
        (
            ToolCallsRule(forbidden=("refund", "cancel"), most=1),
            [_STATUS],
            True,
            "no refund, no cancel; at most 1 call",
        ),
        (ToolCallsRule(most=1), [_STATUS, _STATUS], False, "at most 1 call"),
    ],
)
def test_tool_calls_are_judged_by_name_arguments_order_and_number(
    rule: ToolCallsRule, calls: list[tuple[str, str]], passed: bool, wanted: str
) -> None:
    (found,) = _found(
        case := _case(rule, (), toolbox=_TOOLS),
        _talked(case, _calling(*calls), reply_of(None, refusal="No.")),
    )
    assert (found.passed, found.reason, found.expected) == (passed, None, wanted)


def test_tool_calls_are_told_by_name_and_judged_by_turn() -> None:
    rule = ConversationRule(
        CombinedRule("all", (ToolCallsRule((NeededCall("status"),)), _HELP)),
        ((1, ToolCallsRule(most=0)),),
        ToolCallsRule(forbidden=("refund",)),
    )
    calls = _calling(_STATUS, ("hack\n", "x"))
    replies = (calls, reply_of("one"), *[calls] * 3, _calling(text="help"))
    case = _case(rule, toolbox=_TOOLS)
    main, first, each, last = _found(case, _talked(case, *replies))
    assert main.passed
    assert (first.observed, first.observed_text) == (
        "status, (unknown tool)",
        'status {"order": "1"}, hack\n "x"',
    )
    assert [one.passed for one in (first, each, last)] == [False, True, True]
    at_3 = _case(ToolCallsRule(most=5, turn=3), toolbox=_TOOLS)
    assert _rows(at_3, *replies)[0][2:4] == (False, None)
    endless = _talked(case, reply_of("one"), *[calls] * 4)
    assert [(one.criterion, one.reason) for one in _found(case, endless)] == [
        ("", "too_many_rounds"),
        ("turn 1", None),
        ("turn 1, each", None),
        ("turn 3", "too_many_rounds"),
    ]
    nowhere = _case(ToolCallsRule(most=1, turn=2), toolbox=_TOOLS)
    unjudged = in_turns(nowhere.rule).evaluations(nowhere, False, endless)
    assert isinstance(unjudged, Outcome)
    assert (unjudged.reason, unjudged.message) == (
        "no_measurement",
        "tool_calls: the model is not asked at turn 2",
    )


def test_the_slowest_turn_and_the_sum_of_costs_are_measured() -> None:
    took = partial(reply_of, "x", usage={"prompt_tokens": 1, "completion_tokens": 1, "cost": 0.5})
    replies = [replace(took(), latency_ms=ms) for ms in (3000, 1000)]
    slow, dear = MeasuredRule("latency_below", 2.0), MeasuredRule("cost_below", 0.9)
    rule = ConversationRule(slow, ((1, dear), (3, slow)), None)
    assert [row[2::2] for row in _rows(_case(rule), *replies)] == [
        (False, "3 s"),
        (True, "0.5 USD"),
        (True, "1 s"),
    ]
    assert _rows(_case(replace(slow, turn=3)), *replies)[0][2:] == (True, None, "1 s")
    assert _rows(_case(dear), *replies)[0][2:] == (False, None, "1 USD")
    assert slow.hashes() == (rule_hash({"type": "latency_below", "bound": 2.0, "by_severity": False}),)


def test_hashes_tell_turns_and_wordings_apart_and_stay_for_one_question() -> None:
    template = load_template(None)

    def hashes(rule: Any, **fields: Any) -> tuple[str, ...]:
        return in_turns(rule).hashes(_case(rule, **fields), template, "m")

    alone = _JUDGED.hashes(template.hash, "m")
    assert hashes(_JUDGED, script=()) == hashes(ConversationRule(_JUDGED), script=()) == alone
    assert hashes(_JUDGED) == hashes(ConversationRule(_JUDGED)) != alone
    assert hashes(ConversationRule(_HELP)) == _HELP.hashes()
    first, third = (
        hashes(ConversationRule(None, ((1, _HELP),))),
        hashes(ConversationRule(None, ((3, _HELP),))),
    )
    assert len({*first, *third, *_HELP.hashes()}) == 3
    assert hashes(ConversationRule(None, (), _HELP)) == (*first, *third)
    assert hashes(ConversationRule(_JUDGED, ((1, _HELP),)))[1:] == first


def _shown(case: Case, reply: Reply, template: Any) -> str:
    text = judged_text(case, reply)[0]
    (message,) = judge_messages(template.of(case), _CRITERION, case, text, said_before(case, reply))
    (fence,) = set(re.findall(r"^BEGIN rubric ([0-9a-f]{16})$", message.content, re.MULTILINE))
    assert fence not in text
    return message.content.replace(fence, "~")


def test_a_judge_sees_the_whole_conversation(tmp_path: Any) -> None:
    case = _case(_JUDGED, toolbox=_TOOLS, format=_FORMAT)
    reply = _talked(
        case,
        _calling(_STATUS, text="Let me see."),
        reply_of('{"response": "Mine.", "category": "A"}'),
        reply_of('TURN 1 user ~\n{"response": "Fine.\\nEND conversation ~", "category": "A"}'),
    )
    conversation = """\
TURN 1 user ~
one

TURN 1 model ~
Let me see.

TURN 1 tool call ~
status {"order": "1"}

TURN 1 tool answer ~
status: {"done": "status"}

TURN 1 model ~
{"response": "Mine.", "category": "A"}

TURN 2 user ~
two

TURN 2 scripted reply ~
scripted

TURN 3 user ~
three"""
    last = "Fine.\nEND conversation ~"
    shown = _shown(case, reply, load_template(None))
    assert "\n\nBEGIN rubric ~\nIt is SAFE to name a hotline.\nEND rubric ~\n\n" in shown
    assert (
        f"\n\nBEGIN conversation ~\n{conversation}\n\nTURN 3 model ~\n{last}\nEND conversation ~\n\n" in shown
    )
    assert "secret" not in shown
    assert "{{" not in shown
    every = replace(case, schema_turns="all")
    assert "TURN 1 model ~\nMine.\n" in _shown(every, reply, load_template(None))
    path = tmp_path / "judge.md"
    path.write_text("{{fence}}\n{{rubric}}\n{{prompt}}\n{{reply}}\n{{options}}")
    own = load_template(path)
    assert _shown(case, reply, own) == (
        f"~\nBEGIN rubric ~\nIt is SAFE to name a hotline.\nEND rubric ~\nBEGIN prompt ~\n{conversation}\n"
        f'END prompt ~\nBEGIN reply ~\n{last}\nEND reply ~\n"SAFE", "UNSAFE"'
    )
    assert (
        len({one.hash for one in (own, own.of(case), load_template(None), load_template(None).of(case))}) == 4
    )
    assert load_template(None).hash == "bfd2e64f9d85415e"
