"""Tool calls of servers: every shape is a row of a table, whether it comes whole or as a stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from replies import reply_of

from pytest_helmbench.core.json_types import same_json
from pytest_helmbench.core.tools import CannedAnswer, Tool, Toolbox, tool_called_in_text, tool_calls
from pytest_helmbench.gateway.replies import parse_reply

_BOAT = Toolbox((Tool("rent", "", {"type": "object"}, (CannedAnswer(None, "yes"),)),))


def _function(arguments: Any, name: str = "rent", **more: Any) -> dict[str, Any]:
    return {"type": "function", "function": {"name": name, "arguments": arguments}, **more}


def _read(message: dict[str, Any], *taken: str) -> list[tuple[str, str, Any, str]]:
    calls = tool_calls(message, 3, taken)
    made = [_BOAT.answered(call, 1) for call in calls]
    return [(call.id, one.name, one.arguments, one.fault) for call, one in zip(calls, made, strict=True)]


WHOLE: dict[str, tuple[dict[str, Any], list[tuple[str, str, Any, str]]]] = {
    "as documented": ({"tool_calls": [_function('{"seats": 2}', id="a")]}, [("a", "rent", {"seats": 2}, "")]),
    "arguments as an object": (
        {"tool_calls": [_function({"seats": 2})]},
        [("call_3_1", "rent", {"seats": 2}, "")],
    ),
    "arguments null": ({"tool_calls": [_function(None)]}, [("call_3_1", "rent", {}, "")]),
    "arguments of no text": ({"tool_calls": [_function("  ")]}, [("call_3_1", "rent", {}, "")]),
    "arguments null as text": ({"tool_calls": [_function("null")]}, [("call_3_1", "rent", {}, "")]),
    "arguments absent": ({"tool_calls": [{"function": {"name": "rent"}}]}, [("call_3_1", "rent", {}, "")]),
    "without envelope": (
        {"tool_calls": [{"name": "rent", "parameters": {"a": 1}}]},
        [("call_3_1", "rent", {"a": 1}, "")],
    ),
    "one call, not a list": ({"tool_calls": _function("{}")}, [("call_3_1", "rent", {}, "")]),
    "the older form": (
        {"function_call": {"name": "rent", "arguments": "{}"}},
        [("call_3_1", "rent", {}, "")],
    ),
    "both forms of one call": (
        {"tool_calls": [_function("{}", id="a")], "function_call": {"name": "rent", "arguments": "{}"}},
        [("a", "rent", {}, "")],
    ),
    "an id that comes again": (
        {"tool_calls": [_function("{}", id="a"), _function("{}", id="a"), _function("{}", id="b")]},
        [("a_2", "rent", {}, ""), ("a_3", "rent", {}, ""), ("b", "rent", {}, "")],
    ),
    "a key that stands twice": (
        {"tool_calls": [_function('{"seats": 1, "seats": 2}')]},
        [("call_3_1", "rent", '{"seats": 1, "seats": 2}', "broken_arguments")],
    ),
    "without a name": (
        {"tool_calls": ["rent()", {"function": {"arguments": "{}"}}]},
        [
            ("call_3_1", "", '"rent()"', "unreadable_call"),
            ("call_3_2", "", {"function": {"arguments": "{}"}}, "unreadable_call"),
        ],
    ),
    "no call": ({"content": "Hello.", "tool_calls": None}, []),
}


@pytest.mark.parametrize("shape", WHOLE)
def test_calls_of_every_shape_are_read(shape: str) -> None:
    message, calls = WHOLE[shape]
    assert _read(message, *(["a"] if "again" in shape else [])) == calls


def _part(arguments: Any = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"function": {key: value for key, value in function.items() if value is not None}, **more}


_TWO = [("a", "rent", {"seats": 1}, ""), ("b", "rent", {"seats": 2}, "")]
_TWO_WITHOUT_ID = [("call_3_1", "rent", {"seats": 1}, ""), ("call_3_2", "rent", {"seats": 2}, "")]
STREAMED: dict[str, tuple[list[dict[str, Any]], list[tuple[str, str, Any, str]]]] = {
    "as documented": (
        [
            _part("", "rent", index=0, id="a"),
            _part('{"sea', index=0),
            _part("", "rent", index=1, id="b"),
            _part('ts": 1}', index=0),
            _part('{"seats": 2}', index=1),
        ],
        _TWO,
    ),
    "index 0 everywhere": (
        [
            _part('{"seats"', "rent", index=0, id="a"),
            _part(": 1}", index=0),
            _part('{"seats": 2}', "rent", index=0, id="b"),
        ],
        _TWO,
    ),
    "index 0 everywhere, no ids": (
        [_part('{"seats": 1}', "rent", index=0, id=""), _part('{"seats": 2}', "rent", index=0, id="")],
        _TWO_WITHOUT_ID,
    ),
    "no index": (
        [_part('{"seats"', "rent", id="a"), _part(": 1}"), _part('{"seats": 2}', "rent", id="b")],
        _TWO,
    ),
    "no index, no ids": ([_part({"seats": 1}, "rent"), _part({"seats": 2}, "rent")], _TWO_WITHOUT_ID),
    "name and id in every part": (
        [_part('{"seats"', "rent", index=0, id="a"), _part(": 1}", "rent", index=0, id="a")],
        _TWO[:1],
    ),
    "a new id in every part": (
        [_part('{"seats"', "rent", index=0, id="a"), _part(": 1}", index=0, id="z")],
        _TWO[:1],
    ),
    "null arguments": ([_part(None, "rent", index=0, id="a")], [("a", "rent", {}, "")]),
    "whole, without envelope": ([{"name": "rent", "arguments": {"seats": 1}, "id": "a"}], _TWO[:1]),
}


def _streamed(*deltas: dict[str, Any]) -> dict[str, Any]:
    chunks = [{"choices": [{"index": 0, "delta": delta}]} for delta in deltas]
    chunks.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]})
    body = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks)
    reply = parse_reply(200, f"{body}data: [DONE]\n\n".encode())
    return dict(getattr(reply, "message"))  # noqa: B009


@pytest.mark.parametrize("shape", STREAMED)
def test_calls_of_every_stream_are_put_together(shape: str) -> None:
    parts, calls = STREAMED[shape]
    assert _read(_streamed(*({"tool_calls": [part]} for part in parts))) == calls
    assert _read(_streamed({"tool_calls": parts})) == calls


def test_fields_of_the_server_are_put_together_too() -> None:
    call = _part("{}", "rent", index=0, id="a", extra_content={"seal": "S1"})
    thought = {"type": "reasoning.text", "index": 0, "text": "I ", "id": "r"}
    message = _streamed(
        {"role": "assistant", "reasoning_content": "Rent", "reasoning_details": [thought]},
        {
            "role": "assistant",
            "reasoning_content": "ing.",
            "reasoning_details": [{**thought, "text": "rent."}],
        },
        {"reasoning_details": [{"type": "reasoning.encrypted", "index": 0, "data": "E"}], "seal": "S2"},
        {"tool_calls": [call]},
    )
    assert (message["reasoning_content"], message["seal"]) == ("Renting.", "S2")
    assert message["reasoning_details"] == [
        {**thought, "text": "I rent."},
        {"type": "reasoning.encrypted", "index": 0, "data": "E"},
    ]
    assert tool_calls(message, 1)[0].wire()["extra_content"] == {"seal": "S1"}


TEXTS = {
    '<tool_call>\n{"name": "rent", "arguments": {}}\n</tool_call>': "rent",
    "<function=rent><parameter=seats>2</parameter></function>": "rent",
    '[TOOL_CALLS] rent{"seats": 2}': "rent",
    '```json\n{"name": "rent", "arguments": {"seats": 2}}\n```': "rent",
    '{"function": "rent", "parameters": {}}': "rent",
    "```tool_code\nprint(rent(seats=2))\n```": "rent",
    "I do it.\nrent(seats=2)": "rent",
    "to=functions.rent {}": "rent",
    "You can rent (cheaply) a boat.": None,
    '<tool_call>{"name": "sell"}</tool_call>': None,
    '{"name": "Anna", "wants": "rent"}': None,
}


@pytest.mark.parametrize("text", TEXTS)
def test_calls_that_stand_in_a_text_are_seen(text: str) -> None:
    assert tool_called_in_text(text, ["lend", "rent"]) == TEXTS[text]
    assert tool_calls(reply_of(text).message, 1) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (1, True, False),
        (0, False, False),
        (1, 1.0, True),
        ({"a": [1]}, {"a": [True]}, False),
        ({"a": [1, None]}, {"a": [1, None]}, True),
        ({"a": 1}, {"a": 1, "b": 1}, False),
        ([1], [1, 1], False),
        ("1", 1, False),
    ],
)
def test_values_are_the_same_as_json(one: Any, other: Any, same: bool) -> None:
    answer = CannedAnswer({"value": one}, "found")
    assert same_json(one, other) is same_json(other, one) is answer.fits({"value": other}) is same
