"""Streams pass as they come, with their token counts and their breaks, and are replayed at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from provider import Provider
from relays import body, client_of, converse, error_of, open_relay, recording_gateway, relay_before
from waiting import until, until_async

from pytest_helmbench.gateway.backend import CacheMode
from pytest_helmbench.gateway.relay.relay import RelayAddress
from pytest_helmbench.gateway.relay.server import RelayBounds

_USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
_DONE = b"data: [DONE]\n\n"
_ASKED: Any = {"model": "m", "messages": [{"role": "user", "content": "Hello"}], "stream": True}


def _event(*choices: Any, **more: Any) -> bytes:
    document = {"id": "c", "object": "chat.completion.chunk", "choices": choices, **more}
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def _delta(text: str, reason: str | None = None, **more: Any) -> bytes:
    return _event({"index": 0, "delta": {"content": text}, "finish_reason": reason}, **more)


_TEXTS = [f"w{number} " for number in range(5)]
_WORDS = [_delta(text) for text in _TEXTS]
_STREAM = (*_WORDS, _delta("", "stop"), _event(usage=_USAGE), _DONE)


class _OneByOne(tuple[bytes, ...]):
    """Events, each of which is sent when those before it have arrived."""

    seen: list[object]

    def __getitem__(self, number: Any) -> Any:
        until(lambda: len(self.seen) >= min(number, len(_WORDS)), "the events before it arrive")
        return super().__getitem__(number)


async def _chunks(address: RelayAddress, seen: list[Any]) -> None:
    async with client_of(address).with_options(max_retries=0) as client:
        async for chunk in await client.chat.completions.create(**_ASKED):
            seen.append(chunk)  # noqa: PERF401 - the provider waits for each


async def test_events_arrive_at_the_pace_of_the_model_and_its_counts_are_metered(provider: Provider) -> None:
    events = _OneByOne(_STREAM)
    seen: list[Any] = []
    events.seen = seen
    provider.answers(events=events)

    async with open_relay(provider.url) as relay:
        item, address = await relay.item()
        await _chunks(address, seen)
        assert [chunk.choices[0].delta.content for chunk in seen] == [*_TEXTS, ""]
        assert (item.totals.usage.prompt_tokens, item.totals.usage.completion_tokens) == (7, 5)
        assert item.totals.answered == 1
    (record,) = relay.coordinator.attempts
    assert record.response_body == b"".join(_STREAM)
    assert provider.requests[0].body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("asked", [False, True])
async def test_token_counts_are_shown_to_a_client_that_asks_for_them(
    provider: Provider, *, asked: bool
) -> None:
    provider.answers(events=(_delta("a", usage=None), *_STREAM))
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if asked else {}
    async with open_relay(provider.url) as relay:
        _, address = await relay.item()
        shown = (await relay.send(address, json=body(stream=True, **options))).body
    assert (b'"usage"' in shown) is asked
    assert shown.endswith(_DONE)


async def test_a_stream_that_breaks_off_is_a_fault_that_is_not_tried_again(provider: Provider) -> None:
    provider.answers(events=_WORDS, breaks_off=True)

    async with open_relay(provider.url) as relay:
        item, address = await relay.item()
        with pytest.raises(openai.APIError):
            await _chunks(address, [])
        with pytest.raises(aiohttp.ClientPayloadError):  # as it broke off, so it ends: no end of the body
            await relay.send(address, json=body("again", stream=True))
        faults = [str(fault).split(" (")[0] for fault in item.totals.open_faults]
        assert faults == ["the provider's answer broke off before its end"] * 2
        assert item.totals.answered == 0
    assert [record.unanswered for record in relay.coordinator.attempts] == [True, True]
    assert provider.count == 2


async def test_a_client_that_leaves_a_stream_has_had_its_answer(provider: Provider) -> None:
    provider.answers(events=_STREAM * 50, pace_s=0.02)

    async with open_relay(provider.url) as relay:
        item, address = await relay.item(grace_s=0.05)
        async with client_of(address) as client:
            stream = await client.chat.completions.create(**_ASKED)
            async for _ in stream:
                break
            await stream.close()
        await until_async(lambda: not relay.coordinator.gate.in_flight)
        assert (item.totals.open_faults, item.totals.answered) == ((), 1)
    (record,) = relay.coordinator.attempts
    assert (record.error, record.unanswered) == ("cancelled", True)


async def test_a_stream_is_replayed_at_once(provider: Provider, tmp_path: Path) -> None:
    provider.answers(events=_STREAM, pace_s=0.05)

    async def answer(mode: CacheMode) -> tuple[bytes, int]:
        async with recording_gateway(tmp_path / "helmbench.db", mode) as (gateway, run_id):
            item = converse(gateway, provider.url, run_id=run_id)
            async with relay_before(item) as send:
                return (await send(body(stream=True))).body, item.totals.recalled

    live, recalled = await answer(CacheMode.OFF)
    assert recalled == 0
    assert await answer(CacheMode.ONLY) == (live, 1)
    assert provider.count == 1


async def test_a_reply_that_came_as_a_whole_says_the_same_as_a_stream(provider: Provider) -> None:
    calls: Any = [
        {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
        {
            "id": "b",
            "index": 9,
            "type": "function",
            "function": {"name": "say", "arguments": '{"text": "%s"}' % ("ü" * 20_000)},
        },
        {"id": "c", "type": "custom", "custom": {"name": "free", "input": "text"}},
    ]
    message: Any = {
        "role": "assistant",
        "content": "Grüße 🙂\n" * 2_000,
        "reasoning": "Let me see. " * 500,
        "reasoning_details": [{"type": "reasoning.text", "text": "Let me see."}],
    }
    choice: Any = {"index": 0, "finish_reason": "tool_calls", "logprobs": {"content": [], "refusal": None}}
    reply = {**message, "refusal": None, "tool_calls": calls}
    document = {"id": "chatcmpl-7", "object": "chat.completion", "model": "test/served", "usage": _USAGE}
    provider.answers(body={**document, "choices": [{**choice, "message": reply}]})
    seen: list[Any] = []
    async with open_relay(provider.url) as relay:
        _, address = await relay.item()
        asked = body(stream=True, stream_options={"include_usage": True})
        answered = await relay.send(address, json=asked)
        await _chunks(address, seen)

    assert answered.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    *events, done, end = answered.body.split(b"\n\n")
    assert (done, end) == (b"data: [DONE]", b"")
    first, last, counts = chunks = [json.loads(event.removeprefix(b"data: ")) for event in events]
    heads = {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks}
    assert heads == {("chatcmpl-7", "chat.completion.chunk", "test/served")}
    delta = first["choices"][0]["delta"]
    assert delta == {**message, "tool_calls": [{**call, "index": n} for n, call in enumerate(calls)]}
    assert first["choices"][0]["finish_reason"] is None
    assert {name: last["choices"][0][name] for name in choice} == choice
    assert (counts["choices"], counts["usage"]) == ([], _USAGE)
    assert "".join(chunk.choices[0].delta.content or "" for chunk in seen) == message["content"]
    assert all(chunk.usage is None for chunk in seen)
    assert seen[-1].choices[0].finish_reason == "tool_calls"


async def test_a_stream_shows_signs_of_life_and_reports_a_late_fault_in_an_event(provider: Provider) -> None:
    provider.answers(times=1, status=400, latency_s=0.5)
    provider.answers(times=1, status=400)
    provider.answers(times=1, status=400, latency_s=0.5)

    async with open_relay(provider.url, bounds=RelayBounds(heartbeat_s=0.15)) as relay:
        item, address = await relay.item()
        late = await relay.send(address, json=body(stream=True))
        *beats, event, end = late.body.split(b"\n\n")
        assert (late.status, set(beats), end) == (200, {b": waiting for the model"}, b"")
        assert len(beats) >= 2
        kind, _, data = event.partition(b"\ndata: ")
        assert (kind, json.loads(data)["error"]["code"]) == (b"event: error", "rejected")
        early = await relay.send(address, json=body(stream=True))
        assert (early.status, error_of(early)["code"]) == (400, "rejected")
        assert len(item.totals.open_faults) == 1
        with pytest.raises(openai.APIError, match="the provider answered 400"):
            await _chunks(address, [])
