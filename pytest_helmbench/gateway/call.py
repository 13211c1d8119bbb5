"""A call: one question to one model, whose it is, and who watches it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.forwarded_request import ForwardedRequest
from pytest_helmbench.gateway.providers.endpoints import Endpoint

__all__ = ["Asking", "Call", "Origin", "Unwatched", "Watch"]


@dataclass(frozen=True, slots=True)
class Origin:
    """The run, the case and the repetition that a call is made for."""

    run_id: int
    code: str
    repetition: int


@dataclass(frozen=True, slots=True)
class Call:
    """One question to one model.

    Args:
        origin: Whose it is.
        entry: The model, with its sampling options.
        endpoint: Where it is reached.
        messages: In order.
        response_format: Wire form of the wanted reply; None for plain text.
        purpose: `case`, `judge`, `pack` or `agent`.
        criterion: Of a judge call; empty otherwise.
        sequence: The n-th call of this purpose inside the case, from 1.
        forwarded: The body of somebody else that is sent instead of messages and format; None for our own.
        timeout_s: Per attempt; None for that of everybody.
        hides_words: What the provider says of a fault may quote hidden values: only status and codes are kept.
        accepts: Whether a reply on record is of use; another one is asked for, but in a pure replay.
    """

    origin: Origin
    entry: ModelEntry
    endpoint: Endpoint
    messages: Sequence[Message]
    response_format: JsonObject | None
    purpose: str = "case"
    criterion: str = ""
    sequence: int = 1
    forwarded: ForwardedRequest | None = None
    timeout_s: float | None = None
    hides_words: bool = False
    accepts: Callable[[Reply], bool] = lambda _reply: True


class Watch(Protocol):
    """Whoever keeps count of what a call is doing."""

    def check(self) -> None:
        """Raise `asyncio.CancelledError` when nothing more may be sent."""

    def asleep(self) -> AbstractContextManager[None]:
        """Entered while the call waits for a retry and holds nothing."""

    def on_the_wire(self) -> AbstractContextManager[None]:
        """Entered while a request is out."""


class Unwatched:
    """Nobody keeps count: of calls that are not made, of questions that are no case's. See `Watch`."""

    def check(self) -> None:
        """Nothing is sent."""

    def asleep(self) -> AbstractContextManager[None]:
        """Nothing waits."""
        return nullcontext()

    def on_the_wire(self) -> AbstractContextManager[None]:
        """Nothing is out."""
        return nullcontext()


class Asking(Protocol):
    """Whatever brings replies to calls."""

    async def ask(self, call: Call, clock: CaseClock, watch: Watch) -> Reply:
        """Get a reply.

        Args:
            call: The question.
            clock: Of the case.
            watch: Told while the call sleeps and while it is on the wire.

        Raises:
            CallFailedError: No reply came.
            RefusedError: The session may not ask any more.
        """
