"""The backend: limiter and record of a session, used directly in one process, over a channel in a worker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import StrEnum
from typing import Protocol, TypeAlias

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import AttemptRecord, RecordedReply, ResultRecord
from pytest_helmbench.gateway.batches import BatchAnswer, Batches, BatchLine
from pytest_helmbench.gateway.limiter import Limiter
from pytest_helmbench.gateway.permits import AttemptResult, Ending, FailedCase, Permit, PermitRequest

Question: TypeAlias = tuple[str | None, str | None, str, int]
"""Id of the model, its address, hash of the request, repetition: one server's reply is not that of another."""


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
    """Whether replies on record may replace calls."""

    NEVER = "never"
    FIRST = "first"
    """A call is sent when its reply is not on record."""
    ONLY = "only"
    """Nothing is sent."""


@dataclass(frozen=True, slots=True)
class ReplyQuery:
    """A request that may have been answered before.

    Args:
        repetition: From 1; another repetition is another request.
        request_hash: SHA-256 (hex) of the body, which may name the same model at two servers.
        address: Where it is asked; None where no reply of another run may replace this one.
        judge: Id of a marking model; None for other calls.
    """

    run_id: int
    code: str
    repetition: int
    request_hash: str
    asked: str
    address: str | None
    judge: str | None = None

    @property
    def question(self) -> Question:
        """The key that identical requests share."""
        return self.asked, self.address, self.request_hash, self.repetition


class Record(Protocol):
    """Where recorded replies are found. Both methods raise `HelmbenchError` when the file cannot be read."""

    def look_up(self, query: ReplyQuery) -> RecordedReply | None:
        """Return the reply on record that may be used, or None."""

    def settle(self) -> None:
        """Wait until everything that this session was answered can be found; from any thread."""


class ReplyCache:
    """Recorded replies, and calls that are out, which identical requests may share.

    Lives on the loop of the process with the record.
    """

    def __init__(self, record: Record, *, shares: bool) -> None:
        self._record = record
        self._shares = shares
        self._out: dict[Question, asyncio.Future[bytes | None]] = {}
        self._answered: set[Question] = set()

    async def look_up(self, query: ReplyQuery) -> RecordedReply | None:
        """Return a reply; None means: send the request, then call `answered` or `given_up`.

        Raises:
            HelmbenchError: The record cannot be read.
        """
        if not self._shares or query.address is None:
            return self._record.look_up(query)
        while (out := self._out.get(query.question)) is not None:
            body = await asyncio.shield(out)
            if body is not None:
                return RecordedReply(body, own=False)
        if query.question in self._answered:
            # On disk in a moment: in a thread, since a file that is locked can make it a long one.
            await asyncio.to_thread(self._record.settle)
        found = self._record.look_up(query)
        if found is None and query.question not in self._out:
            self._out[query.question] = asyncio.get_running_loop().create_future()
        return found

    def answered(self, question: Question, body: bytes) -> None:
        """Give the reply to all requests that wait for it."""
        if self._shares:
            self._answered.add(question)
        self._resolve(question, body)

    def given_up(self, query: ReplyQuery) -> None:
        """Let the next request that waits for the same reply be sent."""
        self._resolve(query.question, None)

    def _resolve(self, question: Question, body: bytes | None) -> None:
        out = self._out.pop(question, None)
        if out is not None and not out.done():
            out.set_result(body)


class Backend(Protocol):
    """The limiter and the record as the gateway and the engine see them. Used on the event loop only."""

    async def acquire(self, request: PermitRequest) -> Permit:
        """Wait until an attempt may be sent; raises `RefusedError` and its kinds."""

    async def batched(self, line: BatchLine) -> BatchAnswer:
        """Wait until a batch has answered a call; raises `RefusedError` and its kinds."""

    def settle(self, permit: Permit, result: AttemptResult, record: AttemptRecord) -> None:
        """Give a permit back and put the attempt on record, in one step."""

    def release(self, permit: Permit) -> None:
        """Give back a permit that was not used; one that is settled already stays so."""

    def failed(self, model: str, case: FailedCase) -> None:
        """Count a case that has failed for good: a model whose first cases all fail alike is stopped."""

    async def look_up(self, query: ReplyQuery) -> RecordedReply | None:
        """Return a recorded reply; None: send the request, and call `give_up` when no reply comes.

        Raises `HelmbenchError` when the record cannot be read.
        """

    def give_up(self, query: ReplyQuery) -> None:
        """Report that a request that was not on record brought no reply."""

    def record_replay(self, record: AttemptRecord) -> None:
        """Put on record that an answer was taken from the record."""

    def record_result(self, record: ResultRecord) -> None:
        """Put the outcome of a case on record."""

    async def stored(self) -> None:
        """Wait until what was put on record so far is on disk; raises `NotStoredError` when it cannot be."""


