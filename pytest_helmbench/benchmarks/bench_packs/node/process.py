"""One Node process from outside: its bounds, its lines, and in which ways it fails."""

from __future__ import annotations

import asyncio
import json
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt, without_tokens

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


class Lines:
    """The messages of a Node process, line by line. A pack can find the secret and forge a line.

    Args:
        spoilt: Called once, with what was wrong, when lines came that cannot be read; nothing is read after them.
    """

    def __init__(self, received: Callable[[JsonObject], None], spoilt: Callable[[str], object]) -> None:
        self.secret = secrets.token_hex(16).encode()
        self.dropped = 0  # lines without the secret
        self._received, self._spoilt = received, spoilt
        self._deaf = False

    async def read(self, stream: asyncio.StreamReader) -> None:
        """Take line after line, until nothing more can come.

        A line without the secret is a forgery or a pack's own output, and is dropped.
        """
        with suppress(asyncio.IncompleteReadError, OSError):
            while not self._deaf:
                try:
                    line = await stream.readuntil()
                except asyncio.LimitOverrunError:
                    self._give_up("a line that is too long")
                else:
                    self._take(line[:-1])

    def drop(self) -> None:
        """Count a line that means nothing."""
        self.dropped += 1
        if self.dropped >= _MOST_DROPPED:
            self._give_up(f"{_MOST_DROPPED:,} lines that mean nothing")

    def _take(self, line: bytes) -> None:
        if not line.startswith(self.secret):
            if line:
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
        self._spoilt(f"{came} came through its channel")


class ProcessWire:
    """Three pairs of sockets: there, back, and a lifeline whose end says that we are gone."""

    def __init__(self) -> None:
        pairs = [socket.socketpair() for _ in range(3)]
        self._ours = [ours for ours, _ in pairs]
        self._theirs = [theirs for _, theirs in pairs]
        self._writers: list[asyncio.StreamWriter] = []
        self.descriptors = tuple(end.fileno() for end in self._theirs)
        """The descriptors that the process inherits."""
        self.argument = ",".join(map(str, self.descriptors))

    async def connect(self) -> asyncio.StreamReader:
        """Return what the process writes; its ends are its own alone from now on."""
        for end in self._theirs:
            end.close()
        for end in self._ours[:2]:
            reader, writer = await asyncio.open_connection(sock=end, limit=_LONGEST_LINE)
            self._writers.append(writer)
        return reader

    def send(self, message: JsonObject) -> None:
        """Write a message as one line, without waiting."""
        writer = self._writers[0]
        if not writer.is_closing():
            writer.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def close(self) -> None:
        """Close our ends; the process ends too."""
        for writer in self._writers:
            writer.transport.abort()
        for end in (*self._theirs, *self._ours[len(self._writers) :]):
            end.close()
