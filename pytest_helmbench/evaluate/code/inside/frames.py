"""Messages between two processes: JSON with a length before it, on two open files."""

from __future__ import annotations

import os
from typing import Any

__all__ = ["BrokenWireError", "Wire", "dumps", "loads"]

_HEAD = 8  # bytes of a frame's length
_CHUNK = 1 << 16


class BrokenWireError(Exception):
    """The other side has ended, or says what no honest one would."""


def _quick_json() -> Any:
    """Return encoder and scanner of the C module itself; the `json` package costs half a start of Python."""
    native = __import__("_json")

    class Settings:
        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = {
            "NaN": float("nan"),
            "Infinity": float("inf"),
            "-Infinity": float("-inf"),
        }.__getitem__
        memo: dict[str, str] = {}

    encode = native.make_encoder(
        None, None, native.encode_basestring_ascii, None, ":", ",", False, False, True
    )
    scan = native.make_scanner(Settings())

    def to_text(value: Any) -> str:
        return "".join(encode(value, 0))

    def from_text(text: str) -> Any:
        value, end = scan(text, 0)
        if end != len(text):
            raise ValueError("more than one value")
        return value

    if from_text(to_text([1, 2.5, "\u20ac", None, True])) != [1, 2.5, "\u20ac", None, True]:
        raise TypeError("another _json")
    return to_text, from_text


def _plain_json() -> Any:
    json = __import__("json")
    return json.dumps, json.loads


try:
    dumps, loads = _quick_json()
except (ImportError, AttributeError, TypeError, ValueError):  # its interface is nobody's promise
    dumps, loads = _plain_json()


class Wire:
    """One end of a conversation.

    Args:
        source: Descriptor to read from.
        target: Descriptor to write to.
        limit: Largest frame that is taken, in bytes.
    """

    def __init__(self, source: int, target: int, limit: int) -> None:
        self._source = source
        self._target = target
        self._limit = limit
        self._rest = b""

    def send(self, message: Any) -> None:
        """Write a message.

        Raises:
            BrokenWireError: Nobody reads any more.
            RecursionError: It is nested too deep.
        """
        body = dumps(message).encode("ascii")
        data = memoryview(len(body).to_bytes(_HEAD, "big") + body)
        try:
            while data:
                data = data[os.write(self._target, data) :]
        except OSError as error:
            raise BrokenWireError("it has ended") from error

    def receive(self) -> Any:
        """Read the next message; the other side speaks only when it is its turn.

        Raises:
            BrokenWireError: The other side has ended, or sends no single frame within the limit.
        """
        head = self._read(_HEAD)
        length = int.from_bytes(head, "big")
        if length > self._limit:
            raise BrokenWireError("it answered with more than %d bytes" % self._limit)  # noqa: UP031
        body = self._read(length)
        if self._rest:
            raise BrokenWireError("it spoke out of turn")
        try:
            return loads(body.decode("ascii"))
        except (ValueError, StopIteration, RecursionError, MemoryError, SystemError) as error:
            raise BrokenWireError("its answer cannot be read") from error

    def _read(self, size: int) -> bytes:
        parts = [self._rest]
        missing = size - len(self._rest)
        while missing > 0:
            try:
                chunk = os.read(self._source, _CHUNK)
            except OSError as error:
                raise BrokenWireError("it has ended") from error
            if not chunk:
                raise BrokenWireError("it has ended")
            parts.append(chunk)
            missing -= len(chunk)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]
