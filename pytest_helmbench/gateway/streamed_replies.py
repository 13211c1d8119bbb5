"""Streamed replies: the chat completion that a stream of events says, for servers that stream unasked."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = ["is_stream", "streamed_document"]

_TEXTS = ("content", "reasoning", "reasoning_content", "refusal")
_HEAD = ("id", "created", "model", "system_fingerprint", "service_tier", "provider", "usage", "error")
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


def is_stream(body: bytes) -> bool:
    """Return whether a body is a stream of events: no JSON begins like one."""
    return body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_FIELDS)


def streamed_document(body: bytes) -> dict[str, JsonValue] | None:
    """Return the chat completion that a stream says; None when it breaks off, or says none.

    Args:
        body: Whole, as received.
    """
    document: dict[str, JsonValue] = {"object": "chat.completion"}
    message: dict[str, JsonValue] = {"role": "assistant", "content": None}
    calls: dict[int, dict[str, JsonValue]] = {}
    reason: JsonValue = None
    done = False
    for data in _events(body):
        if data == "[DONE]":
            done = True
            continue
        chunk = _decoded(data)
        if chunk is None:
            return None
        document |= {name: chunk[name] for name in _HEAD if chunk.get(name) is not None}
        for choice in _first_choices(chunk):
            reason = choice.get("finish_reason") or reason
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                _extend(message, calls, delta)
    if not (done or reason or document.get("error")):
        return None
    if calls:
        message["tool_calls"] = [calls[index] for index in sorted(calls)]
    document["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
    return document


def _events(body: bytes) -> Iterator[str]:
    """Yield the data of each event."""
    lines: list[str] = []
    for line in body.decode("utf-8-sig", "replace").replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _decoded(data: str) -> JsonObject | None:
    try:
        chunk = json.loads(data)
    except (ValueError, RecursionError):
        return None
    return chunk if isinstance(chunk, dict) else None


def _first_choices(chunk: JsonObject) -> Iterator[JsonObject]:
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and not choice.get("index"):
            yield choice


def _extend(message: dict[str, JsonValue], calls: dict[int, dict[str, JsonValue]], delta: JsonObject) -> None:
    for name in _TEXTS:
        piece = delta.get(name)
        if isinstance(piece, str):
            before = message.get(name)
            message[name] = before + piece if isinstance(before, str) else piece
    parts = delta.get("tool_calls")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            index = part.get("index")
            _extend_call(calls.setdefault(index if isinstance(index, int) else len(calls), {}), part)


def _extend_call(call: dict[str, JsonValue], part: JsonObject) -> None:
    stated = part.get("function")
    function = call.get("function")
    pieces = dict(stated) if isinstance(stated, dict) else {}
    if isinstance(function, dict):
        before, more = function.get("arguments"), pieces.get("arguments")
        joined = (before if isinstance(before, str) else "") + (more if isinstance(more, str) else "")
        known = {name: value for name, value in pieces.items() if value}
        pieces = {**function, **known, "arguments": joined}
    call |= {name: value for name, value in part.items() if name not in ("index", "function")}
    call["function"] = pieces
