"""An address of its own for every item in front of a verifier: what passes is counted, and faults are noted."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import time
from collections.abc import AsyncIterator, Iterable
from http import HTTPStatus
from urllib.parse import urlsplit

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt, without_surrogates

__all__ = ["CountingProxies", "CountingProxy", "ProxyBounds"]

_LOOPBACK = "127.0.0.1"
_BACKLOG = 128
_CONNECT_S = 10.0
_STOP_S = 0.2
_KEPT = 4_096  # bytes of an answer of 500
_WORDS_SHOWN = 500
_SHOWN = 120
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_ONE_LOOK_S = 5.0
_NO_ANSWER = "it did not answer"
# Between two stations only, not from end to end.
_OF_ONE_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection")
) | frozenset(("te", "trailer", "transfer-encoding", "upgrade", "expect"))
_NAMING_URLS = ("Location", "Content-Location")
_FILLED_IN = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_SILENT = logging.Logger("pytest_helmbench.gateway.relay.counting_proxy", logging.CRITICAL + 1)


@dataclass(frozen=True, slots=True)
class ProxyBounds:
    """What may pass.

    Args:
        body_bytes: Largest request, and largest answer.
    """

    body_bytes: int = 128 * 2**20


class _Sent:
    """The body of a request, piece by piece.

    Args:
        request: Whose body it is.
        most_bytes: It is given up behind so many.
    """

    def __init__(self, request: web.BaseRequest, most_bytes: int) -> None:
        self.too_large = False
        """That it was given up; the HTTP library does not let our own errors through."""
        self._request = request
        self._left = most_bytes

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body as it comes."""
        while chunk := await self._request.content.readany():
            self._left -= len(chunk)
            if self._left < 0:
                self.too_large = True
                raise web.RequestPayloadError
            yield chunk


class CountingProxy:
    """One address in front of one verifier, for one item.

    Args:
        name: The verifier's id.
        upstream: Where it is; it never reaches who asks here.
        session: Makes the requests.
        bounds: Of what passes.
    """

    def __init__(self, name: str, upstream: str, session: aiohttp.ClientSession, bounds: ProxyBounds) -> None:
        self.port = 0
        self.asked = 0
        """Requests that came in."""
        self.fault: str | None = None
        """The first time that the verifier did not do its part, in a sentence; None when it always did."""
        self._name = excerpt(name, _SHOWN)
        self._upstream = upstream.rstrip("/")
        self._session = session
        self._bounds = bounds
        self._connections = web.Server(
            self._handle, handler_cancellation=True, logger=_SILENT, access_log=None
        )
        self._listening: list[asyncio.Server] = []

    @property
    def url(self) -> str:
        """The address, without a trailing slash."""
        return f"http://{_LOOPBACK}:{self.port}"

    async def listen(self) -> None:
        """Listen on a free port.

        Raises:
            OSError: There is none.
        """
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(self._connections, _LOOPBACK, 0, backlog=_BACKLOG)
        self._listening.append(listening)
        self.port = listening.sockets[0].getsockname()[1]

    async def serve(self, listening: socket.socket) -> None:
        """Answer at a further socket, such as one of another network."""
        loop = asyncio.get_running_loop()
        self._listening.append(await loop.create_server(self._connections, sock=listening))

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        listening, self._listening = self._listening, []
        for server in listening:
            server.close()
        if listening:
            await self._connections.shutdown(_STOP_S)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        self.asked += 1
        target = request.raw_path
        if not target.startswith("/"):
            return _refusal(HTTPStatus.BAD_REQUEST, "the request names no path")
        if (request.content_length or 0) > self._bounds.body_bytes:
            return _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large("request"))
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        sent = _Sent(request, self._bounds.body_bytes)
        try:
            return await self._forward(request, sent, URL(self._upstream + target, encoded=True))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if request.transport is None or request.transport.is_closing():
                raise  # who asked has gone: nothing is known of the verifier
            if sent.too_large:
                return _refusal(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, self._too_large("request"))
            why = f"verifier {self._name!r} was unreachable ({_reason(error)}): {_shown(request)}"
            self.fault = self.fault or why
            return _refusal(HTTPStatus.BAD_GATEWAY, why)

    async def _forward(self, request: web.BaseRequest, sent: _Sent, url: URL) -> web.StreamResponse:
        headers = CIMultiDict(_passed(request.headers.items(), request.headers.getall("Connection", ())))
        headers.popall("Host", None)
        async with self._session.request(
            request.method,
            url,
            headers=headers,
            data=sent.pieces() if request.can_read_body else None,
            allow_redirects=False,
            skip_auto_headers=_FILLED_IN,
        ) as answer:
            if answer.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                return await self._answer(request, answer)
            why = f"verifier {self._name!r} answered {answer.status}: {_shown(request)}"
            is_first = self.fault is None
            self.fault = self.fault or why
            said = bytearray()
            response = await self._answer(request, answer, said)
            words = excerpt(" ".join(said.decode("utf-8", "replace").split()), _WORDS_SHOWN)
            if is_first and words:
                self.fault = f"{why}\n  it said: {words}"
            return response

    async def _answer(
        self, request: web.BaseRequest, answer: aiohttp.ClientResponse, said: bytearray | None = None
    ) -> web.StreamResponse:
        """Pass an answer on as it comes, keeping its start; one that breaks off breaks off there too."""
        passed = CIMultiDict(_passed(answer.headers.items(), answer.headers.getall("Connection", ())))
        for name in _NAMING_URLS:
            if name in passed:
                passed[name] = self._without_upstream(passed[name])
        response = web.StreamResponse(
            status=answer.status, reason=excerpt(answer.reason or "", _SHOWN), headers=passed
        )
        await response.prepare(request)
        size = 0
        try:
            async for chunk in answer.content.iter_any():
                size += len(chunk)
                if size > self._bounds.body_bytes:
                    self._cut(request, self._too_large("answer"))
                    return response
                if said is not None and len(said) < _KEPT:
                    said += chunk[:_KEPT]
                await response.write(chunk)
        except (aiohttp.ClientError, TimeoutError) as error:
            self._cut(request, f"verifier {self._name!r} broke off its answer ({_reason(error)})")
            return response
        await response.write_eof()
        return response

    def _cut(self, request: web.BaseRequest, why: str) -> None:
        if request.transport is not None and not request.transport.is_closing():
            self.fault = self.fault or f"{why}: {_shown(request)}"
            request.transport.abort()

    def _too_large(self, what: str) -> str:
        return f"verifier {self._name!r}: the {what} is larger than {self._bounds.body_bytes // 2**20} MiB"

    def _without_upstream(self, location: str) -> str:
        """Return a URL that an answer names, without the verifier's own address."""
        own, named = urlsplit(self._upstream), urlsplit(location)
        if named.netloc and named.netloc.lower() != own.netloc.lower():
            return location
        path = named.path
        if own.path and (path + "/").startswith(own.path + "/"):
            path = path[len(own.path) :]
        return named._replace(scheme="", netloc="", path=path or "/").geturl()


