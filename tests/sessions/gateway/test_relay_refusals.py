"""Requests that a relayed conversation refuses, and the state after a fault."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from gateways import StoppableWatch, endpoint_from, open_gateway
from provider import Answer, Provider, Request
from relays import body, converse, with_sampling
from rights import granted

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.call import CaseClock
from pytest_helmbench.gateway.faults import CallFailedError, Fault, FaultKind
from pytest_helmbench.gateway.permits import (
    ModelStoppedError,
    NotStoredError,
    RefusedError,
)
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.relay.conversation import Conversation
from pytest_helmbench.gateway.relay.refusals import BadRequestError, failure_of

_LOCAL = endpoint_from("ollama/m")


async def test_a_fault_stays_open_until_the_same_request_is_answered(provider: Provider) -> None:
    provider.answers(times=2, status=400)

    async with open_gateway() as coordinator, converse(coordinator.gateway, provider.url) as item:
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


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"n": 2}, "n: one choice per request is answered here; ask again for another"),
        ({"messages": []}, "messages: a list with at least one message is wanted"),
        ({"messages": [{"content": "x"}]}, "messages[0]: an object with a role is wanted"),
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
    ],
)
async def test_what_cannot_be_passed_on_is_refused_with_a_sentence(
    provider: Provider, fields: Mapping[str, Any], sentence: str
) -> None:
    async with open_gateway() as coordinator, converse(coordinator.gateway, provider.url) as item:
        raw = await item.complete(body(**fields))
        error = json.loads(raw.body)["error"]
        assert (raw.status, error["message"], error["param"]) == (400, sentence, next(iter(fields)))
        assert error["type"] == "invalid_request_error"
    assert provider.count == 0


async def test_what_the_user_has_set_is_not_refused(provider: Provider) -> None:
    entry = with_sampling(extra_body={"plugins": [{"id": "web"}]})
    async with (
        open_gateway() as coordinator,
        converse(coordinator.gateway, provider.url, entry=entry) as item,
    ):
        assert (await item.complete(body(plugins=[]))).status == 200
    assert provider.requests[0].body["plugins"] == [{"id": "web"}]


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


async def test_what_a_client_is_told_names_no_address_and_no_key(provider: Provider) -> None:
    host = provider.url.removeprefix("http://").removesuffix("/v1")

    def quoting(request: Request) -> Answer:
        said = f"no: {request.headers['authorization']} at {provider.url} or {host.upper()}"
        return Answer(status=400, body={"error": {"message": said, "param": "messages"}})

    provider.reply = quoting

    async with open_gateway() as coordinator:
        plain = converse(coordinator.gateway, provider.url)
        found = resolve_endpoint(
            plain.line.entry,
            default_base_url=granted(provider.url),
            default_key_env=granted("MY_KEY"),
            environ={"MY_KEY": "a-key-that-is-secret"},
        )
        assert isinstance(found, Endpoint)
        line = type(plain.line)(plain.line.origin, plain.line.entry, found, "agent")
        async with Conversation(
            coordinator.gateway, line, CaseClock(coordinator.gateway.patience), StoppableWatch()
        ) as item:
            raw = await item.complete(body())
        text = raw.body.decode()
        assert "[address]" in text
        assert json.loads(raw.body)["error"]["param"] == "messages"
        for secret in ("a-key-that-is-secret", "MY_KEY", "127.0.0.1", host):
            assert secret not in text
