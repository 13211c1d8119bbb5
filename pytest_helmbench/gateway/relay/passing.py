"""Streams on their way to clients: events as they come, those of a record, and those of a whole reply."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterable, Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.gateway.http_answers import EventCutter, LiveStream, events_of, stream_events
from pytest_helmbench.gateway.relay.exchanges import RawReply
from pytest_helmbench.gateway.replies import first_choice, reply_document

HEARTBEAT = b": waiting for the model\n\n"
"""A comment: it keeps a connection alive and is no event."""

DONE = b"data: [DONE]\n\n"
_PIECE = 4_000  # characters of one delta; many clients bound the length of a line
_TEXTS = ("reasoning", "reasoning_content", "content", "refusal")
_HEAD = ("id", "created", "model", "system_fingerprint", "service_tier", "provider")


def wants_usage(body: JsonObject) -> bool:
    """Return whether a request asks for a last chunk with the token counts, as OpenAI or OpenRouter spell it."""
    stated = ((body.get("stream_options"), "include_usage"), (body.get("usage"), "include"))
    return any(isinstance(block, dict) and block.get(name) is True for block, name in stated)


def is_done(event: bytes) -> bool:
    """Return whether an event says that a chat completion is whole."""
    return event.strip() == DONE.strip()


def without_usage(event: bytes) -> bytes:
    """Return an event of a chat completion without the token counts that nobody asked for; empty for these alone."""
    if b'"usage"' not in event:
        return event
    data = next(stream_events(event), "")
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        return event
    if not isinstance(chunk, dict) or "usage" not in chunk:
        return event
    if not chunk.get("choices") and chunk.get("usage"):
        return b""
    return _event({name: value for name, value in chunk.items() if name != "usage"})


def error_event(error: bytes) -> bytes:
    """Return an error, as JSON, in the form of an event; nothing follows it."""
    return b"event: error\ndata: " + error + b"\n\n"


def reply_events(reply: bytes, *, with_usage: bool) -> Iterator[bytes]:
    """Yield the events that say the same as a reply.

    Args:
        reply: HTTP body of a chat completion, as received.
        with_usage: Token counts are asked for.
    """
    document = reply_document(reply)
    head = {name: document[name] for name in _HEAD if name in document}
    head["object"] = "chat.completion.chunk"
    choice = first_choice(document)
    message = choice.get("message")
    message = message if isinstance(message, dict) else {}
    # With the counts asked for, every other chunk says that it has none.
    usage: JsonObject = {"usage": None} if with_usage else {}
    for delta in _deltas(message):
        yield _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}], **usage})
    reason = choice.get("finish_reason") or ("tool_calls" if message.get("tool_calls") else "stop")
    last: dict[str, JsonValue] = {"index": 0, "delta": {}, "finish_reason": reason}
    if choice.get("logprobs") is not None:
        last["logprobs"] = choice["logprobs"]
    yield _event({**head, "choices": [last], **usage})
    if with_usage:
        yield _event({**head, "choices": [], "usage": document.get("usage")})
    yield DONE


def _deltas(message: JsonObject) -> Iterator[dict[str, JsonValue]]:
    texts = {name: text for name in _TEXTS if isinstance(text := message.get(name), str)}
    calls = message.get("tool_calls")
    apart = {*texts, "role", *(("tool_calls",) if isinstance(calls, list) else ())}
    rest = {name: value for name, value in message.items() if name not in apart and value is not None}
    yield {"role": "assistant", "content": "" if "content" in texts else None, **rest}
    for name, text in texts.items():
        for piece in _pieces(text):
            yield {name: piece}
    for index, call in enumerate(calls if isinstance(calls, list) else ()):
        for part in _call_parts(index, call):
            yield {"tool_calls": [part]}


def _call_parts(index: int, call: JsonValue) -> Iterator[dict[str, JsonValue]]:
    """Yield a tool call in parts: its name first, its arguments piece by piece."""
    if not isinstance(call, dict):
        return
    function = call.get("function")
    arguments = function.get("arguments") if isinstance(function, dict) else None
    if not isinstance(function, dict) or not isinstance(arguments, str):
        yield {**call, "index": index}
        return
    yield {**call, "index": index, "function": {**function, "arguments": ""}}
    for piece in _pieces(arguments):
        yield {"index": index, "function": {"arguments": piece}}


def _pieces(text: str) -> Iterator[str]:
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))


def _event(document: JsonObject) -> bytes:
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"


_BLOCK = 64 * 2**10


class Passing:
    """Takes the events of one stream for one client, in order.

    The event that says that the reply is whole is held back until it is on record.
    """

    def __init__(self) -> None:
        self._live: LiveStream | None = None
        self._changed = asyncio.Event()
        self._position = 0

    @property
    def begun(self) -> bool:
        """Something has come."""
        return self._live is not None and self._live.begun

    @property
    def is_on_the_wire(self) -> bool:
        """Whether the model has been asked: from then on silence is the model's."""
        return self._live is not None and self._live.on_the_wire

    def take(self, live: LiveStream) -> None:
        """Take this stream from its beginning."""
        self._live, self._position = live, 0
        live.listen(self._changed.set)

    async def more(self, completing: asyncio.Task[RawReply], timeout_s: float) -> bool:
        """Wait until there is more, the reply is whole, or time is over; return whether there is more."""
        changed = asyncio.ensure_future(self._changed.wait())
        try:
            await asyncio.wait((completing, changed), timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            changed.cancel()
        found = self._changed.is_set()
        self._changed.clear()
        return found

    def events(self, *, hides_usage: bool) -> Iterator[bytes]:
        """Yield what has come since, but for the end."""
        while self._live is not None and self._position < len(self._live.events):
            event = self._live.events[self._position]
            if is_done(event):
                return
            self._position += 1
            shown = without_usage(event) if hides_usage else event
            if shown:
                yield shown

    def last_events(self, *, hides_usage: bool) -> Iterator[bytes]:
        """Yield what is left, with the end."""
        rest = [] if self._live is None else self._live.events[self._position :]
        for event in rest:
            shown = without_usage(event) if hides_usage else event
            if shown:
                yield shown


async def recorded_blocks(raw: RawReply, *, hides_usage: bool) -> AsyncIterator[bytes]:
    """Yield a reply that did not come as a stream just now: at the times on record where it has some, else at once."""
    if raw.stream is None:
        for block in _blocks(reply_events(raw.body, with_usage=not hides_usage)):
            yield block
        return
    loop = asyncio.get_running_loop()
    started = loop.time()
    if not raw.times:
        for block in _blocks(_shown(raw.stream, hides_usage=hides_usage)):
            yield block
        return
    for event, at_ms in events_of(raw.stream, raw.times):
        await asyncio.sleep(max(0.0, started + at_ms / 1000 - loop.time()))
        shown = without_usage(event) if hides_usage else event
        if shown:
            yield shown


def _shown(stream: bytes, *, hides_usage: bool) -> Iterator[bytes]:
    if not hides_usage:
        yield stream
        return
    cut: list[bytes] = []
    cutter = EventCutter(cut.append, bytes, lambda: 0.0)
    cutter.feed(stream)
    cutter.close()
    yield from map(without_usage, cut)


def _blocks(events: Iterable[bytes]) -> Iterator[bytes]:
    """Yield events in writes of a fair size."""
    block = bytearray()
    for event in events:
        block += event
        if len(block) >= _BLOCK:
            yield bytes(block)
            block.clear()
    yield bytes(block)
