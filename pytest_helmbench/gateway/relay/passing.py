"""Streams on their way to clients: events as they come, those of a record, and those of a whole reply."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.gateway.http_answers import stream_events
from pytest_helmbench.gateway.replies import first_choice, reply_document

HEARTBEAT = b": waiting for the model\n\n"
"""A comment: it keeps a connection alive and is no event."""

DONE = b"data: [DONE]\n\n"
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


def reply_events(reply: bytes) -> Iterator[bytes]:
    """Yield the events that say the same as a reply, token counts among them.

    Args:
        reply: HTTP body of a chat completion, as received.
    """
    document = reply_document(reply)
    head = {name: document[name] for name in _HEAD if name in document}
    head["object"] = "chat.completion.chunk"
    choice = first_choice(document)
    message = choice.get("message")
    delta = (
        {name: value for name, value in message.items() if value is not None}
        if isinstance(message, dict)
        else {}
    )
    calls = delta.get("tool_calls")
    if isinstance(calls, list):
        delta["tool_calls"] = [
            {**call, "index": index} for index, call in enumerate(calls) if isinstance(call, dict)
        ]
    reason = choice.get("finish_reason") or ("tool_calls" if calls else "stop")
    last: dict[str, JsonValue] = {"index": 0, "delta": {}, "finish_reason": reason}
    if choice.get("logprobs") is not None:
        last["logprobs"] = choice["logprobs"]
    first: dict[str, JsonValue] = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": None}
    yield _event({**head, "choices": [first]})
    yield _event({**head, "choices": [last]})
    if document.get("usage"):
        yield _event({**head, "choices": [], "usage": document["usage"]})
    yield DONE


def _event(document: JsonObject) -> bytes:
    return b"data: " + json.dumps(document, separators=(",", ":")).encode() + b"\n\n"
