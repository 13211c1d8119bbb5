"""A call: one question to one model, whose it is, who watches it, and the time that its case may take."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.requests import ForwardedRequest
from pytest_helmbench.gateway.retries import RetryPolicy


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
        entry: The model, with its sampling options.
        response_format: Wire form of the wanted reply; None for plain text.
        purpose: `case`, `judge`, `pack` or `agent`.
        criterion: Of a judge call; empty otherwise.
        sequence: The n-th call of this purpose inside the case, from 1.
        forwarded: The foreign body that is sent instead of messages and format; None for our own.
        timeout_s: Per attempt; None for the session's.
        hides_words: A fault's words may quote hidden values: only its status and codes are kept.
        tools: As a request announces them; empty for none.
        turn: Of the conversation, from 1; None where there is none.
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
    tools: Sequence[JsonObject] = ()
    turn: int | None = None
    accepts: Callable[[Reply], bool] = lambda _reply: True


class CallWatch:
    """Follows a call of a case; this one does nothing, for calls outside of cases."""

    may_wait = False
    """Whether its calls may go in a batch."""

    def check(self) -> None:
        """Raise `asyncio.CancelledError` when the session sends nothing more."""

    def asleep(self) -> AbstractContextManager[None]:
        """Entered while the call waits for a retry and holds nothing."""
        return nullcontext()

    def on_the_wire(self) -> AbstractContextManager[None]:
        """Entered while a request is on the wire."""
        return nullcontext()


class ReplySource(Protocol):
    """Anything that returns replies to calls."""

    async def ask(self, call: Call, clock: CaseClock, watch: CallWatch) -> Reply:
        """Return the reply to a call; raises `CallFailedError` or `RefusedError` when there is none."""


class CaseClock:
    """The time a case has used: on the wire and in backoff, not in our own queues.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, retry_policy: RetryPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = retry_policy.longest_pause_s
        self._retry_policy = retry_policy
        self._clock = clock
        self._counts = retry_policy.case_timeout_s is not None
        self._spent_s = 0.0
        self._running = 0
        self._since = 0.0

    @property
    def seconds(self) -> Callable[[], float]:
        """Monotonic seconds, as it counts them."""
        return self._clock

    def of_next_call(self) -> CaseClock:
        """Return the clock of the next call of a conversation: a limit that the user states is one for all calls."""
        return (
            self
            if self._retry_policy.case_timeout_s is not None
            else CaseClock(self._retry_policy, self._clock)
        )

    def left_s(self) -> float:
        """Return what is left; may be below 0."""
        running_s = self._clock() - self._since if self._running and self._counts else 0.0
        return self._limit_s - self._spent_s - running_s

    def asking(self) -> AbstractContextManager[None]:
        """Entered while a request of foreign code is open, on the wire or waiting."""
        return nullcontext()

    @contextmanager
    def running(self) -> Iterator[None]:
        """Count the time inside; calls that overlap count once."""
        if not self._running:
            self._since = self._clock()
        self._running += 1
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                if self._counts:
                    self._spent_s += self._clock() - self._since
                self._counts = True


class ItemClock(CaseClock):
    """Counts all the time of an item but what its requests wait in our own queues.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, retry_policy: RetryPolicy, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(retry_policy, clock)
        self._now = clock
        self._asked = 0
        self._out = 0
        self._began = clock()
        self._waited_s = 0.0
        self._waits_since: float | None = None

    def begin(self) -> None:
        """Count from now on: the item's code starts, or starts over."""
        self._began = self._now()
        self._waited_s = 0.0
        if self._waits_since is not None:
            self._waits_since = self._began

    def used_s(self) -> float:
        """Return the seconds since `begin`, without those in which every open request waited for a permit."""
        now = self._now()
        waiting_s = 0.0 if self._waits_since is None else now - self._waits_since
        return now - self._began - self._waited_s - waiting_s

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Mark a request of foreign code as open, on the wire or waiting."""
        self._count(asked=1)
        try:
            yield
        finally:
            self._count(asked=-1)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Mark a request as on the wire."""
        self._count(out=1)
        try:
            with super().running():
                yield
        finally:
            self._count(out=-1)

    def _count(self, asked: int = 0, out: int = 0) -> None:
        self._asked += asked
        self._out += out
        waits = self._asked > 0 and self._out == 0
        if waits and self._waits_since is None:
            self._waits_since = self._now()
        elif not waits and self._waits_since is not None:
            self._waited_s += self._now() - self._waits_since
            self._waits_since = None
