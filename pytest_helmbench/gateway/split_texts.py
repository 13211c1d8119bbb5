"""Texts that an answer holds in pieces: deltas of a stream, parts of a message, tokens of one after the other."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import field

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.streamed_replies import is_stream

__all__ = ["is_split", "with_joined"]

_SHOWN = "[key]"
_DATA = re.compile(rb"(?m)^data: ?([^\r\n]*)")
_PARTS = re.compile(rb'"(?:content|output|tool_calls|summary)"\s*:\s*\[|"token"\s*:')
"""Lists of which readers put texts together."""

Spans = Sequence[tuple[int, int]]


def is_split(body: bytes) -> bool:
    """Return whether an answer may hold one text in several pieces."""
    return is_stream(body) or _PARTS.search(body) is not None


def with_joined(body: bytes, found: Callable[[str], Spans]) -> bytes:
    """Return an answer without what its texts, put together, hold; as it is where they hold nothing.

    Args:
        body: Whole.
        found: Says where in a text something is to be cut out.
    """
    if not is_stream(body):
        document = _decoded(body)
        return json.dumps(document).encode() if _Pieces().cut([document], found) else body
    places = list(_DATA.finditer(body))
    documents = [_decoded(place[1]) for place in places]
    if not _Pieces().cut(documents, found):
        return body
    parts, at = [], 0
    for place, document in zip(places, documents, strict=True):
        whole = place[1] if document is None else json.dumps(document).encode()
        parts += [body[at : place.start(1)], whole]
        at = place.end(1)
    return b"".join([*parts, body[at:]])


def _decoded(text: bytes) -> JsonValue:
    try:
        document: JsonValue = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return document


@dataclass(slots=True)
class _Piece:
    """A text in a list or an object."""

    holder: dict[str, JsonValue] | list[JsonValue]
    place: str | int
    text: str

    def put(self, text: str) -> None:
        """Replace it."""
        if isinstance(self.holder, dict):
            self.holder[str(self.place)] = text
        else:
            self.holder[int(self.place)] = text


@dataclass(slots=True)
class _Pieces:
    """The texts of documents by the names that lead to them, in order, wherever in a list they stand."""

    by_names: dict[str, list[_Piece]] = field(default_factory=dict)

    def cut(self, documents: Sequence[JsonValue], found: Callable[[str], Spans]) -> bool:
        """Cut what is found out of the documents; return whether there was any."""
        self._collect(documents)
        changed = False
        for pieces in self.by_names.values():
            spans = found("".join(piece.text for piece in pieces)) if len(pieces) > 1 else ()
            for start, end in reversed(spans):
                _blank(pieces, start, end)
                changed = True
        return changed

    def _collect(self, documents: Sequence[JsonValue]) -> None:
        waiting: list[tuple[str, JsonValue]] = [("", document) for document in reversed(documents)]
        while waiting:
            names, value = waiting.pop()
            if isinstance(value, dict):
                for name, part in value.items():
                    self._take(f"{names}.{name}", value, name, part)
                waiting.extend((f"{names}.{name}", part) for name, part in reversed(value.items()))
            elif isinstance(value, list):
                for number, part in enumerate(value):
                    self._take(names, value, number, part)
                waiting.extend((names, part) for part in reversed(value))

    def _take(
        self, names: str, holder: dict[str, JsonValue] | list[JsonValue], place: str | int, part: JsonValue
    ) -> None:
        if isinstance(part, str):
            self.by_names.setdefault(names, []).append(_Piece(holder, place, part))


def _blank(pieces: Sequence[_Piece], start: int, end: int) -> None:
    """Cut a span of the joined texts out: what stands for it takes its place in the piece where it begins."""
    at = 0
    for piece in pieces:
        size = len(piece.text)
        first, last = max(start - at, 0), min(end - at, size)
        if first < last:
            shown = _SHOWN if at + first == start else ""
            piece.text = f"{piece.text[:first]}{shown}{piece.text[last:]}"
            piece.put(piece.text)
        at += size
