"""The relay's HTTP server: it alone knows the server side of the HTTP library."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections import Counter
from collections.abc import Callable, Iterator

from aiohttp import web

from pytest_helmbench.core.json_types import JsonObject, JsonValue, decoded_json, json_object, json_objects
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.gateway.http_answers import LiveStream, events_of, stream_events
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.gateway.relay.conversation import Conversation, NotAdmittedError, RawReply
from pytest_helmbench.gateway.relay.refusals import BadRequestError, ItemEndedError, error_body, read_request
from pytest_helmbench.gateway.replies import first_choice, reply_document

_BACKLOG = 1024
_IDLE_S = 120.0
_STOP_S = 0.2
# The errors of clients would quote what they have sent. Errors of our own reach the item.
_SILENT = logging.Logger("pytest_helmbench.gateway.relay.server", logging.CRITICAL + 1)
# Retries are ours; what arrives at a client is meant to stay.
_HEADERS = {"Server": "pytest-helmbench", "Cache-Control": "no-store"}
_FINAL = {**_HEADERS, "x-should-retry": "false"}
_HEARTBEAT = b": waiting for the model\n\n"
"""A comment: it keeps a connection alive without an event."""
_DONE = b"data: [DONE]\n\n"
_HEAD = ("id", "created", "model", "system_fingerprint", "service_tier", "provider")


@dataclass(frozen=True, slots=True)
class RelayBounds:
    """Bounds of the requests of clients.

    Args:
        body_bytes: Largest request, decompressed.
        item_bytes: Of all requests of one item that are out at a time.
        heartbeat_s: Between two signs of life in a stream that has not begun; a fault before the first is a plain HTTP
            error. It is long, since a client may measure when its first bytes arrive.
        connections: Open at a time, of all items; more are refused.
    """

    body_bytes: int = 32 * 2**20
    item_bytes: int = 128 * 2**20
    heartbeat_s: float = 15.0
    connections: int = 512


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
    """

    def __init__(
        self, admitted: Callable[[str, str | None], Conversation], bounds: RelayBounds | None
    ) -> None:
        self._admitted = admitted
        self._bounds = bounds or RelayBounds()
        self._held_bytes: Counter[Conversation] = Counter()
        self._connections = web.Server(
            self._handle,
            handler_cancellation=True,
            keepalive_timeout=_IDLE_S,
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
            return _error(401, str(error), "invalid_token")
        except ItemEndedError as error:
            return _error(410, str(error), "item_ended")
        try:
            return await self._answer(request, conversation, "".join(rest))
        except BadRequestError as error:
            if error.status != 429:  # which the client may try again
                conversation.refuse(request.method, error)
            return _error(error.status, str(error), error.code)
        except ConnectionError:
            raise
        except Exception as bug:  # noqa: BLE001 - it must reach the item, and not only the client
            conversation.fail(bug)
            if request.writer.output_size and request.transport is not None:
                request.transport.abort()
            return _error(500, "the request could not be passed on", "internal_error")

    async def _answer(
        self, request: web.BaseRequest, conversation: Conversation, path: str
    ) -> web.StreamResponse:
        # Some clients add `/v1` themselves, some do not.
        asked = "/".join(word for word in path.split("/") if word not in ("", "v1"))
        door = conversation.door if asked == "shell" else None
        method = {"models": "GET", "chat/completions": "POST"}.get(asked, "POST" if door else None)
        if method is None:
            sentence = (
                f"there is no /{excerpt(asked, 100)} here; there is POST /chat/completions and GET /models,"
                " with and without /v1 before them"
            )
            raise BadRequestError(sentence, status=404, code="not_found")
        if request.method != method:
            sentence = f"{request.method} is not answered here: use {method}"
            raise BadRequestError(sentence, status=405, code="wrong_method")
        if asked == "models":
            own = conversation.model_id
            one = {"id": own, "object": "model", "created": 0, "owned_by": own.partition("/")[0]}
            return _json(200, json.dumps({"object": "list", "data": [one]}).encode())
        chunks: list[bytes] = []
        try:
            await self._receive(request, conversation, chunks)
            if door is not None:
                return _json(200, await door(b"".join(chunks)))
            return await self._complete(request, conversation, b"".join(chunks))
        finally:
            self._held_bytes[conversation] -= sum(map(len, chunks))
            if not self._held_bytes[conversation]:
                del self._held_bytes[conversation]

    async def _complete(
        self, request: web.BaseRequest, conversation: Conversation, sent: bytes
    ) -> web.StreamResponse:
        body = read_request(sent)
        live: list[LiveStream] = []
        completing = asyncio.get_running_loop().create_task(conversation.complete(body, live.append))
        try:
            if body.get("stream") is True:
                return await self._stream(request, completing, live, hides_usage=not _wants_usage(body))
            await asyncio.wait((completing,))
        finally:
            completing.cancel()  # the client has gone, if it is not done
        raw = _result(completing)
        return _json(raw.status, raw.body)

    async def _receive(
        self, request: web.BaseRequest, conversation: Conversation, chunks: list[bytes]
    ) -> None:
        """Read a request's body; what has come counts as held by its item."""
        bounds = self._bounds
        left = bounds.body_bytes
        if (request.content_length or 0) > left:
            left = -1
        if request.headers.get("Expect", "").lower() == "100-continue":
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        try:
            while left >= 0 and (chunk := await request.content.readany()):
                chunks.append(chunk)
                left -= len(chunk)
                self._held_bytes[conversation] += len(chunk)
                if self._held_bytes[conversation] > bounds.item_bytes:
                    sentence = (
                        f"the requests of this item hold more than {bounds.item_bytes // 2**20} MiB at once"
                    )
                    raise BadRequestError(sentence, status=429, code="too_much_at_once")
        except web.RequestPayloadError:
            raise BadRequestError("the request body is damaged") from None
        if left < 0:
            sentence = f"the request body is larger than {bounds.body_bytes // 2**20} MiB"
            raise BadRequestError(sentence, status=413, code="too_large")

    async def _stream(
        self,
        request: web.BaseRequest,
        completing: asyncio.Task[RawReply],
        live: list[LiveStream],
        *,
        hides_usage: bool,
    ) -> web.StreamResponse:
        """Give a client the events of its stream as they come; the last one when the reply is on record."""
        response = web.StreamResponse(
            headers={**_HEADERS, "Content-Type": "text/event-stream; charset=utf-8"}
        )

        async def write(event: bytes) -> None:
            shown = _without_usage(event) if hides_usage else event
            if not response.prepared:
                await response.prepare(request)
            if shown:
                await response.write(shown)

        passed = 0
        while not completing.done():
            await _change(completing, live, self._bounds.heartbeat_s)
            events = live[0].events if live else []
            while passed < len(events) and events[passed].strip() != _DONE.strip():
                await write(events[passed])
                passed += 1
            if not passed and not completing.done():
                await write(_HEARTBEAT)
        raw = _result(completing)
        if raw.reply is not None:
            came = list(_reply_events(raw.body)) if raw.stream is None else events_of(raw.stream)
            for event in live[0].events[passed:] if passed else came:
                await write(event)
        elif response.prepared:
            await write(b"event: error\ndata: " + raw.body + b"\n\n")
            if passed and request.transport is not None:
                # A stream that has broken off ends as the provider's did: without its end.
                request.transport.close()  # what is written goes out first
                response.force_close()
        else:
            return _json(raw.status, raw.body)
        return response


async def _change(completing: asyncio.Task[RawReply], live: list[LiveStream], timeout_s: float) -> None:
    """Wait until there are more events, the reply is whole, or time is over."""
    await asyncio.sleep(0)  # the call begins, and has its stream
    if not live:
        await asyncio.wait((completing,), timeout=timeout_s)
        return
    more = asyncio.ensure_future(live[0].changed.wait())
    try:
        await asyncio.wait((completing, more), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        more.cancel()
    live[0].changed.clear()


def _result(completing: asyncio.Task[RawReply]) -> RawReply:
    if not completing.cancelled():
        return completing.result()
    error = RefusedError("the session makes no more calls")
    return RawReply(503, error_body(503, str(error), "session_ending"), error=error)


def _error(status: int, message: str, code: str) -> web.Response:
    response = _json(status, error_body(status, message, code))
    # The rest of an unwanted body may follow on the connection.
    response.force_close()
    return response


def _json(status: int, body: bytes) -> web.Response:
    headers = _HEADERS if status == 200 else _FINAL
    return web.Response(status=status, body=body, content_type="application/json", headers=headers)


def _wants_usage(body: JsonObject) -> bool:
    """Return whether a request asks for a last chunk with the token counts, as OpenAI or OpenRouter spell it."""
    stated = ((body.get("stream_options"), "include_usage"), (body.get("usage"), "include"))
    return any(isinstance(block, dict) and block.get(name) is True for block, name in stated)


def _without_usage(event: bytes) -> bytes:
    """Return an event without the token counts that the client did not ask for; empty for these alone."""
    if b'"usage"' not in event:
        return event
    data = next(stream_events(event), "")
    chunk = decoded_json(data)
    if not isinstance(chunk, dict) or "usage" not in chunk:
        return event
    if not chunk.get("choices") and chunk.get("usage"):
        return b""
    return _event({name: value for name, value in chunk.items() if name != "usage"})


def _reply_events(reply: bytes) -> Iterator[bytes]:
    """Yield the events that say the same as a reply, an HTTP body as received, token counts among them."""
    document = reply_document(reply)
    head = {name: document[name] for name in _HEAD if name in document}
    head["object"] = "chat.completion.chunk"
    choice = first_choice(document)
    message = json_object(choice.get("message"))
    delta = {name: value for name, value in message.items() if value is not None}
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [{**call, "index": index} for index, call in enumerate(json_objects(calls))]
    reason = choice.get("finish_reason") or ("tool_calls" if calls else "stop")
    last: dict[str, JsonValue] = {"index": 0, "delta": {}, "finish_reason": reason}
    if choice.get("logprobs") is not None:
        last["logprobs"] = choice["logprobs"]
    first: dict[str, JsonValue] = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}
    yield _event({**head, "choices": [first]})
    yield _event({**head, "choices": [last]})
    if document.get("usage"):
        yield _event({**head, "choices": [], "usage": document["usage"]})
    yield _DONE


def _event(document: JsonObject) -> bytes:
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"
