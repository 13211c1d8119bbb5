"""Streamed replies: the chat completion that a stream of events says, for servers that stream unasked."""

from __future__ import annotations

import json
from collections.abc import Iterator

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = ["is_stream", "stream_events", "streamed_document"]

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
    texts: dict[str, list[str]] = {}
    calls: dict[int, _ToolCall] = {}
    reason: JsonValue = None
    done = False
    for data in stream_events(body):
        if data == "[DONE]":
            done = True
            continue
        chunk = _decoded(data)
        if chunk is None:
            return None
        document |= {name: chunk[name] for name in _HEAD if chunk.get(name) is not None}
        # Tokens in an event of their own are counted when all is written.
        done = done or (bool(chunk.get("usage")) and not chunk.get("choices"))
        for choice in _first_choices(chunk):
            reason = choice.get("finish_reason") or reason
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                _extend(texts, calls, delta)
    if not (done or reason or document.get("error")):
        return None
    message: dict[str, JsonValue] = {"role": "assistant", "content": None}
    message |= {name: "".join(pieces) for name, pieces in texts.items()}
    if calls:
        message["tool_calls"] = [calls[index].whole() for index in sorted(calls)]
    document["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
    return document


def stream_events(body: bytes) -> Iterator[str]:
    """Yield the data of each event of a stream."""
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


class _ToolCall:
    """A call of a tool, as far as it has come."""

    def __init__(self) -> None:
        self._fields: dict[str, JsonValue] = {}
        self._function: dict[str, JsonValue] = {}
        self._arguments: list[str] = []

    def extend(self, part: JsonObject) -> None:
        """Add the next part: what it names stands, but for the arguments, which come in pieces."""
        self._fields |= {name: value for name, value in part.items() if name not in ("index", "function")}
        stated = part.get("function")
        pieces = stated if isinstance(stated, dict) else {}
        arguments = pieces.get("arguments")
        if isinstance(arguments, str):
            self._arguments.append(arguments)
        elif arguments is not None and not self._arguments:
            self._function["arguments"] = arguments
        self._function |= {
            name: value
            for name, value in pieces.items()
            if name != "arguments" and (value or not self._function)
        }

    def whole(self) -> JsonValue:
        """Return it as a reply has it."""
        arguments: dict[str, JsonValue] = {"arguments": "".join(self._arguments)} if self._arguments else {}
        return {**self._fields, "function": {**self._function, **arguments}}


def _extend(texts: dict[str, list[str]], calls: dict[int, _ToolCall], delta: JsonObject) -> None:
    for name in _TEXTS:
        piece = delta.get(name)
        if isinstance(piece, str):
            texts.setdefault(name, []).append(piece)
    parts = delta.get("tool_calls")
    for part in parts if isinstance(parts, list) else ():
        if isinstance(part, dict):
            index = part.get("index")
            calls.setdefault(index if isinstance(index, int) else len(calls), _ToolCall()).extend(part)
