"""The requests of one item, without HTTP: what goes out and what is counted."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from gateways import endpoint_from, open_gateway
from provider import Provider
from relays import body, converse

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.model import ModelEntry, Price, Sampling
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.permits import BudgetSpentError, ModelLimits, SessionLimits
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.requests import passed_body

_TOOL_CALL: JsonValue = {
    "id": "c1",
    "type": "function",
    "function": {"name": "bash", "arguments": '{"command": "ls"}'},
}


_OPENAI = endpoint_from("openai/gpt", OPENAI_API_KEY="key-of-openai")
_ROUTER = endpoint_from("vendor/m", OPENROUTER_API_KEY="key-of-router")
_LOCAL = endpoint_from("ollama/m")


@pytest.mark.parametrize(
    ("endpoint", "sampling", "stated", "sent"),
    [
        pytest.param(_LOCAL, {}, {"seed": 1, "mine": [1]}, {"seed": 1, "mine": [1]}, id="unset-passes"),
        pytest.param(_LOCAL, {"seed": 7}, {"seed": 1}, {"seed": 8}, id="set-wins"),
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


async def test_a_request_that_brought_nothing_gives_its_number_to_the_next(provider: Provider) -> None:
    provider.answers(times=1, status=400)

    async with open_gateway() as coordinator, converse(coordinator.gateway, provider.url) as item:
        assert [(await item.complete(body())).status for _ in range(3)] == [400, 200, 200]
    refused, first, second = (record.request_hash for record in coordinator.attempts)
    assert refused == first != second


async def test_an_item_is_told_what_its_calls_came_to(provider: Provider) -> None:
    async with open_gateway() as coordinator, converse(coordinator.gateway, provider.url) as item:
        assert item.sums.usage == Usage()
        assert item.sums.latency_ms is None
        provider.answers(times=1, usage={"prompt_tokens": 10, "completion_tokens": 2, "cost": 0.5})
        provider.answers(times=1, finish_reason="length", usage={"prompt_tokens": 5, "cost": 0.25})
        await item.complete(body())
        await item.complete(body())
        sums = item.sums
        assert sums.usage == Usage(prompt_tokens=15, completion_tokens=None, cost_usd=0.75)
        assert (sums.requests, sums.answered, sums.recalled) == (2, 2, 0)
        assert sums.reply_key == coordinator.attempts[-1].reply_key
        measured = sum(record.latency_ms for record in coordinator.attempts)
        assert sums.latency_ms == pytest.approx(measured)


async def test_the_bound_that_a_request_states_is_what_is_reserved_of_the_budget(provider: Provider) -> None:
    provider.answers(usage={"prompt_tokens": 1, "completion_tokens": 1})
    entry = ModelEntry("test/good", price=Price(0.0, 1e6))
    model_id = ModelLimits("test/good", 8, price=entry.price)

    limits = SessionLimits(8, max_cost_usd=10.0)
    connected = open_gateway([model_id], limits=limits)
    async with connected as coordinator, converse(coordinator.gateway, provider.url, entry=entry) as item:
        assert (await item.complete(body(max_completion_tokens=10))).status == 200
        raw = await item.complete(body(max_tokens=11))
        assert isinstance(raw.error, BudgetSpentError)
        assert (raw.status, json.loads(raw.body)["error"]["code"]) == (402, "budget_spent")
    assert provider.count == 1