class CountingProxies:
    """Opens counting proxies, and looks whether verifiers are well. Made, used and closed in one running loop.

    Args:
        bounds: Of what passes.
    """

    def __init__(self, bounds: ProxyBounds | None = None) -> None:
        self._bounds = bounds or ProxyBounds()
        # A connection is used once: one that its server closes while a request is on its way would look like a fault.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            auto_decompress=False,
            raise_for_status=False,
            trust_env=False,
        )

    async def open(self, name: str, upstream: str) -> CountingProxy:
        """Open an address in front of a verifier.

        Args:
            name: The verifier's id.
            upstream: Its URL; a path in it stands before every path that is asked for.

        Raises:
            OSError: No port is free.
        """
        proxy = CountingProxy(name, upstream, self._session, self._bounds)
        await proxy.listen()
        return proxy

    async def close(self) -> None:
        """Close every connection to verifiers."""
        await self._session.close()
        await asyncio.sleep(0)  # transports close in the next turn of the loop

    async def unhealthy(self, url: str, within_s: float, *, any_answer: bool = False) -> str | None:
        """Wait until a health check answers 2xx.

        Args:
            url: Of the health check.
            within_s: How long at most.
            any_answer: Whatever it answers will do: there is no health check to ask.

        Returns:
            None once it does, else what the last look saw, such as `it answered 503`.
        """
        deadline = time.monotonic() + within_s
        pause_s = _FIRST_PAUSE_S
        told = None
        while True:
            left_s = deadline - time.monotonic()
            saw = await self._look(url, max(_FIRST_PAUSE_S, min(left_s, _ONE_LOOK_S)), any_answer)
            # The last look may be a short one: an answer that was seen before says more than its silence.
            told = told if told is not None and saw == _NO_ANSWER else saw
            if saw is None or time.monotonic() + pause_s > deadline:
                return told
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _look(self, url: str, within_s: float, any_answer: bool) -> str | None:
        try:
            async with (
                asyncio.timeout(within_s),
                self._session.get(URL(url), allow_redirects=False) as answer,
            ):
                if any_answer or HTTPStatus.OK <= answer.status < HTTPStatus.MULTIPLE_CHOICES:
                    return None
                return f"it answered {answer.status}"
        except TimeoutError:
            return _NO_ANSWER
        except (aiohttp.ClientError, OSError, ValueError) as error:  # ValueError: no URL
            return _reason(error)


def _passed(headers: Iterable[tuple[str, str]], connection: Iterable[str]) -> Iterable[tuple[str, str]]:
    """Yield the headers that go from end to end."""
    left_out = _OF_ONE_HOP.union(word.strip().lower() for line in connection for word in line.split(","))
    for name, value in headers:
        if name.lower() not in left_out:
            yield name, without_surrogates(value)


def _refusal(status: HTTPStatus, message: str) -> web.Response:
    body = json.dumps({"error": message}).encode()
    response = web.Response(status=status, body=body, content_type="application/json")
    # What follows on the connection may be the rest of a body that nobody wants.
    response.force_close()
    return response


def _shown(request: web.BaseRequest) -> str:
    return excerpt(f"{request.method} {request.raw_path}", _SHOWN)


def _reason(error: Exception) -> str:
    """Return why there was no answer, without an address."""
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "it closed the connection"
    if isinstance(error, TimeoutError):
        return "it did not answer"
    if isinstance(error, aiohttp.ClientPayloadError):
        return "its end is missing or damaged"
    if isinstance(error, aiohttp.ClientResponseError):
        return "what it answered is no HTTP"
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return type(error).__name__
