"""Messages between two processes: JSON with a length before it, on two open files."""

from __future__ import annotations

import os
from _ast import AST, Constant, Dict, List, Name, UnaryOp  # `ast` costs as much as a start of Python

TYPE_CHECKING = False  # and so does `typing`
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, TypeAlias

    Json: TypeAlias = "tuple[Callable[[object], str], Callable[[str], Any]]"
    """What makes text of a value, and what makes a value of text."""

    Parts: TypeAlias = "list[Any]"
    """A list of a message; what its items are, whoever uses them finds out: one that does not fit raises."""

__all__ = ["BrokenWireError", "Wire", "dumps", "loads"]

_HEAD = 8  # bytes of a frame's length
_CHUNK = 1 << 16
_ONLY_TREE = 0x400  # ast.PyCF_ONLY_AST
_WORDS = {
    "None": "null",
    "True": "true",
    "False": "false",
    "inf": "Infinity",
    "-inf": "-Infinity",
    "nan": "NaN",
}
_MEANINGS = {"null": None, "true": True, "false": False, "Infinity": float("inf"), "NaN": float("nan")}


class BrokenWireError(Exception):
    """The other side has ended, or says what no honest one would."""


def _quick_json() -> Json:
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

    encode = native.make_encoder(
        None, None, native.encode_basestring_ascii, None, ":", ",", False, False, True
    )
    scan = native.make_scanner(Settings())

    def to_text(value: object) -> str:
        return "".join(encode(value, 0))

    def from_text(text: str) -> object:
        value, end = scan(text, 0)
        if end != len(text):
            raise ValueError("more than one value")
        return value

    if from_text(to_text([1, 2.5, "\u20ac", None, True])) != [1, 2.5, "\u20ac", None, True]:
        raise TypeError("another _json")
    return to_text, from_text


def _plain_json() -> Json:
    try:
        json = __import__("json")
    except ImportError:  # a minimal Python, as some images have it
        return _to_text, _from_text
    return json.dumps, json.loads


def _to_text(value: object) -> str:
    if isinstance(value, str):
        units = value.encode("utf-16-be", "surrogatepass").hex()
        return '"' + "".join("\\u" + units[place : place + 4] for place in range(0, len(units), 4)) + '"'
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_to_text, value)) + "]"
    if isinstance(value, dict):
        return "{" + ",".join(_to_text(key) + ":" + _to_text(item) for key, item in value.items()) + "}"
    text = repr(value)
    return _WORDS.get(text, text)


def _from_text(text: str) -> object:
    return _literal(compile(text, "message", "eval", _ONLY_TREE, dont_inherit=True).body)


def _literal(node: AST | None) -> object:
    """Return what a syntax tree without names and calls stands for."""
    if isinstance(node, Constant) and isinstance(node.value, str):
        return node.value.encode("utf-16", "surrogatepass").decode("utf-16", "surrogatepass")
    if isinstance(node, Constant) and type(node.value) in (int, float):
        return node.value
    if isinstance(node, List):
        return [_literal(item) for item in node.elts]
    if isinstance(node, Dict):
        return {_literal(key): _literal(item) for key, item in zip(node.keys, node.values)}
    if isinstance(node, UnaryOp) and isinstance(number := _literal(node.operand), (int, float)):
        return -number
    if isinstance(node, Name):
        return _MEANINGS[node.id]
    raise ValueError("no JSON")


try:
    dumps, loads = _quick_json()
except (ImportError, AttributeError, TypeError, ValueError):  # its interface is nobody's promise
    dumps, loads = _plain_json()

_UNREADABLE = (
    *(ValueError, StopIteration, RecursionError, MemoryError, SystemError),
    *(SyntaxError, TypeError, KeyError, AttributeError),
)


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

    def send(self, message: object) -> None:
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
            raise BrokenWireError(f"it answered with more than {self._limit} bytes")
        body = self._read(length)
        if self._rest:
            raise BrokenWireError("it spoke out of turn")
        try:
            return loads(body.decode("ascii"))
        except _UNREADABLE as error:
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
