"""HTTP answers of providers, as bytes and as streams of events."""

from __future__ import annotations

import asyncio
import re
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_helmbench.core.json_types import JsonObject, JsonValue, decoded_json
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.faults import Fault

_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
OnEvent = Callable[[bytes], None]
"""Takes each event of a stream as it arrives."""
_NAMES = frozenset(("role", "id", "type", "name", "format", "index"))
"""Fields of a reply that do not come in parts; servers repeat them."""
_MOST_PARTS = 20
"""Parts of a call that are looked through for its end, each time that its name comes again."""
_HEAD = ("id", "created", "model", "system_fingerprint", "service_tier", "provider", "error")
_USAGE = ("usage", "x_groq", "usageMetadata")
_FIELDS = (b"data:", b"event:", b"id:", b"retry:", b":")


class LiveStream:
    """The events of a reply that have arrived so far."""

    def __init__(self) -> None:
        self.events: list[bytes] = []
        self.changed = asyncio.Event()
        """Set with each event; cleared by the reader."""

    @property
    def begun(self) -> bool:
        """Something has been passed on: the request cannot be made again."""
        return bool(self.events)

    def add(self, event: bytes) -> None:
        """Take the next event, with the blank line that ends it."""
        self.events.append(event)
        self.changed.set()


class EventCutter:
    """Cuts what arrives into events, cleans each of what must not be seen, and passes it on with its blank line."""

    def __init__(self, passed_on: Callable[[bytes], None], cleaned: Callable[[bytes], bytes]) -> None:
        self._passed_on = passed_on
        self._cleaned = cleaned
        self._rest = bytearray()
        self._looked_at = 0
        self._events: list[bytes] = []

    def feed(self, chunk: bytes) -> None:
        """Take what has arrived."""
        self._rest += chunk
        while (found := _END.search(self._rest, max(0, self._looked_at - 3))) is not None:
            event = bytes(self._rest[: found.end()])
            del self._rest[: found.end()]
            self._looked_at = 0
            self._take(event)
        self._looked_at = len(self._rest)

    def close(self) -> bytes:
        """Return the whole body as it was passed on."""
        if self._rest:
            self._take(bytes(self._rest))
        return b"".join(self._events)

    def _take(self, event: bytes) -> None:
        self._events.append(self._cleaned(event))
        self._passed_on(self._events[-1])


def events_of(stream: bytes) -> list[bytes]:
    """Return the events of a whole stream, each with the blank line that ends it."""
    events: list[bytes] = []
    cutter = EventCutter(events.append, bytes)
    cutter.feed(stream)
    cutter.close()
    return events


class TransportError(Exception):
    """No whole answer came: no connection, no time left, or too many bytes."""

    def __init__(self, fault: Fault) -> None:
        self.fault = fault
        super().__init__(fault.message)


@dataclass(frozen=True, slots=True)
class RawAnswer:
    """A whole HTTP answer.

    Args:
        headers: Names in lower case; of a repeated header the last.
        body: As received and decompressed; a key of ours that the server repeats is cut out.
        latency_ms: From sending to the last byte; None for the line of a batch.
    """

    status: int
    headers: Mapping[str, str]
    body: bytes
    latency_ms: float | None


def is_stream(body: bytes) -> bool:
    """Return whether a body is a stream of events: no JSON begins like one."""
    return body.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(_FIELDS)


def streamed_document(body: bytes) -> dict[str, JsonValue] | None:
    """Return the chat completion that a whole stream says; None when it breaks off, or says none."""
    document: dict[str, JsonValue] = {"object": "chat.completion"}
    deltas: list[JsonObject] = []
    reason: JsonValue = None
    done = False
    for data in stream_events(body):
        if data == "[DONE]":
            done = True
            continue
        chunk = decoded_json(data)
        if not isinstance(chunk, dict):
            return None
        document |= {name: chunk[name] for name in (*_HEAD, *_USAGE) if chunk.get(name) is not None}
        # Tokens in an event of their own are counted when all is written.
        done = done or (bool(chunk.get("usage")) and not chunk.get("choices"))
        for choice in _first_choices(chunk):
            reason = choice.get("finish_reason") or reason
            delta = choice.get("delta") or choice.get("message")
            if isinstance(delta, dict):
                deltas.append(delta)
    if not (done or reason or document.get("error")):
        return None
    message = {"content": None, **_whole(deltas), "role": "assistant"}
    document["choices"] = [{"index": 0, "message": message, "finish_reason": reason}]
    return document


