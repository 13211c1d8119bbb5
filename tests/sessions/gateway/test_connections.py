"""Connections of the HTTP client: kept, broken, secured and through proxies, each against a real server."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest
from certificates import write_certificate
from gateways import chat_client
from provider import Provider
from rights import granted
from waiting import PATIENCE_S

from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.faults import FaultKind
from pytest_helmbench.gateway.http_answers import TransportError
from pytest_helmbench.gateway.providers.endpoints import Endpoint, resolve_endpoint

_OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
Turn = Callable[[int, asyncio.StreamWriter], Awaitable[None]]


class Server:
    """Reads requests off each connection, and answers the nth as the test says."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self.heads: list[str] = []
        self.connections = 0
        self.open: set[asyncio.StreamWriter] = set()

    async def speak(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        self.open.add(writer)
        try:
            while not writer.is_closing():
                head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
                size = int(head.partition("content-length: ")[2].partition("\r\n")[0] or 0)
                await reader.readexactly(size)
                self.heads.append(head)
                await self._turn(len(self.heads), writer)
                await writer.drain()
        except (asyncio.IncompleteReadError, OSError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def served(turn: Turn, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[Server, int]]:
    server = Server(turn)
    listening = await asyncio.start_server(server.speak, "127.0.0.1", 0, ssl=tls)
    async with listening:
        yield server, listening.sockets[0].getsockname()[1]
    await asyncio.gather(*map(_closed, server.open))


async def _closed(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def endpoint(base_url: str) -> Endpoint:
    environ = {"HELMBENCH_API_KEY": "sk-hidden-SECRET-0123456789"}
    found = resolve_endpoint(
        ModelEntry("test/good"), default_base_url=granted(base_url), default_key_env=None, environ=environ
    )
    assert isinstance(found, Endpoint)
    return found


async def _ok(_number: int, writer: asyncio.StreamWriter) -> None:
    writer.write(_OK)


def test_what_was_sent_on_a_kept_connection_that_breaks_is_not_sent_again() -> None:
    """It may have been answered, and is paid for then: whether to ask again is not the client's to say."""

    async def breaks(number: int, writer: asyncio.StreamWriter) -> None:
        if number == 1:
            writer.write(_OK)
        else:
            writer.close()

    async def run() -> int:
        async with served(breaks) as (server, port), chat_client() as client:
            at = endpoint(f"http://127.0.0.1:{port}/v1")
            await client.post(at, b"{}", 5)
            with pytest.raises(TransportError) as caught:
                await client.post(at, b'{"dear": true}', 5)
            assert (caught.value.fault.kind, caught.value.fault.reason) == (FaultKind.TRANSIENT, "reset")
            return len(server.heads)

    assert asyncio.run(run()) == 2


def test_a_kept_connection_that_the_server_has_closed_is_made_anew() -> None:
    """Without a word in the head, and long before libcurl would look."""

    async def closes(_number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(_OK)
        await writer.drain()
        writer.close()

    async def run() -> int:
        async with served(closes) as (server, port), chat_client() as client:
            for _ in range(3):
                assert (
                    await client.post(endpoint(f"http://127.0.0.1:{port}/v1"), b"{}", PATIENCE_S)
                ).body == b"{}"
                await asyncio.sleep(0.05)
            return server.connections

    assert asyncio.run(run()) == 3


async def test_a_cancelled_transfer_closes_its_connection() -> None:
    asked, gone = asyncio.Event(), asyncio.Event()

    async def waits(_number: int, writer: asyncio.StreamWriter) -> None:
        asked.set()
        while not writer.transport.is_closing():
            await asyncio.sleep(0.01)
            writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        gone.set()

    async with served(waits) as (_, port), chat_client() as client:
        task = asyncio.create_task(client.post(endpoint(f"http://127.0.0.1:{port}/v1"), b"{}", PATIENCE_S))
        await asyncio.wait_for(asked.wait(), PATIENCE_S)
        task.cancel()
        await asyncio.wait_for(gone.wait(), PATIENCE_S)


async def test_what_raises_while_it_takes_an_event_is_heard_of() -> None:
    async def stream(_number: int, writer: asyncio.StreamWriter) -> None:
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 11\r\n\r\ndata: {}\n\n\n"
        )

    def take(_event: bytes) -> None:
        raise LookupError("no client takes it")

    async with served(stream) as (_, port), chat_client() as client:
        at = endpoint(f"http://127.0.0.1:{port}/v1")
        with pytest.raises(LookupError, match="no client takes it"):
            await client.post(at, b"{}", 5, take)
        assert (await client.post(at, b"{}", PATIENCE_S)).status == 200


class _LoopOfWindows(asyncio.SelectorEventLoop):
    """One that watches no sockets of others."""

    add_reader = asyncio.AbstractEventLoop.add_reader
    add_writer = asyncio.AbstractEventLoop.add_writer


def test_a_loop_that_watches_no_sockets_of_others_will_do(provider: Provider) -> None:
    provider.latency_s = 0.05

    async def run() -> list[int]:
        async with chat_client() as client:
            at = endpoint(provider.url)
            answers = await asyncio.gather(*(client.post(at, b"{}", 5) for _ in range(20)))
            await asyncio.sleep(0.05)
            answers.append(await client.post(at, b"{}", PATIENCE_S))
            return [answer.status for answer in answers]

    with asyncio.Runner(loop_factory=_LoopOfWindows) as runner:
        assert runner.run(run()) == [200] * 21


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, ssl.SSLContext]:
    """Return the certificate of an unknown server, and what the server shows."""
    known, key = write_certificate(tmp_path_factory.mktemp("authority"), address="127.0.0.1")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(known, key)
    return known, context


def test_certificates_are_those_that_python_trusts(
    authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch
) -> None:
    known, context = authority

    async def ask() -> bytes:
        async with served(_ok, context) as (_, port), chat_client() as client:
            return (await client.post(endpoint(f"https://127.0.0.1:{port}/v1"), b"{}", PATIENCE_S)).body

    with pytest.raises(TransportError) as caught:
        asyncio.run(ask())
    assert (caught.value.fault.kind, caught.value.fault.reason) == (FaultKind.DEAD_MODEL, "tls")
    assert "certificate" in caught.value.fault.message

    monkeypatch.setenv("SSL_CERT_FILE", str(known))
    assert asyncio.run(ask()) == b"{}"


@pytest.mark.parametrize("status", [200, 407])
def test_a_proxy_is_asked_for_a_tunnel_to_an_https_address(
    authority: tuple[Path, ssl.SSLContext], monkeypatch: pytest.MonkeyPatch, status: int
) -> None:
    known, context = authority
    monkeypatch.setenv("SSL_CERT_FILE", str(known))
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    asked: list[str] = []

    async def run() -> None:
        tunnels: list[asyncio.Task[None]] = []

        async def tunnel(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            tunnels.append(asyncio.current_task())  # type: ignore[arg-type]
            asked.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(b"HTTP/1.1 %d Told\r\nContent-Length: 0\r\n\r\n" % status)
            if status == 200:
                there = await asyncio.open_connection("127.0.0.1", far)
                await asyncio.gather(_pour(reader, there[1]), _pour(there[0], writer))
            await _closed(writer)

        async with (
            served(_ok, context) as (server, far),
            await asyncio.start_server(tunnel, "127.0.0.1", 0) as proxy,
        ):
            port = proxy.sockets[0].getsockname()[1]
            monkeypatch.setenv("https_proxy", f"http://me:p%40ss@127.0.0.1:{port}")
            try:
                async with chat_client() as client:
                    await client.post(endpoint("https://far.example/v1"), b"{}", 5)
            finally:
                await asyncio.gather(*tunnels)
                assert server.heads == []

    with pytest.raises(TransportError) as caught:
        asyncio.run(run())
    fault = caught.value.fault
    assert asked[0].startswith("CONNECT far.example:443 HTTP/1.1\r\n")
    assert "Proxy-Authorization: Basic bWU6cEBzcw==" in asked[0]
    assert "sk-hidden" not in asked[0]
    if status == 407:
        assert (fault.kind, fault.reason, fault.status) == (FaultKind.TRANSIENT, "proxy", 407)
    else:
        assert (fault.kind, fault.reason) == (FaultKind.DEAD_MODEL, "tls")  # the name is another


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(65536):
        writer.write(chunk)
    await _closed(writer)
