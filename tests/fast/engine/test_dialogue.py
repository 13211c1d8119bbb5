"""Dialogues of cases: what is sent next, whatever the model replies."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from replies import reply_of

from pytest_helmbench.core.case import Case, CaseRule, Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.core.tools import CannedAnswer, Tool, Toolbox
from pytest_helmbench.engine.dialogue import Dialogue
from pytest_helmbench.gateway.attempt import prepared
from pytest_helmbench.gateway.call import Origin
from pytest_helmbench.gateway.providers.endpoints import replay_endpoint

_FORMAT: JsonObject = {"type": "json_schema", "json_schema": {"name": "reply", "strict": True, "schema": {}}}
_ORDER = Tool(
    "order_status",
    "Look up an order.",
    {
        "type": "object",
        "properties": {"order": {"type": "string"}},
        "required": ["order"],
        "additionalProperties": False,
    },
    (CannedAnswer({"order": "1001"}, {"status": "shipped"}), CannedAnswer(None, {"error": "no such order"})),
)


_BROKEN = ("{no", '{"order": NaN}', '{"order": ' + "[" * 100 + "]" * 100 + "}")


def _case(*script: tuple[str, str], toolbox: Toolbox | None = None, **fields: Any) -> Case:
    messages = (Message("system", "Be brief."), Message("user", "one"))
    said = tuple(Message(role, text) for role, text in script)
    return Case("P1-B1-S1-PT1", messages, _FORMAT, CaseRule(), script=said, toolbox=toolbox, **fields)


def _held(case: Case, answer: Callable[[int, dict[str, Any]], Reply]) -> tuple[list[dict[str, Any]], Reply]:
    """Return the bodies that were sent, and the last reply."""
    dialogue, bodies = Dialogue(case), list[dict[str, Any]]()
    while (
        call := dialogue.call(Origin(1, case.code, 1), ModelEntry("test/m"), replay_endpoint("test/m"))
    ) is not None:
        bodies.append(json.loads(prepared(call).encoded))
        assert (call.sequence, call.turn) == (len(bodies), call.turn if case.is_conversation else None)
        dialogue.hear(answer(len(bodies), bodies[-1]))
    return bodies, dialogue.reply()


def _calling(*calls: tuple[str, str], text: str | None = None) -> Reply:
    listed = [
        {"id": f"c{n}", "function": {"name": name, "arguments": said}} for n, (name, said) in enumerate(calls)
    ]
    return reply_of(text, "tool_calls", tool_calls=listed)


def test_scripted_replies_stand_where_the_model_is_not_asked() -> None:
    case = _case(("assistant", "scripted"), ("user", "two"), ("user", "three"))
    assert case.asked_turns == (2, 3)
    replies = [reply_of("<think>hm</think>\n\nsecond"), reply_of("third")]
    bodies, reply = _held(case, lambda number, _body: replies[number - 1])
    begun = [("system", "Be brief."), ("user", "one"), ("assistant", "scripted"), ("user", "two")]
    went_on = [*begun, ("assistant", "second"), ("user", "three")]
    assert [[tuple(one.values()) for one in body["messages"]] for body in bodies] == [begun, went_on]
    assert ["response_format" in body for body in bodies] == [False, True]
    assert [(one.turn, one.text) for one in reply.turns] == [(2, "second"), (3, "third")]
    assert [message.content for message in reply.said[-2:]] == ["three", "third"]


def test_every_form_of_a_reply_goes_on_and_is_paid() -> None:
    usage = {"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5}
    replies = [
        reply_of("", usage=usage),
        reply_of(None, refusal="I cannot.", usage=usage),
        reply_of("cut o", "length", usage=usage),
        reply_of("end", usage=usage),
    ]
    case = _case(*[("user", "more")] * 3, schema_turns="all")
    bodies, reply = _held(case, lambda number, _body: replies[number - 1])
    told = [message["content"] for message in bodies[-1]["messages"] if message["role"] == "assistant"]
    assert told == ["(no reply)", "I cannot.", "cut o"]
    assert [one.form_fault for one in reply.turns] == ["empty", "refusal", "truncated", None]
    assert all("response_format" in body for body in bodies)
    assert (reply.usage.prompt_tokens, reply.usage.cost_usd) == (40, 2.0)


def test_tools_are_answered_until_the_model_replies() -> None:
    calls = [
        _calling(
            ("order_status", '{"order": "1001"}'), ("order_status", '{"order": "7"}'), text="Let me see."
        ),
        _calling(*[("order_status", said) for said in ('{"number": 1}', *_BROKEN)], ("refund", "{}")),
        reply_of("It was shipped."),
    ]
    bodies, reply = _held(_case(toolbox=Toolbox((_ORDER,))), lambda number, _body: calls[number - 1])
    assert bodies[0]["tools"][0]["function"]["name"] == "order_status"
    shown = [(one["role"], one.get("tool_call_id"), one["content"]) for one in bodies[1]["messages"][2:]]
    assert shown == [
        ("assistant", None, "Let me see."),
        ("tool", "c0", '{"status": "shipped"}'),
        ("tool", "c1", '{"error": "no such order"}'),
    ]
    faults = ["", "", *["broken_arguments"] * 4, "unknown_tool"]
    assert [made.fault for made in reply.tool_calls] == faults
    (sent,) = [one["tool_calls"] for one in bodies[2]["messages"][5:] if "tool_calls" in one]
    assert [call["function"]["arguments"] for call in sent] == ['{"number": 1}', *["{}"] * 4]
    told = [json.loads(made.answer)["error"] for made in reply.tool_calls[2:]]
    assert told[0].startswith("the arguments break the schema of order_status: $")
    assert {*told[1:4]} == {"the arguments are not a JSON object (100 levels, each key once)"}
    assert told[4] == "there is no tool 'refund'; the tools are: order_status"
    assert (reply.text, reply.form_fault, len(reply.turns)) == ("It was shipped.", None, 1)


def test_calls_without_end_end_the_turn() -> None:
    case = _case(("user", "two"), toolbox=Toolbox((_ORDER,), max_rounds=2))
    last = reply_of("done")
    calling = _calling(("order_status", '{"order": "1"}'), text="still")
    bodies, reply = _held(case, lambda number, _body: calling if number < 4 else last)
    assert len(bodies) == 4
    assert [one.form_fault for one in reply.turns] == ["too_many_rounds", None]
    assert [message["content"] for message in bodies[-1]["messages"][-2:]] == ["still", "two"]
    assert [made.turn for made in reply.tool_calls] == [1, 1]


def test_one_question_is_the_reply_as_it_came() -> None:
    came = reply_of("plain")
    bodies, reply = _held(_case(), lambda _number, _body: came)
    assert reply is came
    assert len(bodies) == 1
    assert "tools" not in bodies[0]


def test_fields_of_the_server_go_back_in_the_next_round_as_they_came() -> None:
    details = [{"type": "reasoning.encrypted", "data": "E"}]
    call = {
        "id": "c",
        "seal": 7,
        "function": {"name": "order_status", "arguments": None, "thought_signature": "S"},
    }
    calling = reply_of(
        "<think>hm</think>Let me see.",
        "tool_calls",
        reasoning_content="Look it up.",
        reasoning_details=details,
        annotations=[],
        tool_calls=[call, call],
    )
    replies = [calling, reply_of("done", reasoning_content="Enough.", seal="T"), reply_of("bye")]
    case = _case(("user", "two"), toolbox=Toolbox((_ORDER,)))
    bodies, reply = _held(case, lambda number, _body: replies[number - 1])
    function = {"name": "order_status", "arguments": "{}", "thought_signature": "S"}
    sent = {"seal": 7, "type": "function", "function": function}
    assert bodies[1]["messages"][2] == {
        "role": "assistant",
        "content": "<think>hm</think>Let me see.",
        "reasoning_content": "Look it up.",
        "reasoning_details": details,
        "tool_calls": [{**sent, "id": "c"}, {**sent, "id": "c_2"}],
    }
    assert [one["tool_call_id"] for one in bodies[1]["messages"][3:]] == ["c", "c_2"]
    assert bodies[2]["messages"][-2] == {"role": "assistant", "content": "done"}
    assert [message.content for message in reply.said[2:3]] == ["Let me see."]
