"""The requests of one item, without HTTP: what goes out, what is counted, how it ends."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from provider import Answer, Provider, Request
from relayed import body, converse, until, with_sampling
from said import said
from wired import Onlooker, wired

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.model import ModelEntry, Price, Sampling
from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord, Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.backend import LocalBackend
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.client import ChatClient
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import (
    BudgetSpentError,
    ModelLimits,
    ModelStoppedError,
    NotStoredError,
    RefusedError,
    SessionLimits,
)
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.relay.client_errors import BadRequestError, ItemEndedError, failure_of
from pytest_helmbench.gateway.relay.conversation import ClientGaveUpError, Conversation
from pytest_helmbench.gateway.relay.exchanges import RawReply
from pytest_helmbench.gateway.retries import CallFailedError, Patience
from pytest_helmbench.gateway.wire import ParsedReply, parse_reply, passed_body

_TOOL_CALL: JsonValue = {
    "id": "c1",
    "type": "function",
    "function": {"name": "bash", "arguments": '{"command": "ls"}'},
}


def _completion(**message: Any) -> dict[str, Any]:
    choice = {"index": 0, "finish_reason": "tool_calls", "message": {"role": "assistant", **message}}
    return {"id": "x", "object": "chat.completion", "model": "m", "choices": [choice], "usage": None}


def _endpoint(model: str, **keys: str) -> Endpoint:
    found = resolve_endpoint(ModelEntry(model), default_base_url=None, default_key_env=None, environ=keys)
    assert isinstance(found, Endpoint)
    return found


_OPENAI = _endpoint("openai/gpt", OPENAI_API_KEY="key-of-openai")
_ROUTER = _endpoint("vendor/m", OPENROUTER_API_KEY="key-of-router")
_LOCAL = _endpoint("ollama/m")


@pytest.mark.parametrize(
    ("endpoint", "sampling", "stated", "sent"),
    [
        pytest.param(_LOCAL, {}, {"seed": 1, "mine": [1]}, {"seed": 1, "mine": [1]}, id="unset-passes"),
        pytest.param(_LOCAL, {"seed": 7}, {"seed": 1}, {"seed": 8}, id="set-wins"),
        pytest.param(_LOCAL, {"temperature": 0.0}, {}, {"temperature": 0.0}, id="set-is-added"),
        pytest.param(
            _LOCAL,
            {},
            {"stream": True, "stream_options": {"mine": 1}},
            {"stream": True, "stream_options": {"mine": 1, "include_usage": True}},
            id="a-stream-with-its-counts",
        ),
        pytest.param(
            _LOCAL,
            {"max_tokens": 9},
            {"max_tokens": 99, "max_completion_tokens": 999},
            {"max_tokens": 9},
            id="one-bound",
        ),
        pytest.param(_OPENAI, {"max_tokens": 9}, {"max_tokens": 99}, {"max_completion_tokens": 9}, id="name"),
        pytest.param(_OPENAI, {}, {"max_tokens": 99}, {"max_completion_tokens": 99}, id="stated-name"),
        pytest.param(
            _OPENAI,
            {},
            {"max_tokens": 99, "max_completion_tokens": 5},
            {"max_completion_tokens": 5},
            id="the-newer-name-stands",
        ),
        pytest.param(
            _LOCAL,
            {"reasoning_effort": "low"},
            {"reasoning_effort": "high", "reasoning": {"effort": "high"}},
            {"reasoning_effort": "low"},
            id="reasoning",
        ),
        pytest.param(
            _ROUTER,
            {},
            {"response_format": {"type": "json_schema"}, "provider": {"order": ["a"]}},
            {
                "response_format": {"type": "json_schema"},
                "provider": {"require_parameters": True, "order": ["a"]},
                "usage": {"include": True},
            },
            id="router",
        ),
        pytest.param(_ROUTER, {}, {"usage": {"include": False}}, {"usage": {"include": True}}, id="usage"),
        pytest.param(
            _LOCAL,
            {"extra_body": {"top_a": 1, "stream": True, "provider": {"only": ["b"]}}},
            {"top_a": 2, "provider": {"order": ["a"]}},
            {"top_a": 1, "provider": {"order": ["a"], "only": ["b"]}},
            id="extra-body",
        ),
    ],
)
def test_what_the_user_has_set_wins_and_the_rest_passes(
    endpoint: Endpoint, sampling: Mapping[str, Any], stated: Mapping[str, Any], sent: Mapping[str, Any]
) -> None:
    found = passed_body(endpoint, Sampling(**sampling), body(**stated), repetition=2)
    assert found == {"model": endpoint.wire_model, "messages": body()["messages"], **sent}


def test_any_roles_parts_and_tools_go_out_in_their_order(provider: Provider) -> None:
    messages: JsonValue = [
        {"role": "developer", "content": [{"type": "text", "text": "Be brief"}]},
        {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,x"}}]},
        {"role": "assistant", "content": None, "tool_calls": [_TOOL_CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "a.txt"},
    ]
    tools: JsonValue = [{"type": "function", "function": {"name": "bash", "parameters": {"z": 1, "a": 2}}}]

    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            await item.complete({"tools": tools, "tool_choice": "auto", "messages": messages, "model": "x"})

    asyncio.run(check())
    (request,) = provider.requests
    wanted = {"tools": tools, "tool_choice": "auto", "messages": messages, "model": "test/good"}
    assert request.raw == json.dumps(wanted, separators=(",", ":")).encode()


@pytest.mark.parametrize(
    ("choice", "finish_reason"),
    [
        ({"finish_reason": "tool_calls", "message": {"tool_calls": [_TOOL_CALL]}}, "tool_calls"),
        ({"finish_reason": None, "message": {"content": None, "tool_calls": [_TOOL_CALL]}}, "tool_calls"),
        ({"finish_reason": "", "message": {"content": "", "tool_calls": [_TOOL_CALL]}}, "tool_calls"),
        ({"finish_reason": "stop", "message": {"content": {}, "tool_calls": [_TOOL_CALL]}}, "stop"),
    ],
)
def test_a_reply_that_only_calls_tools_is_a_good_one(choice: Mapping[str, Any], finish_reason: str) -> None:
    found = parse_reply(200, json.dumps({"choices": [choice]}).encode())
    assert isinstance(found, ParsedReply)
    assert (found.text, found.finish_reason) == ("", finish_reason)


@pytest.mark.parametrize("message", [{"content": ""}, {"content": None, "tool_calls": []}])
def test_a_reply_that_says_nothing_still_has_to_say_why_it_ended(message: Mapping[str, Any]) -> None:
    found = parse_reply(200, json.dumps({"choices": [{"finish_reason": None, "message": message}]}).encode())
    assert not isinstance(found, ParsedReply)


def test_the_reply_comes_back_byte_for_byte_with_its_tool_calls(provider: Provider) -> None:
    sent = b' {"choices": [{"finish_reason": "tool_calls", "message": {"content": null, "tool_calls": [{"id": 1}]}}]}\n'
    provider.answers(body=sent)

    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            raw = await item.complete(body())
            assert (raw.status, raw.body, raw.error) == (200, sent, None)
            assert raw.message()["tool_calls"] == [{"id": 1}]
            assert item.sums.finish_reason == "tool_calls"
        assert RawReply(400, b"").message() == {}

    asyncio.run(check())


def test_repeated_requests_of_an_item_are_requests_of_their_own(provider: Provider) -> None:
    async def check() -> None:
        async with wired() as coordinator:
            async with converse(coordinator.gateway, provider.url) as item:
                for text in ("a", "b", "a", "a"):
                    await item.complete(body(text))
            async with converse(coordinator.gateway, provider.url, "ROW-2") as other:
                await other.complete(body("a"))
        hashes = [record.request_hash for record in coordinator.attempts]
        first, b, second, third, elsewhere = hashes
        assert len({first, b, second, third}) == 4
        assert elsewhere == first
        assert [(record.code, record.sequence) for record in coordinator.attempts] == [
            *(("ROW-1", number) for number in range(1, 5)),
            ("ROW-2", 1),
        ]
        assert {record.purpose for record in coordinator.attempts} == {"pack"}

    asyncio.run(check())


def test_requests_that_differ_only_in_what_is_replaced_count_as_identical(provider: Provider) -> None:
    async def check() -> None:
        entry = with_sampling(seed=5)
        async with wired() as coordinator, converse(coordinator.gateway, provider.url, entry=entry) as item:
            await item.complete(body(seed=1))
            await item.complete({**body(seed=2), "model": "another"})
        assert coordinator.attempts[0].request_body == coordinator.attempts[1].request_body
        assert coordinator.attempts[0].request_hash != coordinator.attempts[1].request_hash

    asyncio.run(check())


def test_a_request_that_brought_nothing_gives_its_number_to_the_next(provider: Provider) -> None:
    provider.answers(times=1, status=400)

    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            assert [(await item.complete(body())).status for _ in range(3)] == [400, 200, 200]
        refused, first, second = (record.request_hash for record in coordinator.attempts)
        assert refused == first != second

    asyncio.run(check())


def test_an_item_is_told_what_its_calls_came_to(provider: Provider) -> None:
    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            assert item.sums.usage == Usage()
            assert item.sums.latency_ms is None
            provider.answers(times=1, usage={"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5})
            provider.answers(times=1, finish_reason="length", usage={"prompt_tokens": 5, "cost": 0.25})
            await item.complete(body())
            await item.complete(body())
            sums = item.sums
            assert sums.usage == Usage(prompt_tokens=15, completion_tokens=None, cost_usd=0.75)
            assert (sums.requests, sums.answered, sums.recalled) == (2, 2, 0)
            assert (sums.finish_reason, sums.provider_model) == ("length", "test/good")
            assert sums.reply_key == coordinator.attempts[-1].reply_key
            measured = sum(record.latency_ms for record in coordinator.attempts)
            assert sums.latency_ms == pytest.approx(measured)

    asyncio.run(check())


def test_a_reply_that_moderation_cut_is_an_error_and_is_paid(provider: Provider) -> None:
    provider.answers(finish_reason="content_filter", usage={"prompt_tokens": 10, "cost": 0.5})

    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            raw = await item.complete(body())
            assert raw.status == 400
            assert json.loads(raw.body)["error"]["code"] == "moderation"
            assert item.sums.usage.cost_usd == 0.5
            assert item.sums.answered == 0

    asyncio.run(check())


def test_a_fault_stays_open_until_the_same_request_is_answered(provider: Provider) -> None:
    provider.answers(times=2, status=400)

    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            await item.complete(body("a"))
            await item.complete(body("b"))
            await item.complete(body("b"))
            assert list(map(type, item.sums.open_faults)) == [CallFailedError]
            await item.complete(body("a"))
            assert not item.sums.open_faults
            await item.complete(body(n=2))
            await item.complete(body())
            assert list(map(type, item.sums.open_faults)) == [BadRequestError]
            assert (item.sums.requests, item.sums.answered) == (6, 3)

    asyncio.run(check())


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"n": 2}, "n: one choice per request is answered here; ask again for another"),
        ({"messages": []}, "messages: a list with at least one message is wanted"),
        ({"messages": "hello"}, "messages: a list with at least one message is wanted"),
        ({"messages": [{"content": "x"}]}, "messages[0]: an object with a role is wanted"),
        ({"messages": [{"role": "user"}, 3]}, "messages[1]: an object with a role is wanted"),
        (
            {"models": ["a", "b"]},
            "models: refused, since it would have another model answer than the one under test",
        ),
        (
            {"web_search_options": {}},
            "web_search_options: refused, since it would let the provider fetch what the request does not hold",
        ),
        (
            {"tools": [{"type": "web_search"}]},
            "tools[0]: refused, since it is no tool that the client runs (type function or custom)",
        ),
        (
            {"tools": ["bash"]},
            "tools[0]: refused, since it is no tool that the client runs (type function or custom)",
        ),
    ],
)
def test_what_cannot_be_passed_on_is_refused_with_a_sentence(
    provider: Provider, fields: Mapping[str, Any], sentence: str
) -> None:
    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            raw = await item.complete(body(**fields))
            error = json.loads(raw.body)["error"]
            assert (raw.status, error["message"], error["param"]) == (400, sentence, next(iter(fields)))
            assert error["type"] == "invalid_request_error"

    asyncio.run(check())
    assert provider.count == 0


def test_what_the_user_has_set_is_not_refused(provider: Provider) -> None:
    async def check() -> None:
        entry = with_sampling(extra_body={"plugins": [{"id": "web"}]})
        async with wired() as coordinator, converse(coordinator.gateway, provider.url, entry=entry) as item:
            assert (await item.complete(body(plugins=[]))).status == 200

    asyncio.run(check())
    assert provider.requests[0].body["plugins"] == [{"id": "web"}]


def test_a_body_too_deep_to_be_written_is_refused(provider: Provider) -> None:
    deep: list[Any] = []
    for _ in range(100_000):
        deep = [deep]

    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            raw = await item.complete(body(metadata=deep))
            assert json.loads(raw.body)["error"]["message"] == "the request body is nested too deeply"

    asyncio.run(check())


def test_the_bound_that_a_request_states_is_what_is_reserved_of_the_budget(provider: Provider) -> None:
    provider.answers(usage={"prompt_tokens": 1, "completion_tokens": 1})
    entry = ModelEntry("test/good", price=Price(0.0, 1e6))
    model_id = ModelLimits("test/good", 8, price=entry.price)

    async def check() -> None:
        limits = SessionLimits(8, max_cost_usd=10.0)
        connected = wired([model_id], limits=limits)
        async with connected as coordinator, converse(coordinator.gateway, provider.url, entry=entry) as item:
            assert (await item.complete(body(max_completion_tokens=10))).status == 200
            raw = await item.complete(body(max_tokens=11))
            assert isinstance(raw.error, BudgetSpentError)
            assert (raw.status, json.loads(raw.body)["error"]["code"]) == (402, "budget_spent")

    asyncio.run(check())
    assert provider.count == 1


def test_the_end_of_an_item_ends_its_calls_and_nothing_more_is_passed_on(provider: Provider) -> None:
    provider.answers(hang=True)

    async def check() -> None:
        async with wired() as coordinator:
            called: list[str] = []
            item = converse(coordinator.gateway, provider.url)
            item.call_at_end(lambda: called.append("once"))
            waiting = asyncio.create_task(item.complete(body()))
            gone = asyncio.create_task(item.complete(body()))
            await until(lambda: provider.in_flight == 2)
            gone.cancel()
            await asyncio.sleep(0)
            await item.end()
            await item.end()
            for raw in (await waiting, await item.complete(body())):
                assert (raw.status, type(raw.error)) == (410, ItemEndedError)
            assert called == ["once"]
            assert coordinator.gate.in_flight == 0
            assert [record.error for record in coordinator.attempts] == ["cancelled"] * 2
            assert [type(fault) for fault in item.sums.open_faults] == [ClientGaveUpError]
            item.call_at_end(lambda: called.append("late"))
            assert called == ["once", "late"]

    asyncio.run(check())


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (NotStoredError("the disk at /home/me is full"), 503, "session_ending"),
        (RefusedError("--helmbench-max-cost cannot be held"), 503, "session_ending"),
        (ModelStoppedError("check the key in MY_KEY"), 503, "model_stopped"),
        (
            CallFailedError(Fault(FaultKind.REJECTED, None, "record_unreadable", "x"), 0),
            500,
            "record_unreadable",
        ),
        (CallFailedError(Fault(FaultKind.REJECTED, 307, "redirected", "x"), 1), 400, "redirected"),
        (CallFailedError(Fault(FaultKind.TRANSIENT, 409, "provider_error", "x"), 1), 503, "provider_error"),
        (HelmbenchError("MY_KEY"), 500, "internal_error"),
    ],
)
def test_every_error_has_a_status_and_says_nothing_of_the_session(
    error: HelmbenchError, status: int, code: str
) -> None:
    found, told = failure_of(error, _LOCAL)
    assert (found, json.loads(told)["error"]["code"]) == (status, code)
    for word in (b"/home/me", b"MY_KEY", b"--helmbench"):
        assert word not in told


def test_a_cancelled_session_cancels_whoever_asks(provider: Provider) -> None:
    async def check() -> None:
        async with wired() as coordinator:
            async with converse(coordinator.gateway, provider.url, watch=Onlooker(stopped=True)) as item:
                with pytest.raises(asyncio.CancelledError):
                    await item.complete(body())
            assert coordinator.gate.in_flight == 0

    asyncio.run(check())
    assert provider.count == 0


def test_who_hangs_up_pays_once_and_may_come_back_for_the_reply(provider: Provider) -> None:
    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url) as item:
            provider.answers(times=1, text="late", latency_s=0.1)
            for _ in range(2):  # the second takes the first one's call over, and hangs up too
                waiting = asyncio.create_task(item.complete(body()))
                await until(lambda: provider.in_flight)
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            await until(lambda: coordinator.attempts)
            assert item.sums.answered == 1
            raw = await item.complete(body())
            assert raw.reply is not None
            assert raw.reply.text == "late"
            assert provider.count == 1
            assert (await item.complete(body())).message()["content"] == "ok"
            assert coordinator.attempts[0].request_hash != coordinator.attempts[1].request_hash

    asyncio.run(check())


def test_a_call_that_nobody_waits_for_ends_after_a_grace(provider: Provider) -> None:
    provider.answers(times=1, hang=True)

    async def check() -> None:
        async with wired() as coordinator, converse(coordinator.gateway, provider.url, grace_s=0.02) as item:
            waiting = asyncio.create_task(item.complete(body()))
            await until(lambda: provider.in_flight)
            waiting.cancel()
            await until(lambda: coordinator.attempts)
            assert coordinator.attempts[0].error == "cancelled"
            assert (await item.complete(body())).status == 200
            assert coordinator.attempts[1].request_hash == coordinator.attempts[0].request_hash

    asyncio.run(check())
    assert provider.count == 2


def test_an_item_holds_its_place_while_one_of_its_calls_sleeps(provider: Provider) -> None:
    class Sleepless(Onlooker):
        def asleep(self) -> Any:
            raise AssertionError("the item's own code runs on")

    provider.answers(times=1, status=429, retry_after=0.01)

    async def check() -> None:
        async with (
            wired() as coordinator,
            converse(coordinator.gateway, provider.url, watch=Sleepless()) as item,
        ):
            assert (await item.complete(body())).status == 200
        assert [record.status_code for record in coordinator.attempts] == [429, 200]

    asyncio.run(check())


def test_an_item_whose_time_is_up_sends_nothing_more(provider: Provider) -> None:
    async def check() -> None:
        now = 0.0
        async with wired(patience=Patience(case_timeout_s=5)) as coordinator:
            plain = converse(coordinator.gateway, provider.url)
            clock = CaseClock(coordinator.gateway.patience, lambda: now)
            async with Conversation(coordinator.gateway, plain.line, clock, Onlooker()) as item:
                with clock.running():
                    now = 6.0
                raw = await item.complete(body())
                assert (raw.status, json.loads(raw.body)["error"]["code"]) == (504, "timeout")

    asyncio.run(check())
    assert provider.count == 0


def test_an_error_of_our_own_reaches_the_item(provider: Provider) -> None:
    def broken(_record: AttemptRecord) -> None:
        raise MemoryError("no room for the record")

    async def check() -> None:
        gate = Limiter(SessionLimits(1), lambda: 0.0)
        gate.add_models([ModelLimits("test/good", 1)])
        results: list[ResultRecord] = []
        gateway = Gateway(LocalBackend(gate, broken, results.append), ChatClient(), Patience())
        item = converse(gateway, provider.url)
        with pytest.raises(MemoryError):
            await item.complete(body())
        with pytest.raises(MemoryError, match="no room for the record"):
            await item.end()
        assert gate.in_flight == 0
        await gateway.close()

    asyncio.run(check())


def test_what_a_client_is_told_names_no_address_and_no_key(provider: Provider) -> None:
    host = provider.url.removeprefix("http://").removesuffix("/v1")

    def quoting(request: Request) -> Answer:
        said = f"no: {request.headers['authorization']} at {provider.url} or {host.upper()}"
        return Answer(status=400, body={"error": {"message": said, "param": "messages"}})

    provider.reply = quoting

    async def check() -> None:
        async with wired() as coordinator:
            plain = converse(coordinator.gateway, provider.url)
            found = resolve_endpoint(
                plain.line.entry,
                default_base_url=said(provider.url),
                default_key_env=said("MY_KEY"),
                environ={"MY_KEY": "a-key-that-is-secret"},
            )
            assert isinstance(found, Endpoint)
            line = type(plain.line)(plain.line.origin, plain.line.entry, found, "agent")
            async with Conversation(
                coordinator.gateway, line, CaseClock(coordinator.gateway.patience), Onlooker()
            ) as item:
                raw = await item.complete(body())
            text = raw.body.decode()
            assert "[address]" in text
            assert json.loads(raw.body)["error"]["param"] == "messages"
            for secret in ("a-key-that-is-secret", "MY_KEY", "127.0.0.1", host):
                assert secret not in text

    asyncio.run(check())
