"""Lines between us and a Node process: over inherited sockets, or a loopback server where nothing is inherited."""

from __future__ import annotations

import asyncio
import hmac
import json
import os
import secrets
import socket
from collections.abc import Callable, Mapping
from typing import Protocol

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = ["HAS_INHERITANCE", "InheritedWire", "Lines", "LoopbackWire", "Wire", "too_deep"]

HAS_INHERITANCE = os.name == "posix"
"""Whether a process can inherit open sockets by number."""

_LONGEST_LINE = 32 * 1024 * 1024
_MOST_DROPPED = 1000
_DEEPEST = 64
_LONGEST_GREETING = 200


class Lines(asyncio.Protocol):
    """What a Node process says, line by line. A pack can find the secret: what has it may still be a forgery.

    Args:
        received: Called with each message.
        spoilt: Called once, with what was wrong, when lines came that nobody can read; nothing is read after them.
        ended: Called when nothing more can come.
    """

    def __init__(
        self,
        received: Callable[[JsonObject], None],
        spoilt: Callable[[str], None],
        ended: Callable[[], None],
    ) -> None:
        self.secret = secrets.token_hex(16).encode()
        self.dropped = 0  # lines of somebody else
        self._received, self._spoilt, self._ended = received, spoilt, ended
        self._rest = bytearray()
        self._deaf = False

    def data_received(self, data: bytes) -> None:
        """Take what came; a line without the secret is a forgery or a pack's own output, and is dropped."""
        if self._deaf:
            return
        self._rest += data
        if b"\n" in data:
            *lines, rest = bytes(self._rest).split(b"\n")
            self._rest = bytearray(rest)
            for line in lines:
                if line and not self._deaf:
                    self._take(line)
        if len(self._rest) > _LONGEST_LINE:
            self._give_up("a line without an end")

    def connection_lost(self, exc: Exception | None) -> None:
        """The process is gone, or has closed its end."""
        del exc
        self._ended()

    def drop(self) -> None:
        """Count a line that means nothing."""
        self.dropped += 1
        if self.dropped >= _MOST_DROPPED:
            self._give_up(f"{_MOST_DROPPED:,} lines that mean nothing")

    def _take(self, line: bytes) -> None:
        if len(line) > _LONGEST_LINE:
            self._give_up("a line that is too long")
            return
        if not line.startswith(self.secret):
            self.drop()
            return
        try:
            message: JsonValue = json.loads(line[len(self.secret) :])
        except (ValueError, RecursionError):  # not JSON; a number of thousands of digits; thousands of lists
            message = None
        if isinstance(message, dict):
            self._received(message)
        else:
            self._give_up("a line that cannot be read")

    def _give_up(self, came: str) -> None:
        self._deaf = True
        self._rest.clear()
        self._spoilt(f"{came} came through its channel")


class Wire(Protocol):
    """How one process is reached."""

    argument: str
    """What tells the process where its ends are."""

    descriptors: tuple[int, ...]
    """What it inherits."""

    environment: Mapping[str, str]
    """What its environment has to hold."""

    async def connect(self, lines: Lines) -> None:
        """Begin to listen, once the process has been started."""

    def send(self, message: JsonObject) -> None:
        """Write a message as one line, without waiting."""

    def close(self) -> None:
        """Close our ends; the process ends too."""


class InheritedWire:
    """Three pairs of sockets: there, back, and a lifeline whose end says that we are gone."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in range(3)]
        self._ours = [ours for ours, _ in pairs]
        self._theirs = [theirs for _, theirs in pairs]
        self._transports: list[asyncio.Transport] = []
        self.descriptors = tuple(end.fileno() for end in self._theirs)
        self.argument = "fds:" + ",".join(map(str, self.descriptors))
        self.environment: Mapping[str, str] = {}

    async def connect(self, lines: Lines) -> None:
        """Begin to listen; their ends are theirs alone from now on."""
        loop = asyncio.get_running_loop()
        for end in self._theirs:
            end.close()
        there, back, _ = self._ours
        for end, protocol in ((there, asyncio.Protocol()), (back, lines)):
            transport, _ = await loop.create_connection(lambda chosen=protocol: chosen, sock=end)  # type: ignore[misc]
            self._transports.append(transport)

    def send(self, message: JsonObject) -> None:
        """See `Wire.send`."""
        _send(self._transports[0], message)

    def close(self) -> None:
        """See `Wire.close`: the lifeline too."""
        for transport in self._transports:
            transport.abort()
        for end in (*self._theirs, *self._ours[len(self._transports) :]):
            end.close()


class LoopbackWire:
    """A server on the loopback device for two guests with a token: the lines, and the lifeline."""

    descriptors: tuple[int, ...] = ()

    def __init__(self) -> None:
        self._token = secrets.token_hex(16)
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self._server: asyncio.Server | None = None
        self._lifelines: list[asyncio.Transport] = []
        self._transport: asyncio.Transport | None = None
        self._waiting: list[JsonObject] = []
        self.argument = f"port:{self._socket.getsockname()[1]}"
        self.environment: Mapping[str, str] = {"HELMBENCH_BRIDGE_TOKEN": self._token}
        self._socket.listen()

    async def connect(self, lines: Lines) -> None:
        """Begin to serve; whoever comes without the token is turned away."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(
            lambda: _Guest(self._token, self._acquire, lines), sock=self._socket
        )

    def send(self, message: JsonObject) -> None:
        """Send a message, as soon as the process has come."""
        if self._transport is None:
            self._waiting.append(message)
        else:
            _send(self._transport, message)

    def close(self) -> None:
        """See `Wire.close`; nobody else is let in."""
        for transport in (self._transport, *self._lifelines):
            if transport is not None:
                transport.abort()
        if self._server is not None:
            self._server.close()
        self._socket.close()

    def _acquire(self, role: str, transport: asyncio.Transport) -> None:
        if role != "wire":
            self._lifelines.append(transport)
            return
        self._transport = transport
        for message in self._waiting:
            _send(transport, message)


class _Guest(asyncio.Protocol):
    """Somebody who has connected, until the first line tells who it is."""

    def __init__(self, token: str, acquire: Callable[[str, asyncio.Transport], None], lines: Lines) -> None:
        self._token, self._acquire, self._lines = token, acquire, lines
        self._said = b""
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember whom to send away."""
        assert isinstance(transport, asyncio.Transport)  # TCP
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Admit whoever has the token."""
        transport = self._transport
        if transport is None:
            return
        self._said += data
        greeting, newline, rest = self._said.partition(b"\n")
        if not newline and len(greeting) < _LONGEST_GREETING:
            return
        token, _, role = greeting.decode("ascii", "replace").partition(" ")
        if not hmac.compare_digest(token.encode(), self._token.encode()):
            transport.abort()
            return
        if role == "wire":
            transport.set_protocol(self._lines)
        self._acquire(role, transport)
        if role == "wire" and rest:
            self._lines.data_received(rest)


def too_deep(value: object) -> bool:
    """Return whether lists and objects are nested more deeply than any that our side of the process sends."""
    level = [value]
    for _ in range(_DEEPEST):
        held = [one for one in level if isinstance(one, dict | list)]
        level = [part for one in held for part in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


def _send(transport: asyncio.WriteTransport, message: JsonObject) -> None:
    if not transport.is_closing():
        transport.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
