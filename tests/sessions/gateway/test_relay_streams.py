"""Streams pass as they come, with their token counts and their breaks, and are replayed at once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import aiohttp
import openai
import pytest
from openai import AsyncOpenAI
from provider import Provider
from relays import body, converse, open_relay, recording_gateway, relay_before
from waiting import until, until_async

from pytest_helmbench.gateway.backend import CacheMode
from pytest_helmbench.gateway.relay.relay import RelayAddress

_USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
_DONE = b"data: [DONE]\n\n"


def _event(document: Any) -> bytes:
    return b"data: " + json.dumps(document).encode() + b"\n\n"


def _delta(text: str, reason: str | None = None, **more: Any) -> bytes:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": reason}
    return _event(
        {"id": "c", "object": "chat.completion.chunk", "model": "test/served", "choices": [choice], **more}
    )


_COUNTS = _event({"id": "c", "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
_WORDS = [_delta(f"w{number} ") for number in range(5)]
_STREAM = (*_WORDS, _delta("", "stop"), _COUNTS, _DONE)


def _client(address: RelayAddress) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=address.base_url, api_key=address.token, max_retries=0)


class _OneByOne(tuple[bytes, ...]):
    """Events, each of which is sent when those before it have arrived."""

    seen: list[object]

    def __getitem__(self, number: Any) -> Any:
        until(lambda: len(self.seen) >= min(number, len(_WORDS)), "the events before it arrive")
        return super().__getitem__(number)


async def _texts(client: AsyncOpenAI, seen: list[object] | None = None, **more: Any) -> list[str]:
    messages: Any = [{"role": "user", "content": "Hello"}]
    stream = await client.chat.completions.create(model="m", messages=messages, stream=True, **more)
    texts = []
    async for chunk in stream:
        if seen is not None:
            seen.append(chunk)
        if chunk.choices and chunk.choices[0].delta.content:
            texts.append(chunk.choices[0].delta.content)
    return texts


async def test_events_arrive_at_the_pace_of_the_model_and_its_counts_are_metered(provider: Provider) -> None:
    events = _OneByOne(_STREAM)
    seen = events.seen = []
    provider.answers(events=events)

    async with open_relay(provider.url) as setup:
        item, address = await setup.item()
        async with _client(address) as client:
            assert await _texts(client, seen) == [f"w{number} " for number in range(5)]
        assert (item.sums.usage.prompt_tokens, item.sums.usage.completion_tokens) == (7, 5)
        assert item.sums.answered == 1
    (record,) = setup.coordinator.attempts
    assert record.response_body == b"".join(_STREAM)
    assert provider.requests[0].body["stream_options"] == {"include_usage": True}


@pytest.mark.parametrize("asked", [False, True])
def test_counts_that_nobody_asked_for_are_not_shown(provider: Provider, *, asked: bool) -> None:
    provider.answers(events=(_delta("a", usage=None), *_STREAM))
    options: dict[str, Any] = {"stream_options": {"include_usage": True}} if asked else {}

    async def check() -> bytes:
        async with open_relay(provider.url) as setup:
            _, address = await setup.item()
            return (await setup.send(address, json=body(stream=True, **options))).body

    shown = asyncio.run(check())
    assert (b'"usage"' in shown) is asked
    assert shown.endswith(_DONE)


async def test_a_stream_that_breaks_off_is_a_fault_that_is_not_tried_again(provider: Provider) -> None:
    provider.answers(events=_WORDS, breaks_off=True)

    async with open_relay(provider.url) as setup:
        item, address = await setup.item()
        async with _client(address) as client:
            with pytest.raises(openai.APIError):
                await _texts(client)
        async with setup.web.post(
            f"{address.base_url}/chat/completions",
            json=body("again", stream=True),
            headers={"Authorization": f"Bearer {address.token}"},
        ) as response:
            with pytest.raises(aiohttp.ClientPayloadError):
                await response.read()  # as it broke off, so it ends: no end of the body
        assert [str(fault).split(" (")[0] for fault in item.sums.open_faults] == [
            "the provider's answer broke off before its end"
        ] * 2
        assert item.sums.answered == 0
    assert [record.unanswered for record in setup.coordinator.attempts] == [True, True]
    assert provider.count == 2


async def test_a_client_that_leaves_a_stream_has_had_its_answer(provider: Provider) -> None:
    provider.answers(events=_STREAM * 50, pace_s=0.02)

    async with open_relay(provider.url) as setup:
        item, address = await setup.item(grace_s=0.05)
        async with _client(address) as client:
            messages: Any = [{"role": "user", "content": "Hello"}]
            stream = await client.chat.completions.create(model="m", messages=messages, stream=True)
            async for _ in stream:
                break
            await stream.close()
        await until_async(lambda: not setup.coordinator.gate.in_flight)
        assert (item.sums.open_faults, item.sums.answered) == ((), 1)
    (record,) = setup.coordinator.attempts
    assert (record.error, record.unanswered) == ("cancelled", True)


def test_a_stream_is_replayed_at_once(provider: Provider, tmp_path: Path) -> None:
    provider.answers(events=_STREAM, pace_s=0.05)

    async def answer(mode: CacheMode) -> tuple[bytes, int]:
        async with recording_gateway(tmp_path / "helmbench.db", mode) as (gateway, run_id):
            item = converse(gateway, provider.url, run_id=run_id)
            async with relay_before(item) as send:
                return (await send(body(stream=True))).body, item.sums.recalled

    live, recalled = asyncio.run(answer(CacheMode.OFF))
    assert recalled == 0
    assert asyncio.run(answer(CacheMode.ONLY)) == (live, 1)
    assert provider.count == 1
