"""The gateway over HTTP, as real clients use it: the `openai` package, and clients that mean no good."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import json
import logging
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import openai
import pytest
from openai import AsyncOpenAI
from provider import Answer, Provider, Request
from relayed import Answered, Relayed, body, relayed, until, with_sampling
from said import said
from wired import Onlooker

from pytest_helmbench.core.model import ModelEntry, Price
from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.client import ChatClient
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import BudgetSpentError, ModelLimits, SessionLimits
from pytest_helmbench.gateway.relay.conversation import Conversation
from pytest_helmbench.gateway.relay.exchanges import RawReply
from pytest_helmbench.gateway.relay.relay import RelayAddress
from pytest_helmbench.gateway.relay.relay_bounds import RelayBounds
from pytest_helmbench.gateway.retries import Patience

_TOOLS: Any = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Runs a command",
            "parameters": {
                "type": "object",
                "properties": {"command": {"enum": ["ls -la", "list all files"]}},
                "required": ["command"],
            },
        },
    }
]
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


def _client(address: RelayAddress) -> AsyncOpenAI:
    return AsyncOpenAI(base_url=address.base_url, api_key=address.token)


def _error(answered: Answered) -> Mapping[str, Any]:
    error: Mapping[str, Any] = json.loads(answered.body)["error"]
    assert error.keys() == {"message", "type", "param", "code"}
    return error


async def _no_sleep(_seconds: float) -> None:
    await asyncio.sleep(0)


def test_a_json_client_gets_the_body_as_the_provider_sent_it(provider: Provider) -> None:
    sent = b'{ "choices": [{"finish_reason": "stop", "message": {"content": "ok \\ud800"}, "x": 1}],\n "mine": 1e5}\n'
    provider.answers(body=sent, headers={"X-Secret": "of-the-provider"})

    async def check() -> None:
        async with relayed(provider.url) as setup:
            item, address = await setup.item()
            async with _client(address) as client:
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

    asyncio.run(check())
    assert provider.requests[0].body == {**body(), "model": "test/good", "temperature": 0.5}


def test_tools_and_their_results_pass(provider: Provider) -> None:
    provider.answers(times=1, body=_RICH)

    async def check() -> None:
        async with relayed(provider.url) as setup:
            _, address = await setup.item()
            async with _client(address) as client:
                messages: Any = [{"role": "user", "content": "List"}]
                reply = await client.chat.completions.create(model="m", messages=messages, tools=_TOOLS)
                message = reply.choices[0].message
                assert [call.id for call in message.tool_calls or ()] == ["a", "b", "c"]
                messages += [message, {"role": "tool", "tool_call_id": "a", "content": "a.txt"}]
                last = await client.chat.completions.create(model="m", messages=messages, tools=_TOOLS)
                assert last.choices[0].message.content == "ok"

    asyncio.run(check())
    assert provider.requests[1].body["messages"][1]["tool_calls"][1]["id"] == "b"
    assert provider.requests[1].body["messages"][2]["role"] == "tool"


def _reassembled(chunks: list[Any]) -> dict[str, Any]:
    """Put a streamed message together as clients do."""
    message: dict[str, Any] = {"tool_calls": {}}
    for delta in (chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]):
        for name, value in delta.items():
            if name == "tool_calls":
                (part,) = value
                call = message["tool_calls"].setdefault(part["index"], part)
                if call is not part:
                    call["function"]["arguments"] += part["function"]["arguments"]
            elif isinstance(message.get(name), str):
                message[name] += value
            else:
                message[name] = value
    return message


def test_a_stream_says_the_same_as_the_reply(provider: Provider) -> None:
    provider.answers(body=_RICH)

    async def check() -> tuple[list[bytes], list[Any]]:
        async with relayed(provider.url) as setup:
            _, address = await setup.item()
            asked = body(stream=True, stream_options={"include_usage": True})
            answered = await setup.send(address, json=asked)
            assert answered.headers["Content-Type"] == "text/event-stream; charset=utf-8"
            async with _client(address) as client:
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
                )
                return answered.body.split(b"\n\n"), [chunk async for chunk in stream]

    events, parsed = asyncio.run(check())
    assert provider.requests[0].body["stream_options"] == {"include_usage": True}
    assert events[-2:] == [b"data: [DONE]", b""]
    assert max(map(len, events)) < 2**16  # what common readers take as one line
    chunks = [json.loads(event.removeprefix(b"data: ")) for event in events[:-2]]
    assert {(chunk["id"], chunk["object"], chunk["model"]) for chunk in chunks} == {
        ("chatcmpl-7", "chat.completion.chunk", "test/served")
    }
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    *deltas, last, counts = chunks
    assert [chunk["choices"][0]["finish_reason"] for chunk in deltas] == [None] * len(deltas)
    assert last["choices"][0]["finish_reason"] == "tool_calls"
    assert last["choices"][0]["logprobs"] == {"content": [], "refusal": None}
    assert (counts["choices"], counts["usage"]) == ([], _RICH["usage"])
    assert all(chunk["usage"] is None for chunk in chunks[:-1])
    message = _reassembled(deltas)
    original = {name: value for name, value in _RICH["choices"][0]["message"].items() if value is not None}
    calls = message.pop("tool_calls")
    assert message == {name: value for name, value in original.items() if name != "tool_calls"}
    wanted = [{**call, "index": index} for index, call in enumerate(original["tool_calls"])]
    assert list(calls.values()) == wanted
    assert "".join(chunk.choices[0].delta.content or "" for chunk in parsed) == _LONG
    assert all(chunk.usage is None for chunk in parsed)
    assert parsed[-1].choices[0].finish_reason == "tool_calls"


def test_a_stream_shows_signs_of_life_and_tells_of_a_late_fault_in_an_event(provider: Provider) -> None:
    provider.answers(times=1, status=400, latency_s=0.1)
    provider.answers(times=1, status=400)

    async def check() -> None:
        async with relayed(provider.url, bounds=RelayBounds(heartbeat_s=0.02, silence_s=0.02)) as setup:
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
            assert _error(early)["code"] == "rejected"
            assert len(item.sums.open_faults) == 1

            provider.answers(times=1, status=400, latency_s=0.1)
            async with _client(address) as client:
                stream = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": "Hello"}], stream=True
                )
                with pytest.raises(openai.APIError, match="the provider answered 400"):
                    async for _ in stream:
                        pass

    asyncio.run(check())


def test_retries_are_the_gateways_and_no_client_sees_them(provider: Provider) -> None:
    provider.answers(times=2, status=429, retry_after=0)
    provider.answers(times=1, status=503)

    async def check() -> None:
        async with relayed(provider.url, sleep=_no_sleep) as setup:
            item, address = await setup.item()
            async with _client(address) as client:
                await client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}])
            assert (item.sums.requests, item.sums.answered) == (1, 1)
        assert [record.status_code for record in setup.coordinator.attempts] == [429, 429, 503, 200]
        assert {record.sequence for record in setup.coordinator.attempts} == {1}

    asyncio.run(check())


@pytest.mark.parametrize(
    ("answer", "error", "code"),
    [
        (Answer(status=400), openai.BadRequestError, "rejected"),
        (Answer(status=413), openai.APIStatusError, "prompt_too_large"),
        (Answer(status=422), openai.UnprocessableEntityError, "rejected"),
        (
            Answer(status=404, body={"error": {"message": "No endpoints found that support tool use"}}),
            openai.BadRequestError,
            "unsupported_parameters",
        ),
        (Answer(status=500), openai.InternalServerError, "provider_error"),
        (Answer(status=429, retry_after=60), openai.InternalServerError, "model_stopped"),
        (Answer(body=b"<html>"), openai.InternalServerError, "not_json"),
        (Answer(reset=True), openai.InternalServerError, "reset"),
        (Answer(finish_reason="content_filter"), openai.BadRequestError, "moderation"),
        (Answer(status=401), openai.InternalServerError, "model_stopped"),
        (Answer(status=404), openai.InternalServerError, "model_stopped"),
    ],
)
def test_faults_that_last_reach_the_client_as_its_own_errors(
    provider: Provider, answer: Answer, error: type[openai.APIStatusError], code: str
) -> None:
    provider.reply = lambda _request: answer

    async def check() -> None:
        patience = Patience(case_timeout_s=1.0, max_retries=0)
        limits = SessionLimits(8, longest_pause_s=patience.longest_pause_s)
        async with relayed(provider.url, patience=patience, limits=limits) as setup:
            item, address = await setup.item()
            async with _client(address) as client:
                with pytest.raises(error) as caught:
                    await client.chat.completions.create(
                        model="m", messages=[{"role": "user", "content": "x"}]
                    )
            assert type(caught.value) is error
            assert caught.value.code == code
            assert caught.value.response.headers["x-should-retry"] == "false"
            assert urlsplit(provider.url).netloc not in caught.value.response.text
            assert item.sums.requests == 1  # the client has not tried again

    asyncio.run(check())


def test_a_spent_budget_is_said_in_words(provider: Provider) -> None:
    provider.cost_usd = 0.6
    entry = ModelEntry("test/good", price=Price(0.0, 600.0))

    async def check() -> None:
        model_id = ModelLimits("test/good", 8, price=entry.price)
        async with relayed(provider.url, [model_id], limits=SessionLimits(8, max_cost_usd=1.0)) as setup:
            item, address = await setup.item(entry=entry)
            async with _client(address) as client:

                async def ask() -> None:
                    await client.chat.completions.create(
                        model="m", messages=[{"role": "user", "content": "x"}], max_tokens=1000
                    )

                await ask()
                with pytest.raises(openai.APIStatusError) as caught:
                    await ask()
            assert caught.value.status_code == 402
            assert caught.value.type == "insufficient_quota"
            assert "budget spent: 0.6000 of 1.0000 USD, the call may cost 0.6000" in caught.value.message
            assert list(map(type, item.sums.open_faults)) == [BudgetSpentError]

    asyncio.run(check())
    assert provider.count == 1


def test_items_in_parallel_never_mix_and_share_the_sessions_limits(provider: Provider) -> None:
    provider.latency_s = 0.01
    items, each = 10, 20

    async def work(setup: Relayed, code: str) -> float | None:
        item, address = await setup.item(code, entry=with_sampling(seed=len(code)))

        async def one(number: int) -> None:
            text = f"{code} {number}"
            answered = await setup.send(address, json=body(f"ANSWER: {text}", stream=number % 2 == 0))
            assert text.encode() in answered.body

        await asyncio.gather(*map(one, range(each)))
        assert item.sums.answered == each
        return item.sums.usage.cost_usd

    async def check() -> list[float | None]:
        async with relayed(provider.url, [ModelLimits("test/good", 6)]) as setup:
            costs = await asyncio.gather(*(work(setup, f"ROW-{number}") for number in range(items)))
        for record in setup.coordinator.attempts:
            assert f"ANSWER: {record.code} ".encode() in record.request_body
        assert len(setup.coordinator.attempts) == items * each
        return costs

    costs = asyncio.run(check())
    assert costs == [pytest.approx(each * 0.001)] * items
    assert provider.max_in_flight == 6


def test_path_and_token_must_belong_together_and_end_with_the_item(provider: Provider) -> None:
    async def check() -> None:
        async with relayed(provider.url) as setup:
            first, mine = await setup.item("ROW-1")
            _, other = await setup.item("ROW-2")
            assert mine.token not in repr(mine)
            assert len({mine.base_url, other.base_url, mine.token, other.token}) == 4

            sentence = "this address takes only the bearer token that was given out with it"
            strangers = (
                {"url": other.base_url},
                {"url": mine.base_url.replace("/v1", "x/v1")},
                {"url": f"http://{urlsplit(mine.base_url).netloc}"},
                {"headers": {"Authorization": ""}},
                {"headers": {"Authorization": mine.token}},
                {"headers": {"Authorization": f"Basic {mine.token}"}},
                {"headers": {"Authorization": "Bearer "}},
                {"headers": {"Authorization": f"Bearer {mine.token}x"}},
            )
            for options in strangers:
                for path in ("/chat/completions", "/models"):
                    answered = await setup.send(mine, path, json=body(), **options)
                    assert answered.status == 401
                    assert _error(answered)["message"] == sentence
            lower = {"Authorization": f"bearer  {mine.token} "}
            assert (await setup.send(mine, json=body(), headers=lower)).status == 200

            await first.end()
            answered = await setup.send(mine, json=body())
            assert answered.status == 410
            assert _error(answered)["message"] == "the item that this address was made for has ended"
            assert (await setup.send(mine, "/models", method="GET")).status == 410
            assert (await setup.relay.open(first)).token != mine.token
            assert (await setup.send(await setup.relay.open(first), json=body())).status == 410
            assert (await setup.send(mine, headers={"Authorization": "Bearer x"})).status == 401
            assert (await setup.send(other, json=body())).status == 200

    asyncio.run(check())
    assert provider.count == 2


def test_paths_work_with_and_without_v1_and_say_what_there_is(provider: Provider) -> None:
    async def check() -> None:
        async with relayed(provider.url) as setup:
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
            async with _client(address) as client:
                assert [model.id async for model in client.models.list()] == ["test/good"]
                assert (await client.models.retrieve("test/good")).owned_by == "test"
                with pytest.raises(
                    openai.NotFoundError, match="there is no model 'x/y' here; there is 'test/good'"
                ):
                    await client.models.retrieve("x/y")
                with pytest.raises(openai.NotFoundError) as caught:
                    await client.completions.create(model="m", prompt="x")
            assert caught.value.body == {
                "message": "there is no /completions here; there is POST /chat/completions, /responses and /embeddings,"
                " and GET /models, with and without /v1 before them",
                "type": "invalid_request_error",
                "param": None,
                "code": "not_found",
            }
            wrong = await setup.send(address, "/chat/completions", method="GET")
            assert (wrong.status, _error(wrong)["message"]) == (405, "GET is not answered here: use POST")
            assert (await setup.send(address, "/models", json=body())).status == 405

    asyncio.run(check())


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        (b"", "the request body is no JSON: Expecting value in line 1, column 1"),
        (b'{"messages": [}', "the request body is no JSON: Expecting value in line 1, column 15"),
        (b"[]", "the request body is no JSON object"),
        (b'"\xff"', "the request body is not UTF-8"),
        (b'{"seed": NaN}', "the request body holds NaN, which is no JSON"),
        (b'{"seed": -1e999}', "the request body holds the number -1e999, which is too large"),
        (b'{"seed": ' + b"1" * 5000 + b"}", "the request body holds a number of too many digits"),
        (b'{"a":' * 100_000, "the request body is nested too deeply"),
        (b"[" + b"[]," * 2_000_001, "the request body has more than 4,000,000 parts"),
    ],
    ids=["nothing", "broken", "list", "latin", "nan", "inf", "digits", "deep", "parts"],
)
def test_what_is_no_request_is_refused_with_a_sentence(
    provider: Provider, sent: bytes, sentence: str
) -> None:
    async def check() -> None:
        async with relayed(provider.url) as setup:
            item, address = await setup.item()
            answered = await setup.send(address, data=io.BytesIO(sent))
            assert (answered.status, _error(answered)["message"]) == (400, sentence)
            assert item.sums.requests == 0

    asyncio.run(check())
    assert provider.count == 0


def test_the_size_and_time_of_a_request_are_bounded(provider: Provider) -> None:
    async def dripping() -> Any:
        for _ in range(1000):
            yield b" "
            await asyncio.sleep(0.02)

    async def chunked() -> Any:
        for _ in range(3):
            yield b" " * 2**20

    async def check() -> None:
        bounds = RelayBounds(body_bytes=2 * 2**20, body_s=0.1)
        async with relayed(provider.url, bounds=bounds) as setup:
            _, address = await setup.item()
            bomb = gzip.compress(b" " * 3 * 2**20)
            for options in (
                {"data": io.BytesIO(b" " * 3 * 2**20)},
                {"data": chunked()},
                {"data": bomb, "headers": {"Content-Encoding": "gzip"}},
            ):
                answered = await setup.send(address, **options)
                assert answered.status == 413
                assert _error(answered)["message"] == "the request body is larger than 2 MiB"
            answered = await setup.send(address, data=dripping())
            assert answered.status == 408
            assert _error(answered)["message"] == "the request did not arrive within 0.1 s"
            answered = await setup.send(address, data=b"no gzip at all", headers={"Content-Encoding": "gzip"})
            assert (answered.status, _error(answered)["message"]) == (400, "the request body is damaged")
            answered = await setup.send(address, json=body(), headers={"X": "y" * 10_000})
            assert answered.status == 400
            squeezed = gzip.compress(json.dumps(body()).encode())
            answered = await setup.send(address, data=squeezed, headers={"Content-Encoding": "gzip"})
            assert answered.status == 200
            assert (await setup.send(address, json=body(), expect100=True)).status == 200

    asyncio.run(check())
    assert provider.count == 2


def test_an_item_holds_only_so_much_at_once(provider: Provider) -> None:
    provider.answers(times=1, hang=True)

    async def check() -> None:
        async with relayed(provider.url, bounds=RelayBounds(item_bytes=2 * 2**20)) as setup:
            _, address = await setup.item(grace_s=0.0)
            _, other = await setup.item()
            large = json.dumps(body("x" * 2**20)).encode()
            holding = asyncio.create_task(setup.send(address, data=io.BytesIO(large)))
            await until(lambda: provider.in_flight)
            refused = await setup.send(address, data=io.BytesIO(large))
            assert refused.status == 429
            assert _error(refused)["message"] == "the requests of this item hold more than 2 MiB at once"
            assert (await setup.send(other, data=io.BytesIO(large))).status == 200
            holding.cancel()
            server = setup.relay._server
            await until(lambda: server is not None and not server._held)
            await until(lambda: not setup.coordinator.gate.in_flight)
            assert (await setup.send(address, data=io.BytesIO(large))).status == 200

    asyncio.run(check())


def test_a_large_conversation_passes(provider: Provider) -> None:
    text = "x" * 8 * 2**20
    provider.answers(text=text)

    async def check() -> None:
        async with relayed(provider.url) as setup:
            _, address = await setup.item()
            sent = json.dumps(body(text)).encode()
            answered = await setup.send(address, data=io.BytesIO(sent))
            assert json.loads(answered.body)["choices"][0]["message"]["content"] == text

    asyncio.run(check())


def test_a_client_that_hangs_up_ends_its_call(provider: Provider) -> None:
    provider.answers(times=2, hang=True)

    async def check() -> None:
        async with relayed(provider.url, bounds=RelayBounds(heartbeat_s=0.01, silence_s=0.01)) as setup:
            item, address = await setup.item(grace_s=0.02)
            for stream in (False, True):
                sending = asyncio.create_task(setup.send(address, json=body(stream=stream)))
                await until(lambda: setup.coordinator.gate.in_flight)
                await asyncio.sleep(0.03)
                sending.cancel()
                await until(lambda: not setup.coordinator.gate.in_flight)
            assert [record.error for record in setup.coordinator.attempts] == ["cancelled"] * 2
            for stream in (False, True):
                assert (await setup.send(address, json=body(stream=stream))).status == 200
            assert not item.sums.open_faults

    asyncio.run(check())


def test_a_reply_that_comes_after_its_client_has_gone_is_on_record_and_is_not_paid_again(
    provider: Provider,
) -> None:
    provider.answers(times=1, text="late", latency_s=1.5)

    async def check() -> None:
        async with relayed(provider.url) as setup:
            _, address = await setup.item()
            with pytest.raises(openai.APITimeoutError):
                async with _client(address).with_options(timeout=0.5, max_retries=0) as client:
                    await client.chat.completions.create(
                        model="m", messages=[{"role": "user", "content": "Hello"}]
                    )
            await until(lambda: setup.coordinator.attempts)
            answered = await setup.send(address, json=body())
            assert b"late" in answered.body
        assert len(setup.coordinator.attempts) == 1

    asyncio.run(check())
    assert provider.count == 1


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_takes_nothing_is_dropped(provider: Provider, stream: bool) -> None:
    size = 16 * 2**20
    provider.answers(text="x" * size)

    def rest(lazy: socket.socket) -> int:
        received = 0
        with contextlib.suppress(ConnectionResetError):
            while chunk := lazy.recv(2**20):
                received += len(chunk)
        return received

    async def check() -> None:
        async with relayed(provider.url, bounds=RelayBounds(write_s=0.1)) as setup:
            _, address = await setup.item()
            parts = urlsplit(address.base_url)
            sent = json.dumps(body(stream=stream))
            at_rest = len(asyncio.all_tasks())
            with socket.create_connection((parts.hostname or "", parts.port or 0)) as lazy:
                head = (
                    f"POST {parts.path}/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(sent)}"
                )
                request = f"{head}\r\nAuthorization: Bearer {address.token}\r\n\r\n{sent}"
                lazy.sendall(request.encode())
                await until(lambda: setup.coordinator.attempts)
                await until(lambda: len(asyncio.all_tasks()) == at_rest)  # the relay is done with it
                assert await asyncio.to_thread(rest, lazy) < size

    asyncio.run(check())


def test_the_end_of_an_item_ends_what_its_clients_wait_for(provider: Provider) -> None:
    provider.answers(hang=True)

    async def check() -> None:
        async with relayed(provider.url, bounds=RelayBounds(heartbeat_s=0.01, silence_s=0.01)) as setup:
            item, address = await setup.item()
            waiting = [
                asyncio.create_task(setup.send(address, json=body(stream=stream))) for stream in (False, True)
            ]
            await until(lambda: provider.in_flight == 2)
            await asyncio.sleep(0.03)
            await item.end()
            plain, streamed = await asyncio.gather(*waiting)
            assert (plain.status, _error(plain)["code"]) == (410, "item_ended")
            assert streamed.body.endswith(b'"code": "item_ended"}}\n\n')

    asyncio.run(check())


def test_the_end_of_the_session_is_told_and_then_nobody_listens(provider: Provider) -> None:
    async def check() -> None:
        async with relayed(provider.url) as setup:
            item, address = await setup.item()
            item._watch.check = _cancelled
            answered = await setup.send(address, json=body())
            assert (answered.status, _error(answered)["message"]) == (503, "the session makes no more calls")
            await setup.relay.close()
            with pytest.raises(aiohttp.ClientConnectionError):
                await setup.send(address, json=body())

    asyncio.run(check())


def _cancelled() -> None:
    raise asyncio.CancelledError


def test_a_relay_that_closes_waits_for_nobody(provider: Provider) -> None:
    provider.answers(hang=True)

    async def check() -> None:
        async with relayed(provider.url) as setup:
            _, address = await setup.item(grace_s=0.0)
            waiting = asyncio.create_task(setup.send(address, json=body()))
            await until(lambda: provider.in_flight)
            started = time.monotonic()
            await setup.relay.close()
            assert time.monotonic() - started < 1.5
            with pytest.raises(aiohttp.ClientConnectionError):
                await waiting

    asyncio.run(check())


def test_an_error_of_our_own_reaches_item_and_client_and_no_log(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_record: AttemptRecord) -> None:
        raise MemoryError("no room for the record")

    async def check() -> None:
        async with relayed(provider.url) as setup:
            gate = Limiter(SessionLimits(1), time.monotonic)
            gate.add_models([ModelLimits("test/good", 1)])
            results: list[ResultRecord] = []
            async with ChatClient() as client:
                setup.coordinator.gateway = Gateway(
                    LocalBackend(gate, broken, results.append), client, Patience()
                )
                item, address = await setup.item()
                answered = await setup.send(address, json=body())
                assert (answered.status, _error(answered)["code"]) == (500, "internal_error")
                with pytest.raises(MemoryError, match="no room for the record"):
                    await item.end()

    with caplog.at_level(logging.DEBUG):
        asyncio.run(check())
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


def test_an_error_of_the_relay_itself_reaches_item_and_client(provider: Provider) -> None:
    class Broken(Conversation):
        async def complete(self, body: Mapping[str, Any], path: str = "", on_stream: Any = None) -> RawReply:
            raise LookupError("a bug")

    async def check() -> None:
        async with relayed(provider.url) as setup:
            plain, _ = await setup.item()
            item = Broken(setup.coordinator.gateway, plain.line, CaseClock(Patience()), Onlooker())
            answered = await setup.send(await setup.relay.open(item), json=body())
            assert (answered.status, _error(answered)["code"]) == (500, "internal_error")
            with pytest.raises(LookupError, match="a bug"):
                await item.end()

    asyncio.run(check())


def test_neither_bodies_nor_tokens_nor_keys_are_logged_or_told(
    provider: Provider, caplog: pytest.LogCaptureFixture
) -> None:
    entry = ModelEntry("test/good", api_key_env=said("A_KEY"))

    async def check() -> str:
        async with relayed(provider.url) as setup:
            _, address = await setup.item(entry=entry)
            answers = [
                await setup.send(address, json=body("a-secret-prompt")),
                await setup.send(address, json=body("a-secret-prompt", stream=True)),
                await setup.send(address, "/models", method="GET"),
                await setup.send(address, data=b"a-secret-prompt"),
                await setup.send(address, headers={"X": "a-secret-prompt" * 1000}),
            ]
            logged = "\n".join(f"{record.getMessage()} {record.exc_info}" for record in caplog.records)
            assert {record.levelno for record in caplog.records} <= {logging.DEBUG, logging.INFO}
            path = urlsplit(address.base_url).path.split("/")[1]
            for secret in (address.token, path, "a-secret-prompt"):
                assert secret not in logged
            return "".join(f"{answer.headers} {answer.body!r}" for answer in answers)

    with caplog.at_level(logging.DEBUG):
        told = asyncio.run(check())
    assert "key" not in told.lower().replace("keep-alive", "")


def test_embedded_models_answer_through_the_relay() -> None:
    schema = {"type": "object", "properties": {"a": {"enum": ["x", "list"]}}, "required": ["a"]}
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": schema}}

    async def check() -> None:
        async with relayed(
            "http://unused.invalid/v1", [ModelLimits("baseline/lexical", 8, free=True)]
        ) as setup:
            item, address = await setup.item(entry=ModelEntry("baseline/lexical"))
            async with _client(address) as client:

                async def ask(**options: Any) -> Any:
                    parts: Any = [{"type": "text", "text": "Please list all files."}]
                    messages: Any = [
                        {"role": "developer", "content": "Be brief"},
                        {"role": "user", "content": parts},
                    ]
                    reply = await client.chat.completions.create(model="m", messages=messages, **options)
                    return reply.choices[0]

                assert (await ask(tools=_TOOLS)).message.content == "Please list all files."
                assert (await ask(response_format=wanted)).message.content == '{"a": "list"}'
                forced = {"type": "function", "function": {"name": "bash"}}
                for choice in ("required", forced):
                    reply = await ask(tools=_TOOLS, tool_choice=choice)
                    assert reply.finish_reason == "tool_calls"
                    (call,) = reply.message.tool_calls
                    assert (call.function.name, call.function.arguments) == (
                        "bash",
                        '{"command": "list all files"}',
                    )
            assert item.sums.usage.cost_usd == 0.0

    asyncio.run(check())


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"response_format": {"type": "json_schema"}}, "cannot be read"),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": 5}}}},
            "cannot be read",
        ),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"schema": {"type": ["x"], "enum": [1]}},
                }
            },
            "cannot be read",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"$ref": "http://x/"}}}},
            "refers to 'http://x/', which is not part of it",
        ),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": {"minItems": 10**9}}}},
            "minItems is 1e+09: it answers up to 1000",
        ),
        ({"tools": [{"type": "function", "x": [[]] * 6_000}]}, "have more than 5000 parts"),
        ({"tool_choice": "required"}, "the request forces a tool call, but holds no such tool"),
        (
            {"tools": _TOOLS, "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "the request forces a tool call, but holds no such tool",
        ),
        ({"tools": _TOOLS, "tool_choice": 7}, "cannot be read"),
        ({"tools": [{"type": "function"}], "tool_choice": "required"}, "cannot be read"),
    ],
)
def test_embedded_models_survive_any_request(fields: Mapping[str, Any], sentence: str) -> None:
    async def check() -> None:
        async with relayed(
            "http://unused.invalid/v1", [ModelLimits("baseline/first", 8, free=True)]
        ) as setup:
            item, address = await setup.item(entry=ModelEntry("baseline/first"))
            answered = await setup.send(address, json=body(**fields))
            assert (answered.status, _error(answered)["code"]) == (400, "no_answer")
            assert sentence in _error(answered)["message"]
            await item.end()

    asyncio.run(check())


def test_every_address_of_this_machine_that_is_asked_for_is_listened_at(provider: Provider) -> None:
    async def check() -> None:
        async with relayed(provider.url) as setup:
            item, address = await setup.item()
            second = await setup.relay.open(item, "127.0.0.2")
            assert urlsplit(second.base_url).hostname == "127.0.0.2"
            assert (await setup.send(second, json=body())).status == 200
            crossed = second.base_url.replace(
                urlsplit(second.base_url).netloc, urlsplit(address.base_url).netloc
            )
            assert (await setup.send(second, url=crossed, json=body())).status == 200
            assert item.sums.answered == 2

    asyncio.run(check())


def test_the_server_is_loaded_only_when_an_address_is_asked_for() -> None:
    code = "import pytest_helmbench.gateway.relay.relay, sys; print('aiohttp.web' in sys.modules)"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "False\n"


def test_a_prompt_that_repeats_itself_gets_each_of_its_replies(provider: Provider) -> None:
    def counting(_request: Request) -> str:
        return f"reply {provider.count}"

    provider.reply = counting

    async def check() -> None:
        async with relayed(provider.url) as setup:
            _, address = await setup.item()
            replies = [json.loads((await setup.send(address, json=body())).body) for _ in range(3)]
            assert [reply["choices"][0]["message"]["content"] for reply in replies] == [
                "reply 1",
                "reply 2",
                "reply 3",
            ]
        assert len({record.request_hash for record in setup.coordinator.attempts}) == 3

    asyncio.run(check())


def test_connections_beyond_the_bound_are_refused(provider: Provider) -> None:
    async def run() -> None:
        async with relayed(provider.url, bounds=RelayBounds(connections=2)) as all_of_it:
            _, address = await all_of_it.item()
            port = int(address.base_url.split(":")[2].split("/")[0])
            held = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
            await asyncio.sleep(0.05)
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            for one in (writer, *(pair[1] for pair in held)):
                one.close()
            await asyncio.sleep(0.05)
            assert (await all_of_it.send(address, json=body())).status == 200

    asyncio.run(run())
