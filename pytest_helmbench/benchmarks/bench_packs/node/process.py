"""One Node process from outside: its bounds, its lines, how it is killed, and in which ways it fails."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import socket
from collections.abc import Callable
from contextlib import suppress

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt, scrub, without_tokens

REASONS = frozenset(
    ("threw", "unhandled", "exited", "too_slow", "hung", "crashed", "malformed", "not_loadable")
)
"""Why a Bench Pack failed, in one word each."""
_NOT_OF_THE_PACK = ("node:internal", "node/inside/")
ODD_FORM = "its answer came in a form that is none of ours"
_MESSAGE = 500
_STACK = 4_000
_LONGEST_LINE = 32 * 1024 * 1024
_MOST_DROPPED = 1000
_DEEPEST = 64
_LONGEST_TOKEN = 64


@dataclass(frozen=True, slots=True)
class BridgeBounds:
    """How long a pack is waited for, and how much is kept of it.

    Args:
        start_s: From the start of Node to the loaded pack.
        answer_s: For the list of scenarios and for the score.
        freeze_s: Without a sign of life; then the process is killed and its items run again, one by one.
        alone_freeze_s: Likewise for the first item of a process that runs one by one: its work may block.
        grace_s: Between the abort signal and giving up on an item.
        close_s: For disposing of what is prepared.
        heartbeat_s: Between two signs of life.
        output_bytes: Kept of what is printed.
    """

    start_s: float = 60.0
    answer_s: float = 60.0
    freeze_s: float = 10.0
    alone_freeze_s: float = 30.0
    grace_s: float = 1.0
    close_s: float = 1.0
    heartbeat_s: float = 0.25
    output_bytes: int = 16 * 1024


class PackFailedError(HelmbenchError):
    """A Bench Pack failed at what it was asked: nothing that a model did. No text of it holds a relay's token.

    Args:
        reason: One of `REASONS`.
        message: What happened, in one or two sentences; the pack's own words in it are scrubbed and cut.
        output: The end of what was printed, scrubbed: the item's own where that is known, else the process's.
        stack: Where it was thrown, as Node says, scrubbed; empty where nothing was thrown.
    """

    def __init__(self, reason: str, message: str, output: str = "", stack: str = "") -> None:
        self.reason = reason
        self.message = without_tokens(message)
        self.output = without_tokens(output)
        self.stack = without_tokens(stack)
        super().__init__(self.message)

    @property
    def words(self) -> str:
        """Where it was thrown, without the places that are Node's and ours, then what was printed."""
        lines = [
            line for line in self.stack.splitlines() if not any(word in line for word in _NOT_OF_THE_PACK)
        ]
        return "\n".join(filter(None, (*lines, self.output)))


class ChildLostError(Exception):
    """The process is gone, and it is unknown which of its items was to blame.

    Args:
        loss: Reason and words, as far as they are known.
        alone: It was asked one thing in all its life.
    """

    def __init__(self, loss: PackFailedError, *, alone: bool) -> None:
        self.loss = loss
        self.alone = alone
        super().__init__(loss.message)


def stated_loss(failure: object) -> tuple[str, str, str]:
    """Return reason, words and stack of a failure, as far as they can be taken from what a process says."""
    said = failure.get("said") if isinstance(failure, dict) else None
    stack = failure.get("stack") if isinstance(failure, dict) else None
    if not isinstance(failure, dict) or not isinstance(said, str) or not isinstance(stack, str):
        return "malformed", ODD_FORM, ""
    reason = failure.get("reason")
    known = reason if isinstance(reason, str) and reason in REASONS else "malformed"
    return known, excerpt(without_tokens(said), _MESSAGE), excerpt(without_tokens(stack), _STACK)


class Lines(asyncio.Protocol):
    """The messages of a Node process, line by line. A pack can find the secret and forge a line.

    Args:
        received: Called with each message.
        spoilt: Called once, with what was wrong, when lines came that cannot be read; nothing is read after them.
        ended: Called when nothing more can come.
    """

    def __init__(
        self,
        received: Callable[[JsonObject], None],
        spoilt: Callable[[str], object],
        ended: Callable[[], None],
    ) -> None:
        self.secret = secrets.token_hex(16).encode()
        self.dropped = 0  # lines without the secret
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


class ProcessWire:
    """Three pairs of sockets: there, back, and a lifeline whose end says that we are gone."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in range(3)]
        self._ours = [ours for ours, _ in pairs]
        self._theirs = [theirs for _, theirs in pairs]
        self._transports: list[asyncio.Transport] = []
        self.descriptors = tuple(end.fileno() for end in self._theirs)
        """The descriptors that the process inherits."""
        self.argument = ",".join(map(str, self.descriptors))

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
        """Write a message as one line, without waiting."""
        transport = self._transports[0]
        if not transport.is_closing():
            transport.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Close our ends; the process ends too."""
        for transport in self._transports:
            transport.abort()
        for end in (*self._theirs, *self._ours[len(self._transports) :]):
            end.close()


def too_deep(value: object) -> bool:
    """Return whether lists and objects are nested more deeply than any that our side of the process sends."""
    level = [value]
    for _ in range(_DEEPEST):
        held = [one for one in level if isinstance(one, dict | list)]
        level = [part for one in held for part in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return False
    return any(isinstance(one, dict | list) for one in level)


class NodeProcess(asyncio.SubprocessProtocol):
    """A process as asyncio knows it, and the end of what it prints.

    Args:
        kept: Bytes of output that are kept.
        exited: Set when it has ended.
    """

    def __init__(self, kept: int, exited: asyncio.Event) -> None:
        self.pid: int | None = None
        self._kept, self._exited = kept, exited
        self._output = bytearray()
        self._transport: asyncio.SubprocessTransport | None = None

    @property
    def returncode(self) -> int | None:
        """How it ended; negative for a signal."""
        return None if self._transport is None else self._transport.get_returncode()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the process and its number."""
        assert isinstance(transport, asyncio.SubprocessTransport)  # what a subprocess gets
        self._transport = transport
        self.pid = transport.get_pid()

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Keep the end of what is printed."""
        del fd
        self._output += data
        if len(self._output) > 2 * self._kept:
            del self._output[: -self._kept - _LONGEST_TOKEN]

    def process_exited(self) -> None:
        """Set the event that others wait for."""
        self._exited.set()

    def text(self) -> str:
        """Return what is kept, scrubbed and without tokens."""
        kept = bytes(self._output[-self._kept - _LONGEST_TOKEN :]).decode("utf-8", "replace")
        return without_tokens(scrub(kept))[-self._kept :].strip()

    def end(self, *, through_launcher: bool) -> None:
        """Kill it and its group; a launcher does that itself, since it also finds what has left the group."""
        if through_launcher and self.pid is not None and not self._exited.is_set():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGTERM)
                os.kill(self.pid, signal.SIGCONT)  # the pack can stop it, and it would not hear us
        else:
            self.kill_group()

    def kill_group(self) -> None:
        """Kill what is left of its group, whether it has ended itself or not."""
        if self._transport is None or self.pid is None:
            return
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Stop reading, even if other processes still hold the other ends."""
        if self._transport is not None:
            self._transport.close()
