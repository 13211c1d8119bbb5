"""The relay's HTTP server: it alone knows the server side of the HTTP library."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections import Counter
from collections.abc import Callable

from aiohttp import web

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.gateway.relay.conversation import Conversation, NotAdmittedError
from pytest_helmbench.gateway.relay.exchanges import RawReply
from pytest_helmbench.gateway.relay.passing import (
    HEARTBEAT,
    Passing,
    error_event,
    recorded_blocks,
    wants_usage,
)
from pytest_helmbench.gateway.relay.refusals import (
    BadRequestError,
    ItemEndedError,
    error_body,
    read_request,
)
from pytest_helmbench.gateway.replies import CHAT, EMBEDDINGS, PATHS


@dataclass(frozen=True, slots=True)
class RelayBounds:
    """What a client may ask of us.

    Args:
        body_bytes: Largest request, decompressed.
        item_bytes: Of all requests of one item that are out at a time.
        body_s: For sending a request.
        write_s: For taking an answer, or one piece of a stream.
        heartbeat_s: Between two signs of life in a stream that waits for leave; a fault before the first is a plain
            HTTP error.
        silence_s: Between two signs of life while the model is silent. It is long, since a client may measure when
            its first bytes arrive.
        idle_s: For which a connection without a request is kept.
        connections: Open at a time, of all items; more are refused.
    """

    body_bytes: int = 32 * 2**20
    item_bytes: int = 128 * 2**20
    body_s: float = 60.0
    write_s: float = 60.0
    heartbeat_s: float = 2.0
    silence_s: float = 15.0
    idle_s: float = 120.0
    connections: int = 512


_BACKLOG = 1024
_STOP_S = 0.2
# The errors of clients would quote what they have sent. Errors of our own reach the item.
_SILENT = logging.Logger("pytest_helmbench.gateway.relay.server", logging.CRITICAL + 1)
# Retries are ours; what arrives at a client is meant to stay.
_HEADERS = {"Server": "pytest-helmbench", "Cache-Control": "no-store"}
_FINAL = {**_HEADERS, "x-should-retry": "false"}
_WHAT_THERE_IS = (
    "POST /chat/completions, /responses and /embeddings, and GET /models, with and without /v1 before them"
)


class _RefusedRequestError(HelmbenchError):
    """A request that never reaches the conversation."""

    def __init__(self, status: int, message: str, code: str) -> None:
        self.status = status
        self.code = code
        super().__init__(message)


class _Refusal(asyncio.Protocol):
    """Closes a connection that there is no room for."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Close the connection before anything is read from it."""
        transport.close()


