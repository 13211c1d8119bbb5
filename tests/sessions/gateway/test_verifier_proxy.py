"""Verifier proxies: requests and answers pass unchanged, and faults of the verifier are kept."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from verifiers import Upstream, free_port, plain
from waiting import PATIENCE_S

from pytest_helmbench.gateway.relay.verifier_client import failed_health
from pytest_helmbench.gateway.relay.verifier_proxy import VerifierProxy


@asynccontextmanager
async def _proxied(upstream: str) -> AsyncIterator[tuple[VerifierProxy, aiohttp.ClientSession]]:
    proxy = VerifierProxy("checker", upstream)
    await proxy.listen()
    try:
        async with aiohttp.ClientSession(auto_decompress=False) as client:
            yield proxy, client
    finally:
        await proxy.close()


def _with_upstream(
    check: Callable[[Upstream, VerifierProxy, aiohttp.ClientSession], Awaitable[None]],
    *answers: bytes | Callable[[], Any],
) -> None:
    async def run() -> None:
        async with (
            asyncio.timeout(20),
            Upstream(*(answers or (plain(),))) as upstream,
            _proxied(upstream.url) as (proxy, client),
        ):
            await check(upstream, proxy, client)

    asyncio.run(run())


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_a_request_and_its_answer_pass_as_they_are(method: str) -> None:
    body = b"" if method in ("GET", "HEAD", "OPTIONS") else b'{"x": 1}'
    answer = b"" if method == "HEAD" else b"created"

    async def check(upstream: Upstream, proxy: VerifierProxy, client: aiohttp.ClientSession) -> None:
        headers = {"X-Own": "a", "Authorization": "Bearer t", "Connection": "X-Hop", "X-Hop": "1", "TE": "x"}
        asked = client.request(
            method, f"{proxy.url}/a%2Fb/../c?q=1&q=%20", data=body or None, headers=headers
        )
        async with asked as got:
            assert (got.status, got.reason, await got.read()) == (201, "Made", answer)
            assert got.headers["X-Answer"] == "b"
            assert got.headers.getall("Set-Cookie") == ["c=1", "d=2"]
        (seen,) = upstream.seen
        # The client itself takes `..` out.
        assert seen.line == f"{method} /c?q=1&q=%20 HTTP/1.1"
        assert seen.body == body
        assert (seen.headers["x-own"], seen.headers["authorization"]) == ("a", "Bearer t")
        assert f"http://{seen.headers['host']}" == upstream.url
        assert not {"x-hop", "te", "keep-alive"} & set(seen.headers)
        assert seen.headers.get("content-length") == (str(len(body)) if body else None)
        assert proxy.fault is None

    _with_upstream(
        check,
        plain("201 Made", b"created", "X-Answer: b", "Set-Cookie: c=1", "Set-Cookie: d=2")[
            : -7 if method == "HEAD" else None
        ],
    )


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        ("404 Not Found", None),
        (
            "500 Internal Server Error",
            "verifier 'checker' answered 500: POST /verify?n=1\n  it said: said why",
        ),
    ],
)
def test_an_answer_of_the_500s_is_a_fault_and_the_first_one_stays(status: str, fault: str | None) -> None:
    async def check(upstream: Upstream, proxy: VerifierProxy, client: aiohttp.ClientSession) -> None:
        async with client.post(f"{proxy.url}/verify?n=1", data=b"x") as got:
            assert (got.status, await got.read()) == (int(status[:3]), b"said why")
        upstream.answers = (plain(),)
        async with client.get(f"{proxy.url}/later") as got:
            assert got.status == 200
        assert proxy.fault == fault

    _with_upstream(check, plain(status, b"said why"))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (b"", "gave no answer (it closed the connection): GET /x"),
        (b"not HTTP\r\n\r\n", "gave no answer (its answer is not HTTP): GET /x"),
        (plain("200 OK", b"0123456789")[:-3], "gave no answer (its end is missing or damaged): GET /x"),
    ],
)
def test_half_an_answer_is_a_fault(answer: bytes, fault: str) -> None:
    async def check(upstream: Upstream, proxy: VerifierProxy, client: aiohttp.ClientSession) -> None:
        async with client.get(f"{proxy.url}/x") as got:
            assert got.status == 502
        assert proxy.fault == f"verifier 'checker' {fault}"

    _with_upstream(check, answer)


def test_a_request_that_is_too_large_is_refused_and_no_fault_of_the_verifier(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pytest_helmbench.gateway.relay.verifier_proxy._MOST_BYTES", 1000)

    async def check(upstream: Upstream, proxy: VerifierProxy, client: aiohttp.ClientSession) -> None:
        async with client.post(f"{proxy.url}/x", data=b"x" * 1001) as got:
            assert got.status == 413
        assert (proxy.fault, upstream.seen) == (None, [])

    _with_upstream(check)


def test_a_request_to_somewhere_else_is_refused() -> None:
    async def check(upstream: Upstream, proxy: VerifierProxy, client: aiohttp.ClientSession) -> None:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"GET http://169.254.169.254/latest HTTP/1.1\r\nHost: x\r\n\r\n")
        said = await reader.read()
        writer.close()
        assert said.startswith(b"HTTP/1.1 400 Bad Request\r\n")
        assert json.loads(said.rpartition(b"\r\n\r\n")[2]) == {"error": "the request names no path"}
        assert (proxy.fault, upstream.seen) == (None, [])

    _with_upstream(check)


def test_who_goes_away_leaves_no_fault() -> None:
    asked, answered = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        asked.set()
        await answered.wait()

    async def check(upstream: Upstream, proxy: VerifierProxy, client: aiohttp.ClientSession) -> None:
        request = asyncio.create_task(client.post(f"{proxy.url}/x", data=b"x"))
        await asked.wait()
        request.cancel()
        await asyncio.wait((request,))
        await proxy.close()
        answered.set()
        assert proxy.fault is None

    _with_upstream(check, hold, plain())


@pytest.mark.parametrize(
    ("answer", "saw"),
    [
        (plain(), None),
        (plain("302 Found", b"", "Location: /well"), "it answered 302"),
        (plain("503 Service Unavailable", b""), "it answered 503"),
        (b"", "it closed the connection"),
    ],
)
async def test_only_a_2xx_passes_a_health_check(answer: bytes, saw: str | None) -> None:
    async with Upstream(answer) as upstream:
        assert await failed_health(f"{upstream.url}/health", 0.4) == saw
        assert upstream.seen[0].line == "GET /health HTTP/1.1"


async def test_a_health_check_waits_for_a_server_that_starts_late_and_gives_one_up_that_hangs() -> None:
    port = free_port()
    looking = asyncio.create_task(failed_health(f"http://127.0.0.1:{port}/health", PATIENCE_S))
    await asyncio.sleep(0.05)

    async with Upstream(plain(), port=port):
        assert await looking is None
    assert await failed_health(f"http://127.0.0.1:{port}/health", 0.3) == "Connection refused"
    async with Upstream(asyncio.Event().wait) as hanging:
        assert await failed_health(f"{hanging.url}/health", 0.3) == "it did not answer"
