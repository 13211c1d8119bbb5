"""What all processes of a session share: one gate, one record. Direct in one process, a channel from a worker."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pytest_helmbench.core.outcome import AttemptRecord, ResultRecord
from pytest_helmbench.gateway.limiter import Ask, Ending, Gate, Settlement, Ticket
from pytest_helmbench.gateway.reply_cache import Recollection, Recorded, Wanted

__all__ = ["Hub", "LocalHub"]


class Hub(Protocol):
    """The gate and the record as the gateway and the engine see them. Used on the event loop only."""

    async def admit(self, ask: Ask) -> Ticket:
        """Wait until an attempt may go; raises `RefusedError` and its kinds."""

    def settle(self, ticket: Ticket, settlement: Settlement, record: AttemptRecord) -> None:
        """Give a ticket back and put the attempt on record, in one step."""

    def release(self, ticket: Ticket) -> None:
        """Give back a ticket that was not used; one that is settled already stays so."""

    async def recall(self, wanted: Wanted) -> Recorded | None:
        """Return a recorded reply; None means: ask, and give up by `give_up` when no reply comes.

        Raises `HelmbenchError` when the record cannot be read.
        """

    def give_up(self, wanted: Wanted) -> None:
        """Say that a request that was not on record brought no reply."""

    def record_replay(self, record: AttemptRecord) -> None:
        """Put on record that an answer was taken from the record."""

    def record_result(self, record: ResultRecord) -> None:
        """Put the outcome of a case on record."""


class LocalHub:
    """The hub of the process that owns gate and store.

    Args:
        gate: The session's gate.
        record_attempt: Takes an attempt without blocking.
        record_result: Takes a result without blocking.
        recollection: Recorded replies; None when the session uses none.
    """

    def __init__(
        self,
        gate: Gate,
        record_attempt: Callable[[AttemptRecord], None],
        record_result: Callable[[ResultRecord], None],
        recollection: Recollection | None = None,
    ) -> None:
        self._gate = gate
        self._record_attempt = record_attempt
        self._record_result = record_result
        self._recollection = recollection

    def recall_from(self, recollection: Recollection) -> None:
        """Use recorded replies from now on."""
        self._recollection = recollection

    async def admit(self, ask: Ask) -> Ticket:
        """See `Hub.admit`."""
        return await self._gate.admit(ask)

    def settle(self, ticket: Ticket, settlement: Settlement, record: AttemptRecord) -> None:
        """See `Hub.settle`: the record first, so that nothing is counted that could be lost."""
        try:
            self._record_attempt(record)
        finally:
            self._gate.settle(ticket, settlement)
        if (
            self._recollection is not None
            and record.reply_key is not None
            and record.response_body is not None
        ):
            self._recollection.answered(record.request_hash, record.repetition, record.response_body)

    def release(self, ticket: Ticket) -> None:
        """See `Hub.release`."""
        self._gate.settle(ticket, Settlement(Ending.OTHER))

    async def recall(self, wanted: Wanted) -> Recorded | None:
        """See `Hub.recall`."""
        return await self._recollection.recall(wanted) if self._recollection is not None else None

    def give_up(self, wanted: Wanted) -> None:
        """See `Hub.give_up`."""
        if self._recollection is not None:
            self._recollection.given_up(wanted)

    def record_replay(self, record: AttemptRecord) -> None:
        """See `Hub.record_replay`."""
        self._record_attempt(record)

    def record_result(self, record: ResultRecord) -> None:
        """See `Hub.record_result`."""
        self._record_result(record)