class Disk(Protocol):
    """The record on disk. Used on the event loop only."""

    async def stored(self) -> None:
        """Wait until everything recorded so far is on disk; raises `NotStoredError` when it cannot be."""

    async def room(self) -> None:
        """Wait while so many replies are not on disk yet that none should be added; raises `NotStoredError`."""

    async def announce(self, permit: Permit, request: PermitRequest) -> None:
        """Record a call on disk before it is sent, so that the budget counts it even if this process dies."""

    def take_back(self, permit: Permit) -> None:
        """Delete the record of a call in flight: its cost is on record, or it cost nothing."""


@dataclass(slots=True, eq=False)
class LocalBackend:
    """The backend of the process that owns limiter and store.

    Args:
        record_attempt: Takes an attempt without blocking.
        on_result: Takes a result without blocking.
        reply_cache: Recorded replies; None when the session uses none.
        disk: The record on disk; None where it keeps everything at once.
        batches: Where calls that may wait go; None for none.
    """

    limiter: Limiter
    record_attempt: Callable[[AttemptRecord], None]
    on_result: Callable[[ResultRecord], None]
    reply_cache: ReplyCache | None = None
    disk: Disk | None = None
    batches: Batches | None = None

    def use_replies(self, reply_cache: ReplyCache) -> None:
        """Use recorded replies from now on."""
        self.reply_cache = reply_cache

    async def acquire(self, request: PermitRequest) -> Permit:
        """Wait for a permit, then for room on the disk. Calls that come later do not overtake this one."""
        permit = await self.limiter.acquire(request)
        if self.disk is None:
            return permit
        try:
            await self.disk.room()
            if permit.reserved_usd:
                await self.disk.announce(permit, request)
        except BaseException:
            self.release(permit)
            raise
        return permit

    async def batched(self, line: BatchLine) -> BatchAnswer:
        """Wait until a batch has answered a call; one that is not to be batched goes singly."""
        return BatchAnswer() if self.batches is None else await self.batches.ask(line)

    def settle(self, permit: Permit, result: AttemptResult, record: AttemptRecord) -> None:
        """Record the attempt, then give its permit back, so that nothing is counted that could be lost."""
        try:
            self.record_attempt(record)
            self._take_back(permit)
        finally:
            self.limiter.settle(permit, result)
        if self.batches is not None and record.batch is not None:
            self.batches.settled(record.batch)
        if self.reply_cache is not None and record.reply_key is not None and record.response_body is not None:
            self.reply_cache.answered(record.question, record.response_body)

    def release(self, permit: Permit) -> None:
        self._take_back(permit)
        self.limiter.settle(permit, AttemptResult(Ending.OTHER))

    def _take_back(self, permit: Permit) -> None:
        if permit.reserved_usd and self.disk is not None:
            self.disk.take_back(permit)

    def lose(self, permit: Permit) -> None:
        """Give back the permit of a worker that has died: its request may have been sent, and be billed."""
        self.limiter.settle(permit, AttemptResult(Ending.OTHER, unanswered=True))

    def failed(self, model: str, case: FailedCase) -> None:
        self.limiter.failed(model, case)

    async def look_up(self, query: ReplyQuery) -> RecordedReply | None:
        return await self.reply_cache.look_up(query) if self.reply_cache is not None else None

    def give_up(self, query: ReplyQuery) -> None:
        """Pass the question on to the next request that waits for the same reply."""
        if self.reply_cache is not None:
            self.reply_cache.given_up(query)

    def record_replay(self, record: AttemptRecord) -> None:
        self.record_attempt(record)

    def record_result(self, record: ResultRecord) -> None:
        self.on_result(record)

    async def stored(self) -> None:
        if self.disk is not None:
            await self.disk.stored()