def stream_events(body: bytes) -> Iterator[str]:
    """Yield the data of each event of a stream."""
    lines: list[str] = []
    for line in (
        body.removeprefix(BOM_UTF8)
        .decode("utf-8", "replace")
        .replace("\r\n", "\n")
        .replace("\r", "\n")
        .split("\n")
    ):
        if line.startswith("data:"):
            lines.append(line[5:].removeprefix(" "))
        elif not line and lines:
            yield "\n".join(lines)
            lines = []
    if lines:
        yield "\n".join(lines)


def _first_choices(chunk: JsonObject) -> Iterator[JsonObject]:
    choices = chunk.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and not choice.get("index"):
            yield choice


def _whole(parts: Sequence[JsonObject]) -> dict[str, JsonValue]:
    """Return an object that came in parts: texts, lists and objects go on, another value stands as it came last."""
    names = dict.fromkeys(name for part in parts for name in part)
    found = {name: [part[name] for part in parts if part.get(name) is not None] for name in names}
    return {name: _joined(name, values) for name, values in found.items() if values}


def _joined(name: str, values: Sequence[JsonValue]) -> JsonValue:
    if name in _NAMES:
        return next((value for value in values if value), values[0])
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return "".join(texts)
    objects = [value for value in values if isinstance(value, dict)]
    if len(objects) == len(values):
        return _whole(objects)
    lists = [value for value in values if isinstance(value, list)]
    if len(lists) == len(values):
        return [*_items([part for value in lists for part in value])]
    return values[-1]


def _items(parts: Sequence[JsonValue]) -> list[JsonValue]:
    """Return a list whose items came in parts: an item goes on with its index, a call without one with the last."""
    items: list[Sequence[JsonValue]] = []
    open_items: dict[JsonValue, list[dict[str, JsonValue]]] = {}
    last: JsonValue = None
    for part in parts:
        if not isinstance(part, dict):
            items.append([part])
            continue
        index = part.get("index")
        index = index if isinstance(index, int) else last if _is_call(part) else None
        item = open_items.get(index)
        if item is None or (index is None and not _is_call(part)) or _begins(part, item):
            item = open_items[index] = []
            items.append(item)
        item.append(part)
        last = index
    return [_item(item) for item in items]


def _item(parts: Sequence[JsonValue]) -> JsonValue:
    objects = [part for part in parts if isinstance(part, dict)]
    whole = _whole(objects)
    if not objects:
        return parts[0]
    return {name: value for name, value in whole.items() if name != "index"} if _is_call(whole) else whole


def _is_call(part: JsonObject) -> bool:
    return "function" in part or "arguments" in part


def _function(part: JsonObject) -> JsonObject:
    function = part.get("function")
    return function if isinstance(function, dict) else part


def _begins(part: JsonObject, before: Sequence[JsonObject]) -> bool:
    """Return whether a part begins an item though its index is not new: servers count 0 for each call.

    It is of another kind; or it names a function, and has another name, another id, or a whole call before it.
    """
    first = before[0]
    if part.get("type") and first.get("type") and part["type"] != first["type"]:
        return True
    name, begun = _function(part).get("name"), _function(first).get("name")
    if not name or not _is_call(part):
        return False
    if begun and name != begun:
        return True
    if part.get("id") and first.get("id"):
        return part["id"] != first["id"]
    if len(before) > _MOST_PARTS or not str(_function(before[-1]).get("arguments")).rstrip().endswith("}"):
        return False
    arguments = _function(_whole(before)).get("arguments")
    return isinstance(arguments, dict) or (
        isinstance(arguments, str) and isinstance(decoded_json(arguments), dict)
    )
