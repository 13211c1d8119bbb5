"""An address of its own for every item in front of a verifier: tells a verifier's fault from one of the model."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import socket
import time

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from pytest_helmbench.core.scrub import excerpt, without_surrogates

_LOOPBACK = "127.0.0.1"
_CONNECT_S = 10.0
_STOP_S = 0.2
_MOST_BYTES = 128 * 2**20  # of a request, and of an answer
_WORDS_SHOWN = 500
_SHOWN = 120
_FIRST_PAUSE_S = 0.02
_LONGEST_PAUSE_S = 0.5
_ONE_LOOK_S = 5.0
_NO_ANSWER = "it did not answer"
# Between two stations only, and the length, which is counted anew.
_OF_ONE_HOP = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te")
) | frozenset(("trailer", "transfer-encoding", "upgrade", "expect", "host", "content-length"))
_FILLED_IN = ("User-Agent", "Accept", "Accept-Encoding", "Content-Type")
_SILENT = logging.Logger("pytest_helmbench.gateway.relay.verifier_proxy", logging.CRITICAL + 1)
_REASONS = (
    (aiohttp.ServerDisconnectedError, "it closed the connection"),
    (aiohttp.ClientPayloadError, "its end is missing or damaged"),
    (aiohttp.ClientResponseError, "what it answered is no HTTP"),
)


class VerifierProxy:
    """One address in front of one verifier, for one item.

    Args:
        name: The verifier's id.
        upstream: Where it is; it never reaches the item's code.
        session: Makes the requests.
    """

    def __init__(self, name: str, upstream: str, session: aiohttp.ClientSession) -> None:
        self.port = 0
        self.fault: str | None = None
        """The first time that the verifier did not do its part, in a sentence; None when it always did."""
        self._name = excerpt(name, _SHOWN)
        self._upstream = upstream.rstrip("/")
        self._session = session
        self._connections = web.Server(
            self._handle, handler_cancellation=True, logger=_SILENT, access_log=None
        )
        self._listening: list[asyncio.Server] = []

    @property
    def url(self) -> str:
        """The address, without a trailing slash."""
        return f"http://{_LOOPBACK}:{self.port}"

    async def listen(self) -> None:
        """Listen on a free port; raises `OSError` when there is none."""
        listening = await asyncio.get_running_loop().create_server(self._connections, _LOOPBACK, 0)
        self._listening.append(listening)
        self.port = listening.sockets[0].getsockname()[1]

    async def serve(self, listening: socket.socket) -> None:
        """Answer at a further socket, such as one of another network."""
        loop = asyncio.get_running_loop()
        self._listening.append(await loop.create_server(self._connections, sock=listening))

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        for server in self._listening:
            server.close()
        await self._connections.shutdown(_STOP_S)

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if not request.raw_path.startswith("/"):
            return _refusal(400, "the request names no path")
        sent = await _whole(request.content)
        if sent is None:
            return _refusal(413, f"verifier {self._name!r}: the request is too large")
        try:
            async with self._session.request(
                request.method,
                URL(self._upstream + request.raw_path, encoded=True),
                headers=_passed(request.headers),
                data=sent or None,
                allow_redirects=False,
                skip_auto_headers=_FILLED_IN,
            ) as answer:
                said = await _whole(answer.content)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if request.transport is None or request.transport.is_closing():
                raise  # the client has gone: nothing is known of the verifier
            return _refusal(502, self._noted(f"gave no answer ({_reason(error)})", request))
        if said is None:
            return _refusal(502, self._noted("gave an answer that is too large", request))
        if answer.status >= 500:
            words = excerpt(" ".join(said[:4_096].decode("utf-8", "replace").split()), _WORDS_SHOWN)
            self._noted(f"answered {answer.status}", request, f"\n  it said: {words}" if words else "")
        reason = excerpt(answer.reason or "", _SHOWN)
        return web.Response(status=answer.status, reason=reason, headers=_passed(answer.headers), body=said)

    def _noted(self, what: str, request: web.BaseRequest, said: str = "") -> str:
        """Note a fault of the verifier, the first one for good; return it."""
        why = f"verifier {self._name!r} {what}: {excerpt(f'{request.method} {request.raw_path}', _SHOWN)}"
        self.fault = self.fault or why + said
        return why


class CountingProxies:
    """Opens counting proxies, and looks whether verifiers are well. Made, used and closed in one running loop."""

    def __init__(self) -> None:
        # A connection is used once: one that its server closes while a request is on its way would look like a fault.
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, force_close=True),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_S),
            auto_decompress=False,
            trust_env=False,
        )

    async def open(self, name: str, upstream: str) -> VerifierProxy:
        """Open an address in front of a verifier; see `VerifierProxy`. A path in its URL stands before every path."""
        proxy = VerifierProxy(name, upstream, self._session)
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
        pause_s, told = _FIRST_PAUSE_S, None
        while True:
            look_s = max(_FIRST_PAUSE_S, min(deadline - time.monotonic(), _ONE_LOOK_S))
            try:
                async with (
                    asyncio.timeout(look_s),
                    self._session.get(URL(url), allow_redirects=False) as answer,
                ):
                    well = any_answer or 200 <= answer.status < 300
                    saw = None if well else f"it answered {answer.status}"
            except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:  # ValueError: no URL
                saw = _reason(error)
            # The last look may be a short one: an answer that was seen before says more than its silence.
            told = told if told is not None and saw == _NO_ANSWER else saw
            if saw is None or time.monotonic() + pause_s > deadline:
                return told
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)


async def _whole(content: aiohttp.StreamReader) -> bytes | None:
    """Return all that comes; None for too much."""
    found = bytearray()
    while chunk := await content.readany():
        found += chunk
        if len(found) > _MOST_BYTES:
            return None
    return bytes(found)


def _passed(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Return the headers that go from end to end."""
    stated = {word.strip().lower() for line in headers.getall("Connection", ()) for word in line.split(",")}
    passed = ((name, value) for name, value in headers.items() if name.lower() not in _OF_ONE_HOP | stated)
    return CIMultiDict((name, without_surrogates(value)) for name, value in passed)


def _refusal(status: int, message: str) -> web.Response:
    body = json.dumps({"error": message}).encode()
    response = web.Response(status=status, body=body, content_type="application/json")
    response.force_close()  # what follows on the connection may be the rest of a body
    return response


def _reason(error: Exception) -> str:
    """Return why there was no answer, without an address."""
    if isinstance(error, aiohttp.ClientConnectorError):
        error = error.os_error
    if isinstance(error, TimeoutError):
        return _NO_ANSWER
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    return next((words for kind, words in _REASONS if isinstance(error, kind)), type(error).__name__)
