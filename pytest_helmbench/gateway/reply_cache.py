"""The reply cache: recorded replies in place of calls, and one call for identical requests in flight."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pytest_helmbench.gateway.live_stream import ChunkTimes

__all__ = ["CacheMode", "Record", "Recorded", "RecordedUse", "ReplyCache", "Wanted"]


class CacheMode(StrEnum):
    """`--helmbench-cache`. Every mode writes."""

    OFF = "off"
    REUSE = "reuse"
    REFRESH = "refresh"
    ONLY = "only"

    @property
    def reads(self) -> bool:
        """Whether recorded replies of other runs may be used."""
        return self in (CacheMode.REUSE, CacheMode.ONLY)


class RecordedUse(StrEnum):
    """Whether replies on record may stand for calls."""

    NEVER = "never"
    FIRST = "first"
    """A call is sent when its reply is not on record."""
    ONLY = "only"
    """Nothing is sent."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """A request that may have been answered before.

    Args:
        run_id: The run that asks.
        code: Code of the case.
        repetition: From 1; another repetition is another request.
        request_hash: SHA-256 (hex) of the body.
    """

    run_id: int
    code: str
    repetition: int
    request_hash: str

    @property
    def key(self) -> tuple[str, int]:
        """What makes two requests the same."""
        return self.request_hash, self.repetition


@dataclass(frozen=True, slots=True)
class Recorded:
    """A reply on record.

    Args:
        body: HTTP body as received.
        own: The same run has paid it (and is being resumed).
        times: Of the events of a stream, as it came.
    """

    body: bytes
    own: bool
    times: ChunkTimes = ()


class Record(Protocol):
    """Where recorded replies are found. Both methods raise `HelmbenchError` when the file cannot be read."""

    def look_up(self, wanted: Wanted) -> Recorded | None:
        """Return the reply on record that may be used, or None."""

    def settle(self) -> None:
        """Wait until everything that this session was answered can be found; from any thread."""


class ReplyCache:
    """Recorded replies, and calls that are shared while they are out.

    Lives on the loop of the process with the record.

    Args:
        record: Where replies are found.
        shares: Identical requests share one call.
    """

    def __init__(self, record: Record, *, shares: bool) -> None:
        self._record = record
        self._shares = shares
        self._out: dict[tuple[str, int], asyncio.Future[bytes | None]] = {}
        self._answered: set[tuple[str, int]] = set()

    async def look_up(self, wanted: Wanted) -> Recorded | None:
        """Return a reply; None means: ask, and tell by `answered` or `given_up` what came of it.

        Raises:
            HelmbenchError: The record cannot be read.
        """
        if not self._shares:
            return self._record.look_up(wanted)
        while (out := self._out.get(wanted.key)) is not None:
            body = await asyncio.shield(out)
            if body is not None:
                return Recorded(body, own=False)
        if wanted.key in self._answered:
            # On disk in a moment: in a thread, since a file that is locked can make it a long one.
            await asyncio.to_thread(self._record.settle)
        found = self._record.look_up(wanted)
        if found is None and wanted.key not in self._out:
            self._out[wanted.key] = asyncio.get_running_loop().create_future()
        return found

    def answered(self, request_hash: str, repetition: int, body: bytes) -> None:
        """Give the reply to those who wait for the same."""
        if self._shares:
            self._answered.add((request_hash, repetition))
        self._resolve((request_hash, repetition), body)

    def given_up(self, wanted: Wanted) -> None:
        """Let the next one ask who waits for the same."""
        self._resolve(wanted.key, None)

    def _resolve(self, key: tuple[str, int], body: bytes | None) -> None:
        out = self._out.pop(key, None)
        if out is not None and not out.done():
            out.set_result(body)
