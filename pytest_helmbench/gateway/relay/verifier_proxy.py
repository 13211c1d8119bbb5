"""A proxy in front of a verifier, one for every item: tells a verifier's fault from one of the model."""

from __future__ import annotations

import asyncio
import json
import logging
import socket

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy
from yarl import URL

from pytest_helmbench.core.scrub import excerpt, without_surrogates
from pytest_helmbench.gateway.relay.verifier_client import missing_answer, verifier_session

_LOOPBACK = "127.0.0.1"
_STOP_S = 0.2
_MOST_BYTES = 128 * 2**20  # of a request, and of an answer
_WORDS_SHOWN = 500
_SHOWN = 120
_HOP_HEADERS = frozenset(
    ("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection", "te")
) | frozenset(("trailer", "transfer-encoding", "upgrade", "expect", "host", "content-length"))
_SILENT = logging.Logger("pytest_helmbench.gateway.relay.verifier_proxy", logging.CRITICAL + 1)


class VerifierProxy:
    """One address in front of one verifier, for one item. A path in the verifier's URL stands before every path.

    Args:
        upstream: URL of the verifier; it never reaches the item's code.
    """

    def __init__(self, name: str, upstream: str) -> None:
        self.port = 0
        self.fault: str | None = None
        """The first fault of the verifier, in a sentence; None when it had none."""
        self._name = excerpt(name, _SHOWN)
        self._upstream = upstream.rstrip("/")
        self._session = verifier_session()
        self._server = web.Server(self._handle, handler_cancellation=True, logger=_SILENT, access_log=None)
        self._listening: list[asyncio.Server] = []

    @property
    def url(self) -> str:
        """The address, without a trailing slash."""
        return f"http://{_LOOPBACK}:{self.port}"

    async def listen(self) -> None:
        """Listen on a free port; raises `OSError` when there is none."""
        listening = socket.create_server((_LOOPBACK, 0))
        self.port = listening.getsockname()[1]
        await self.serve(listening)

    async def serve(self, listening: socket.socket) -> None:
        """Answer at a further socket, such as one of another network."""
        self._listening.append(await asyncio.get_running_loop().create_server(self._server, sock=listening))

    async def close(self) -> None:
        """Stop listening and drop every connection."""
        for listening in self._listening:
            listening.close()
        await self._server.shutdown(_STOP_S)
        await self._session.close()
        await asyncio.sleep(0)  # transports close in the next turn of the loop

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
                headers=_end_to_end(request.headers),
                data=sent or None,
                allow_redirects=False,
            ) as answer:
                body = await _whole(answer.content)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            if request.transport is None or request.transport.is_closing():
                raise  # the client has gone: this says nothing of the verifier
            return _refusal(502, self._fault(f"gave no answer ({missing_answer(error)})", request))
        if body is None:
            return _refusal(502, self._fault("gave an answer that is too large", request))
        if answer.status >= 500:
            words = excerpt(" ".join(body[:4_096].decode("utf-8", "replace").split()), _WORDS_SHOWN)
            self._fault(f"answered {answer.status}", request, f"\n  it said: {words}" if words else "")
        reason, headers = excerpt(answer.reason or "", _SHOWN), _end_to_end(answer.headers)
        return web.Response(status=answer.status, reason=reason, headers=headers, body=body)

    def _fault(self, what: str, request: web.BaseRequest, words: str = "") -> str:
        """Return a fault of the verifier in a sentence, and keep the first one."""
        why = f"verifier {self._name!r} {what}: {excerpt(f'{request.method} {request.raw_path}', _SHOWN)}"
        self.fault = self.fault or why + words
        return why


async def _whole(content: aiohttp.StreamReader) -> bytes | None:
    """Return everything that arrives; None for too much."""
    received = bytearray()
    while chunk := await content.readany():
        received += chunk
        if len(received) > _MOST_BYTES:
            return None
    return bytes(received)


def _end_to_end(headers: CIMultiDictProxy[str]) -> CIMultiDict[str]:
    """Return the headers that pass a proxy."""
    named = {word.strip().lower() for line in headers.getall("Connection", ()) for word in line.split(",")}
    passed = ((name, value) for name, value in headers.items() if name.lower() not in _HOP_HEADERS | named)
    return CIMultiDict((name, without_surrogates(value)) for name, value in passed)


def _refusal(status: int, message: str) -> web.Response:
    response = web.Response(
        status=status, body=json.dumps({"error": message}).encode(), content_type="application/json"
    )
    response.force_close()  # the rest of a body may follow on the connection
    return response
