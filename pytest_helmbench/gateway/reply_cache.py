"""The reply cache: recorded replies in place of calls, and one call for identical requests in flight."""

from __future__ import annotations

import asyncio
from enum import StrEnum
from typing import Protocol, TypeAlias

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.live_stream import ChunkTimes

__all__ = ["CacheMode", "Question", "Record", "Recorded", "RecordedUse", "ReplyCache", "Wanted"]


Question: TypeAlias = tuple[str | None, str, int]
"""Id of the model, hash of the request, repetition: one server's reply is not that of another."""


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
        request_hash: SHA-256 (hex) of the body, which may name the same model at two servers.
        asked: Id of the model.
        judge: The same of a marking model; None for other calls.
    """

    run_id: int
    code: str
    repetition: int
    request_hash: str
    asked: str
    judge: str | None = None

    @property
    def question(self) -> Question:
        """What makes two requests the same."""
        return self.asked, self.request_hash, self.repetition


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
        self._out: dict[Question, asyncio.Future[bytes | None]] = {}
        self._answered: set[Question] = set()

    async def look_up(self, wanted: Wanted) -> Recorded | None:
        """Return a reply; None means: ask, and tell by `answered` or `given_up` what came of it.

        Raises:
            HelmbenchError: The record cannot be read.
        """
        if not self._shares:
            return self._record.look_up(wanted)
        while (out := self._out.get(wanted.question)) is not None:
            body = await asyncio.shield(out)
            if body is not None:
                return Recorded(body, own=False)
        if wanted.question in self._answered:
            # On disk in a moment: in a thread, since a file that is locked can make it a long one.
            await asyncio.to_thread(self._record.settle)
        found = self._record.look_up(wanted)
        if found is None and wanted.question not in self._out:
            self._out[wanted.question] = asyncio.get_running_loop().create_future()
        return found

    def answered(self, question: Question, body: bytes) -> None:
        """Give the reply to those who wait for the same."""
        if self._shares:
            self._answered.add(question)
        self._resolve(question, body)

    def given_up(self, wanted: Wanted) -> None:
        """Let the next one ask who waits for the same."""
        self._resolve(wanted.question, None)

    def _resolve(self, key: Question, body: bytes | None) -> None:
        out = self._out.pop(key, None)
        if out is not None and not out.done():
            out.set_result(body)