class RelayServer:
    """Answers HTTP requests out of conversations. Made, used and stopped in one running loop.

    Args:
        admitted: Returns the conversation of a path's first part and an `Authorization` header; raises
            `NotAdmittedError` and `ItemEndedError`.
        bounds: Of requests and answers.
    """

    def __init__(
        self, admitted: Callable[[str, str | None], Conversation], bounds: RelayBounds | None
    ) -> None:
        bounds = bounds or RelayBounds()
        self._admitted = admitted
        self._bounds = bounds
        self._held: Counter[Conversation] = Counter()
        self._connections = web.Server(
            self._handle,
            handler_cancellation=True,
            keepalive_timeout=bounds.idle_s,
            logger=_SILENT,
            access_log=None,
        )
        self._listening: list[asyncio.Server] = []

    async def listen(self, host: str) -> int:
        """Listen at an address of this machine; return the port.

        Raises:
            OSError: It cannot be listened at.
        """
        loop = asyncio.get_running_loop()
        listening = await loop.create_server(self._connection, host, 0, backlog=_BACKLOG)
        self._listening.append(listening)
        port: int = listening.sockets[0].getsockname()[1]
        return port

    async def serve(self, listening: socket.socket) -> None:
        """Listen at a socket that listens already."""
        loop = asyncio.get_running_loop()
        self._listening.append(await loop.create_server(self._connection, sock=listening))

    async def stop(self) -> None:
        """Stop listening and drop every connection."""
        for listening in self._listening:
            listening.close()
        await asyncio.sleep(0)  # a request that has just come in is handled from here on
        self._connections.pre_shutdown()
        await self._connections.shutdown(_STOP_S)

    def _connection(self) -> asyncio.BaseProtocol:
        """Return the protocol of a new connection; there are so many and no more: each costs a file of the process."""
        if len(self._connections.connections) < self._bounds.connections:
            return self._connections()
        return _Refusal()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        _, name, *rest = f"{request.path}/".split("/", 2)
        try:
            conversation = self._admitted(name, request.headers.get("Authorization"))
        except NotAdmittedError as error:
            if error.conversation is not None:
                error.conversation.refuse(request.method, error)
            return await self._deliver(request, _error(401, str(error), "invalid_token"))
        except ItemEndedError as error:
            return await self._deliver(request, _error(410, str(error), "item_ended"))
        try:
            return await self._answer(request, conversation, _asked("".join(rest)))
        except _RefusedRequestError as error:
            if error.status != 429:  # which the client may try again
                conversation.refuse(request.method, BadRequestError(str(error)))
            return await self._deliver(request, _error(error.status, str(error), error.code))
        except ConnectionError:
            raise
        except Exception as bug:  # noqa: BLE001 - it must reach the item, and not only the client
            conversation.fail(bug)
            if request.writer.output_size:
                _cut(request)
            return await self._deliver(
                request, _error(500, "the request could not be passed on", "internal_error")
            )

    async def _answer(
        self, request: web.BaseRequest, conversation: Conversation, asked: str
    ) -> web.StreamResponse:
        what, _, model = asked.partition("/")
        if what == "models":
            _want_method(request, "GET")
            return await self._deliver(request, _models(conversation, model))
        if asked not in PATHS:
            shown = excerpt(asked, 100)
            raise _RefusedRequestError(
                404, f"there is no /{shown} here; there is {_WHAT_THERE_IS}", "not_found"
            )
        _want_method(request, "POST")
        chunks: list[bytes] = []
        try:
            await self._receive(request, conversation, chunks)
            return await self._complete(request, conversation, asked, b"".join(chunks))
        finally:
            self._held[conversation] -= sum(map(len, chunks))
            if not self._held[conversation]:
                del self._held[conversation]

    async def _complete(
        self, request: web.BaseRequest, conversation: Conversation, path: str, sent: bytes
    ) -> web.StreamResponse:
        try:
            body = read_request(sent)
        except BadRequestError as error:
            raise _RefusedRequestError(400, str(error), "bad_request") from error
        passing = Passing()
        completing = asyncio.get_running_loop().create_task(
            conversation.complete(body, path, passing.take if body.get("stream") is True else None)
        )
        try:
            if body.get("stream") is True and path != EMBEDDINGS:
                hides_usage = path == CHAT and not wants_usage(body)
                return await self._stream(request, completing, passing, hides_usage=hides_usage)
            await asyncio.wait((completing,))
        finally:
            completing.cancel()  # the client has gone, if it is not done
        raw = _result(completing)
        return await self._deliver(request, _json(raw.status, raw.body))

    async def _receive(
        self, request: web.BaseRequest, conversation: Conversation, chunks: list[bytes]
    ) -> None:
        """Read a request's body; what has come counts as held by its item."""
        bounds = self._bounds
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        size = 0
        too_large = (request.content_length or 0) > bounds.body_bytes
        try:
            async with asyncio.timeout(bounds.body_s):
                while not too_large and (chunk := await request.content.readany()):
                    chunks.append(chunk)
                    self._held[conversation] += len(chunk)
                    size += len(chunk)
                    too_large = size > bounds.body_bytes
                    if self._held[conversation] > bounds.item_bytes:
                        raise _RefusedRequestError(
                            429,
                            f"the requests of this item hold more than {bounds.item_bytes // 2**20} MiB at once",
                            "too_much_at_once",
                        )
        except TimeoutError:
            raise _RefusedRequestError(
                408, f"the request did not arrive within {bounds.body_s:g} s", "slow_request"
            ) from None
        except web.RequestPayloadError:
            raise _RefusedRequestError(400, "the request body is damaged", "bad_request") from None
        if too_large:
            raise _RefusedRequestError(
                413, f"the request body is larger than {bounds.body_bytes // 2**20} MiB", "too_large"
            )

    async def _stream(
        self,
        request: web.BaseRequest,
        completing: asyncio.Task[RawReply],
        passing: Passing,
        *,
        hides_usage: bool,
    ) -> web.StreamResponse:
        """Give a client the events of its stream as they come; the last one when the reply is on record."""
        response = web.StreamResponse(
            headers={**_HEADERS, "Content-Type": "text/event-stream; charset=utf-8"}
        )
        while not completing.done():
            bounds = self._bounds
            patience_s = bounds.silence_s if passing.is_on_the_wire else bounds.heartbeat_s
            more = await passing.more(completing, patience_s)
            if not more and not passing.begun and not completing.done():
                await self._write(request, response, HEARTBEAT)
            for event in passing.events(hides_usage=hides_usage):
                await self._write(request, response, event)
        raw = _result(completing)
        if passing.begun:
            if raw.error is not None:
                return await self._break_off(request, response, raw)
            for event in passing.last_events(hides_usage=hides_usage):
                await self._write(request, response, event)
        elif raw.reply is not None:
            async for block in recorded_blocks(raw, hides_usage=hides_usage):
                await self._write(request, response, block)
        elif response.prepared:
            await self._write(request, response, error_event(raw.body))
        else:
            return await self._deliver(request, _json(raw.status, raw.body))
        return await self._deliver(request, response)

    async def _break_off(
        self, request: web.BaseRequest, response: web.StreamResponse, raw: RawReply
    ) -> web.StreamResponse:
        """End a stream that has broken off as the provider did: without its end."""
        await self._write(request, response, error_event(raw.body))
        if request.transport is not None:
            request.transport.close()  # what is written goes out first
        response.force_close()
        return response

    async def _write(self, request: web.BaseRequest, response: web.StreamResponse, data: bytes) -> None:
        try:
            async with asyncio.timeout(self._bounds.write_s):
                if not response.prepared:
                    await response.prepare(request)
                await response.write(data)
        except TimeoutError:
            _cut(request)
            raise ConnectionResetError("the client takes nothing") from None

    async def _deliver(self, request: web.BaseRequest, response: web.StreamResponse) -> web.StreamResponse:
        """Send what is left of an answer here, where a client that takes nothing is not waited for."""
        try:
            async with asyncio.timeout(self._bounds.write_s):
                await response.prepare(request)
                await response.write_eof()
        except TimeoutError:
            _cut(request)
        return response


