"""The HTTP client against a real server."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest
from gateways import chat_client
from provider import Answer, Provider
from rights import granted

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import ModelEntry, Sampling
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.gateway.client import MAX_BODY_BYTES, ChatClient
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.http_answers import RawAnswer, TransportError
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint
from pytest_helmbench.gateway.replies import encode, parse_reply
from pytest_helmbench.gateway.requests import request_body

KEY = "sk-hidden-SECRET-0123456789"
T = TypeVar("T")
SCHEMA: JsonObject = {
    "type": "json_schema",
    "json_schema": {
        "name": "S1",
        "schema": {"type": "object", "properties": {"category": {"enum": ["CHAT", "TASK"]}}},
    },
}


def endpoint(base_url: str, model: str = "test/good", key: str | None = KEY) -> Endpoint:
    environ = {} if key is None else {"HELMBENCH_API_KEY": key}
    found = resolve_endpoint(
        ModelEntry(model), default_base_url=granted(base_url), default_key_env=None, environ=environ
    )
    assert isinstance(found, Endpoint)
    return found


def with_client(work: Callable[[ChatClient], Coroutine[Any, Any, T]]) -> T:
    async def run() -> T:
        async with chat_client() as client:
            return await work(client)

    return asyncio.run(run())


def post(at: Endpoint, body: bytes = b"{}", timeout_s: float = 10) -> RawAnswer:
    return with_client(lambda client: client.post(at, body, timeout_s))


def fault_of(at: Endpoint, timeout_s: float = 10) -> Fault:
    with pytest.raises(TransportError) as caught:
        post(at, timeout_s=timeout_s)
    assert KEY not in repr(caught.value)
    assert caught.value.__context__ is None  # the library's errors hold the request's headers
    return caught.value.fault


def test_a_question_gets_its_reply(provider: Provider) -> None:
    at = endpoint(provider.url)
    sent = encode(
        request_body(at, Sampling(), [Message("user", "Grüße\nANSWER: TASK")], SCHEMA, repetition=1)
    )
    answer = post(at, sent)
    found = parse_reply(answer.status, answer.body, headers=answer.headers, endpoint=at)
    assert isinstance(found, Reply)
    assert json.loads(found.text) == {"category": "TASK"}
    assert found.usage == Usage(4, 5, 3, 2, 0.001)
    assert answer.headers["content-type"] == "application/json"
    assert (answer.latency_ms or 0) > 0
    (request,) = provider.requests
    assert request.raw == sent
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["user-agent"].startswith("pytest-helmbench/")
    assert "cookie" not in request.headers


def test_netrc_and_cookies_play_no_part(
    provider: Provider, monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine localhost login me password secret\n")
    netrc.chmod(0o600)
    monkeypatch.setenv("NETRC", str(netrc))
    # By name: cookies of bare addresses are dropped by every jar.
    named = provider.url.replace("127.0.0.1", "localhost")
    provider.answers(headers={"Set-Cookie": "a=b"})

    async def twice(client: ChatClient) -> None:
        await client.post(endpoint(named, key=None), b"{}", 10)
        await client.post(endpoint(named, key=None), b"{}", 10)

    with_client(twice)
    assert all(not {"authorization", "cookie"} & set(request.headers) for request in provider.requests)


def test_a_key_that_the_server_repeats_is_cut_out(provider: Provider) -> None:
    provider.answers(status=401, body={"error": f"wrong key {KEY}"})
    assert post(endpoint(provider.url)).body == b'{"error": "wrong key [key]"}'
    # A placeholder is not a secret: replies are left as they are.
    provider.answers(body=b"EMPTY")
    assert post(endpoint(provider.url, key="EMPTY")).body == b"EMPTY"


def test_nobody_listens(unused_port: int) -> None:
    found = fault_of(endpoint(f"http://127.0.0.1:{unused_port}/v1"))
    assert (found.kind, found.reason, found.status) == (FaultKind.TRANSIENT, "unreachable", None)
    assert found.message.startswith(f"the provider at http://127.0.0.1:{unused_port}/v1 cannot be reached (")
    assert "refused" in found.message
    assert found.hint == "start the server, or check the port in the base URL"


@pytest.mark.parametrize("answer", [Answer(hang=True), Answer(drip=True), Answer(latency_s=5)])
def test_time_is_bounded_for_silence_and_for_an_endless_drip(provider: Provider, answer: Answer) -> None:
    provider.reply = lambda _request: answer
    found = fault_of(endpoint(provider.url), timeout_s=0.2)
    assert found.kind is FaultKind.TIMEOUT
    assert found.text() == (
        "the provider gave no whole answer within 0.2 s\n"
        "  hint: raise --helmbench-timeout, or lower --helmbench-concurrency"
    )


def test_size_is_bounded_with_and_without_an_announced_length(provider: Provider) -> None:
    provider.answers(times=1, huge=MAX_BODY_BYTES + 1)
    provider.answers(times=1, body=b"x", headers={"Content-Length": str(10**12)}, truncated=True)
    provider.answers(
        times=1, body=gzip.compress(b" " * (MAX_BODY_BYTES + 1)), headers={"Content-Encoding": "gzip"}
    )
    nested = gzip.compress(gzip.compress(b" " * (MAX_BODY_BYTES + 1)))
    provider.answers(times=1, body=nested, headers={"Content-Encoding": "gzip, gzip"})
    for _ in range(4):
        found = fault_of(endpoint(provider.url))
        assert (found.kind, found.status) == (FaultKind.TOO_LARGE, 200)
        assert found.text() == (
            "the provider's answer is larger than 32 MiB\n  hint: bound it with --helmbench-max-tokens"
        )


def test_what_is_no_http(unused_port: int) -> None:
    async def speak(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"SSH-2.0-OpenSSH\r\n\r\n")
        await writer.drain()
        writer.close()

    async def run() -> Fault:
        async with await asyncio.start_server(speak, "127.0.0.1", unused_port), chat_client() as client:
            with pytest.raises(TransportError) as caught:
                await client.post(endpoint(f"http://127.0.0.1:{unused_port}/v1"), b"{}", 10)
            return caught.value.fault

    found = asyncio.run(run())
    assert (found.kind, found.message) == (
        FaultKind.MALFORMED,
        "the provider answered with something that is not HTTP",
    )


def test_a_proxy_of_the_environment_is_used_but_never_for_this_machine(
    provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    proxy = provider.url.removesuffix("/v1").replace("http://", "http://me:p%40ss@")
    monkeypatch.setenv("http_proxy", proxy)
    assert post(endpoint("http://far.example/v1")).status == 200
    (request,) = provider.requests
    assert request.path == "http://far.example/v1/chat/completions"
    assert request.headers["proxy-authorization"] == "Basic bWU6cEBzcw=="
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    assert post(endpoint(provider.url)).status == 200


@pytest.fixture
def unused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
