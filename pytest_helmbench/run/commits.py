"""The disk behind the record: calls wait here until their replies are committed, and while too many are not."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.gateway.permits import NotStoredError, Permit, PermitRequest
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.write.writer import Store

_LONG_S = 10.0
_LONG_AT_THE_END_S = 2.0


class Commits:
    """The disk as calls see it (`gateway.backend.Disk`). Used on the loop's thread, but for `slow_sentence`.

    Args:
        most_waiting: Replies that may wait for the disk while more is sent.
        on_fault: Told, once, that nothing can be stored any more where it should be.
        clock: Monotonic seconds.
    """

    def __init__(
        self,
        store: Store,
        loop: LoopThread,
        most_waiting: int,
        on_fault: Callable[[NotStoredError], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._store = store
        self._loop = loop
        self._most_waiting = most_waiting
        self._on_fault = on_fault
        self._clock = clock
        # Numbers of entries in the store's queue, in order.
        self._replies: deque[int] = deque()
        self._waiters: deque[tuple[int, asyncio.Future[None]]] = deque()
        self._senders: list[asyncio.Future[None]] = []
        self._last_commit = clock()
        self._said = False
        self._reported = False
        self._ends_at: float | None = None
        store.listen(lambda: loop.soon(self._settled))

    def add_reply(self) -> None:
        """Count a reply that was given to the store just now."""
        if not self._replies:
            self._last_commit = self._clock()
        self._replies.append(self._store.progress()[0])

    async def stored(self) -> None:
        """Return when all that was recorded is committed."""
        number, settled, fault = self._store.progress()
        if settled < number and fault is None:
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiters.append((number, waiter))
            await waiter
            # The store's own state: a record that a fault has dropped may be newer than the wake-up.
            fault = self._store.fault
        if fault is not None:
            raise _error_of(fault)

    async def room(self) -> None:
        """Return when few enough replies wait for the disk and the lease is fresh."""
        while len(self._replies) > self._most_waiting or self._store.lease_is_old:
            self._check()
            if self._store.lease_is_old:
                # Another process may have gone on with the run while this process stood still.
                self._store.heartbeat()
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._senders.append(waiter)
            await waiter
            self._check()

    async def announce(self, permit: Permit, request: PermitRequest) -> None:
        """Record that a call is about to be sent, and return when that is committed."""
        self._store.record_sent(permit.number, request.run_id, request.label, permit.reserved_usd)
        await self.stored()

    def take_back(self, permit: Permit) -> None:
        """Drop the record of a call that was not sent."""
        self._store.forget_sent(permit.number)

    def slow_sentence(self) -> str | None:
        """Return, once per standstill, what is said when nothing has come to the disk for 10 s. From any thread.

        At the end of a session, when 2 s were not enough for what is left. It also wakes calls that wait for a writer
        that has broken down.
        """
        if self._store.fault is not None and (self._waiters or not self._reported):
            self._loop.soon(self._settled)
        if self._ends_at is not None:
            return self._last_sentence(self._ends_at)
        waiting = len(self._replies)
        if not waiting or self._clock() - self._last_commit < _LONG_S:
            self._said = False
            return None
        if self._said:
            return None
        self._said = True
        return (
            f"nothing could be written to {self._store.path} for {_LONG_S:.0f} s: {waiting} replies wait for the"
            f" disk, and while more than {self._most_waiting} do, nothing new is sent"
        )

    def session_ends(self) -> None:
        """Take note that all that is left is waited for. From any thread."""
        self._ends_at = self._clock()
        self._said = False

    def _last_sentence(self, ends_at: float) -> str | None:
        queued, settled, fault = self._store.progress()
        if (
            self._said
            or fault is not None
            or settled >= queued
            or self._clock() - ends_at < _LONG_AT_THE_END_S
        ):
            return None
        self._said = True
        return (
            f"waiting for {self._store.path}: {queued - settled} results are not on disk yet; another process may hold"
            " it. Ctrl-C writes everything to helmbench-recovered.db beside it, and ends"
        )

    def _settled(self) -> None:
        _, settled, fault = self._store.progress()
        if fault is not None:
            self._replies.clear()
        ends = fault or self._store.displaced
        if ends is not None and not self._reported:
            self._reported = True
            self._on_fault(_error_of(ends))
        self._last_commit = self._clock()
        while self._replies and self._replies[0] <= settled:
            self._replies.popleft()
        while self._waiters and (fault is not None or self._waiters[0][0] <= settled):
            _resolve(self._waiters.popleft()[1])
        senders, self._senders = self._senders, []
        for sender in senders:
            _resolve(sender)

    def _check(self) -> None:
        fault = self._store.fault
        if fault is not None:
            raise _error_of(fault)


def _error_of(fault: StoreError) -> NotStoredError:
    return NotStoredError(f"replies cannot be stored, so nothing more is asked: {fault}")


def _resolve(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
