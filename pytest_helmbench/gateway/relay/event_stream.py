"""A whole reply as the stream of events that a client of the OpenAI interface may ask for instead."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.gateway.streamed_replies import stream_events
from pytest_helmbench.gateway.wire import first_choice, reply_document

__all__ = ["DONE", "HEARTBEAT", "error_event", "is_done", "reply_events", "wants_usage", "without_usage"]

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
