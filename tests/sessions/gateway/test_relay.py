"""The gateway over HTTP, as real clients use it: the `openai` package, by any path and address."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

import openai
import pytest
from provider import Provider
from relays import RelayFixture, body, client_of, error_of, open_relay, with_sampling

from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.gateway.relay.server import RelayBounds

_LONG = "Grüße 🙂\n" * 2_000
_RICH: Any = {
    "id": "chatcmpl-7",
    "object": "chat.completion",
    "created": 1_700_000_000,
    "model": "test/served",
    "system_fingerprint": "fp",
    "unknown": {"kept": True},
    "choices": [
        {
            "index": 0,
            "finish_reason": "tool_calls",
            "logprobs": {"content": [], "refusal": None},
            "message": {
                "role": "assistant",
                "content": _LONG,
                "refusal": None,
                "reasoning": "Let me see. " * 500,
                "reasoning_details": [{"type": "reasoning.text", "text": "Let me see."}],
                "tool_calls": [
                    {"id": "a", "type": "function", "function": {"name": "bash", "arguments": "{}"}},
                    {
                        "id": "b",
                        "index": 9,
                        "type": "function",
                        "function": {"name": "say", "arguments": json.dumps({"text": _LONG})},
                    },
                    {"id": "c", "type": "custom", "custom": {"name": "free", "input": "text"}},
                ],
            },
        }
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 20, "total_tokens": 30, "cost": 0.5},
}


async def test_a_json_client_gets_the_body_as_the_provider_sent_it(provider: Provider) -> None:
    sent = b'{ "choices": [{"finish_reason": "stop", "message": {"content": "ok \\ud800"}, "x": 1}],\n "mine": 1e5}\n'
    provider.answers(body=sent, headers={"X-Secret": "of-the-provider"})

    async with open_relay(provider.url) as setup:
        item, address = await setup.item()
        async with client_of(address) as client:
            raw = await client.chat.completions.with_raw_response.create(
                model="whatever", messages=[{"role": "user", "content": "Hello"}], temperature=0.5
            )
        assert raw.http_response.content == sent
        assert raw.headers["content-type"] == "application/json"
        assert "of-the-provider" not in str(raw.headers)
        assert item.sums.answered == 1
    (record,) = setup.coordinator.attempts
    assert record.response_body == sent
    assert (record.code, record.purpose, record.sequence) == ("ROW-1", "pack", 1)
    assert provider.requests[0].body == {**body(), "model": "test/good", "temperature": 0.5}


@pytest.mark.parametrize(
    "content",
    ["<think>Lyon?</think>\n\nParis", [{"type": "thinking", "thinking": "Lyon?"}, {"text": "Paris"}]],
)
def test_thoughts_in_a_reply_reach_a_client_beside_the_answer(provider: Provider, content: Any) -> None:
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": content}, "x": 1}
    provider.answers(body={"choices": [choice], "usage": {"prompt_tokens": 5}})

    async def check() -> None:
        async with open_relay(provider.url) as setup:
            _, address = await setup.item()
            async with client_of(address) as client:
                raw = await client.chat.completions.with_raw_response.create(
                    model="m", messages=[{"role": "user", "content": "Capital of France?"}]
                )
            message = {"reasoning_content": "Lyon?", "content": "Paris"}
            wanted = {"choices": [{**choice, "message": message}], "usage": {"prompt_tokens": 5}}
            assert json.loads(raw.http_response.content) == wanted
        (record,) = setup.coordinator.attempts
        assert (record.text, record.thoughts) == ("Paris", "Lyon?")
        assert json.dumps(content).encode() in (record.response_body or b"")

    asyncio.run(check())


def test_a_stream_says_the_same_as_the_reply(provider: Provider) -> None:
    provider.answers(body=_RICH)

    async def check() -> tuple[list[bytes], list[Any]]:
        async with open_relay(provider.url) as setup:
            _, address = await setup.item()
            asked = body(stream=True, stream_options={"include_usage": True})
            answered = await setup.send(address, json=asked)
            assert answered.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            async with client_of(address) as client:
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
                )
                return answered.body.split(b"\n\n"), [chunk async for chunk in stream]

    events, parsed = asyncio.run(check())
    assert provider.requests[0].body["stream_options"] == {"include_usage": True}
    assert events[-2:] == [b"data: [DONE]", b""]
    chunks = [json.loads(event.removeprefix(b"data: ")) for event in events[:-2]]
    assert {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks} == {
        ("chatcmpl-7", "chat.completion.chunk", "test/served")
    }
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    *deltas, last, counts = chunks
    assert [chunk["choices"][0]["finish_reason"] for chunk in deltas] == [None]
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert last["choices"][0]["logprobs"] == {"content": [], "refusal": None}
    assert (counts["choices"], counts["usage"]) == ([], _RICH["usage"])
    (first,) = deltas
    message = first["choices"][0]["delta"]
    original = {name: value for name, value in _RICH["choices"][0]["message"].items() if value is not None}
    calls = message.pop("tool_calls")
    assert message == {name: value for name, value in original.items() if name != "tool_calls"}
    wanted = [{**call, "index": index} for index, call in enumerate(original["tool_calls"])]
    assert calls == wanted
    assert "".join(chunk.choices[0].delta.content or "" for chunk in parsed) == _LONG
    assert all(chunk.usage is None for chunk in parsed)
    assert parsed[-1].choices[0].finish_reason == "tool_calls"


async def test_a_stream_shows_signs_of_life_and_tells_of_a_late_fault_in_an_event(provider: Provider) -> None:
    provider.answers(times=1, status=400, latency_s=0.5)
    provider.answers(times=1, status=400)

    async with open_relay(provider.url, bounds=RelayBounds(heartbeat_s=0.15)) as setup:
        item, address = await setup.item()
        late = await setup.send(address, json=body(stream=True))
        assert late.status == 200
        *beats, event, end = late.body.split(b"\n\n")
        assert len(beats) >= 2
        assert set(beats) == {b": waiting for the model"}
        assert end == b""
        kind, _, data = event.partition(b"\ndata: ")
        assert kind == b"event: error"
        assert json.loads(data)["error"]["code"] == "rejected"
        early = await setup.send(address, json=body(stream=True))
        assert early.status == 400
        assert error_of(early)["code"] == "rejected"
        assert len(item.sums.open_faults) == 1

        provider.answers(times=1, status=400, latency_s=0.5)
        async with client_of(address) as client:
            stream = await client.chat.completions.create(
                model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
            )
            with pytest.raises(openai.APIError, match="the provider answered 400"):
                async for _ in stream:
                    pass


def test_items_in_parallel_never_mix_and_share_the_sessions_limits(provider: Provider) -> None:
    provider.latency_s = 0.01
    items, each = 10, 20

    async def work(setup: RelayFixture, code: str) -> float | None:
        item, address = await setup.item(code, entry=with_sampling(seed=len(code)))

        async def one(number: int) -> None:
            text = f"{code} {number}"
            answered = await setup.send(address, json=body(f"ANSWER: {text}", stream=number % 2 == 0))
            assert text.encode() in answered.body

        await asyncio.gather(*map(one, range(each)))
        assert item.sums.answered == each
        return item.sums.usage.cost_usd

    async def check() -> list[float | None]:
        async with open_relay(provider.url, [ModelLimits("test/good", 6)]) as setup:
            costs = await asyncio.gather(*(work(setup, f"ROW-{number}") for number in range(items)))
        for record in setup.coordinator.attempts:
            assert f"ANSWER: {record.code} ".encode() in record.request_body
        assert len(setup.coordinator.attempts) == items * each
        return costs

    costs = asyncio.run(check())
    assert costs == [pytest.approx(each * 0.001)] * items
    assert provider.max_in_flight == 6


async def test_paths_work_with_and_without_v1_and_say_what_there_is(provider: Provider) -> None:
    async with open_relay(provider.url) as setup:
        _, address = await setup.item()
        for path in (
            "/chat/completions",
            "/chat/completions/",
            "/v1/chat/completions",
            "//chat/completions",
        ):
            for url in (address.base_url, address.base_url.removesuffix("/v1")):
                assert (await setup.send(address, path, url=url, json=body())).status == 200
        for path in ("/models", "/models/"):
            answered = await setup.send(address, path, method="GET")
            assert [model["id"] for model in json.loads(answered.body)["data"]] == ["test/good"]
        async with client_of(address) as client:
            assert [model.id async for model in client.models.list()] == ["test/good"]
            with pytest.raises(openai.NotFoundError) as caught:
                await client.completions.create(model="m", prompt="x")
        assert caught.value.body == {
            "message": "there is no /completions here; there is POST /chat/completions and GET /models,"
            " with and without /v1 before them",
            "type": "invalid_request_error",
            "param": None,
            "code": "not_found",
        }
        wrong = await setup.send(address, "/chat/completions", method="GET")
        assert (wrong.status, error_of(wrong)["message"]) == (405, "GET is not answered here: use POST")
        assert (await setup.send(address, "/models", json=body())).status == 405


def test_the_server_is_loaded_only_when_an_address_is_asked_for() -> None:
    code = "import pytest_helmbench.gateway.relay.relay, sys; print('aiohttp.web' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"