def _asked(path: str) -> str:
    """Return what a path asks for, without the `/v1` that some clients add and some do not."""
    words = [word for word in path.split("/") if word]
    while words and words[0] == "v1":
        words.pop(0)
    return "/".join(words)


def _want_method(request: web.BaseRequest, method: str) -> None:
    if request.method != method:
        raise _RefusedRequestError(
            405, f"{request.method} is not answered here: use {method}", "wrong_method"
        )


def _result(completing: asyncio.Task[RawReply]) -> RawReply:
    if not completing.cancelled():
        return completing.result()
    error = RefusedError("the session makes no more calls")
    return RawReply(503, error_body(503, str(error), "session_ending"), error=error)


def _models(conversation: Conversation, model: str) -> web.Response:
    own = conversation.model_id
    one = {"id": own, "object": "model", "created": 0, "owned_by": own.partition("/")[0]}
    if not model:
        return _json(200, json.dumps({"object": "list", "data": [one]}).encode())
    if model == own:
        return _json(200, json.dumps(one).encode())
    raise _RefusedRequestError(
        404, f"there is no model {excerpt(model, 100)!r} here; there is {own!r}", "not_found"
    )


def _error(status: int, message: str, code: str) -> web.Response:
    response = _json(status, error_body(status, message, code))
    # What follows on the connection may be the rest of a body that nobody wants.
    response.force_close()
    return response


def _json(status: int, body: bytes) -> web.Response:
    headers = _HEADERS if status == 200 else _FINAL
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def _cut(request: web.BaseRequest) -> None:
    if request.transport is not None:
        request.transport.abort()
