"""The requests of one item: which of them are out, which are alike, and what all came to."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import replace
from typing import TypeVar

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.http_answers import ChunkTimes, LiveStream
from pytest_helmbench.gateway.replies import first_choice, reply_document

_Number = TypeVar("_Number", int, float)


@dataclass(frozen=True, slots=True)
class Sums:
    """What the calls of an item came to so far.

    Args:
        requests: That the item has made, refused ones too.
        answered: That got a reply.
        recalled: Of these, replies taken from the record: they say nothing of time.
        streams: Requests that asked for a stream.
        usage: Of all replies, those that moderation cut too; a figure that one of them lacks is unknown.
        latency_ms: Of all replies, without our own waiting; None when there was none.
        finish_reason: Of the last reply; `provider_model` and `reply_key` likewise.
        open_faults: Errors that the item was told, and requests that it gave up, which no reply to the same
            request has followed.
    """

    requests: int = 0
    answered: int = 0
    recalled: int = 0
    streams: int = 0
    usage: Usage = Usage()
    latency_ms: float | None = None
    finish_reason: str | None = None
    provider_model: str | None = None
    reply_key: str | None = None
    open_faults: tuple[HelmbenchError, ...] = ()


class Tally:
    """Adds up the calls of one item. Requests that are alike have one key."""

    def __init__(self) -> None:
        self._sums = Sums()
        self._usage: Usage | None = None
        self._open_faults: dict[str, HelmbenchError] = {}

    @property
    def sums(self) -> Sums:
        """What the calls came to so far."""
        return replace(
            self._sums, usage=self._usage or Usage(), open_faults=tuple(self._open_faults.values())
        )

    def count_request(self, *, streamed: bool = False) -> int:
        """Count a request and return its number, from 1."""
        sums = self._sums
        self._sums = replace(sums, requests=sums.requests + 1, streams=sums.streams + streamed)
        return self._sums.requests

    def add_reply(self, reply: Reply, *, recalled: bool) -> None:
        """Count a reply; `recalled` when it was taken from the record."""
        self.add_usage(reply.usage)
        self._sums = replace(
            self._sums,
            answered=self._sums.answered + 1,
            recalled=self._sums.recalled + recalled,
            latency_ms=(self._sums.latency_ms or 0.0) + reply.latency_ms,
            finish_reason=reply.finish_reason,
            provider_model=reply.provider_model,
            reply_key=reply.key,
        )

    def add_cut_stream(self) -> None:
        """Count a stream that its client has left in the middle: what it has used is not known yet."""
        self._sums = replace(self._sums, answered=self._sums.answered + 1)

    def add_repeated_reply(self) -> None:
        """Count a reply that was counted before and is given again."""
        self._sums = replace(self._sums, recalled=self._sums.recalled + 1)

    def add_usage(self, usage: Usage) -> None:
        """Count what a call used that brought no reply."""
        self._usage = usage if self._usage is None else _added(self._usage, usage)

    def open_fault(self, key: str, fault: HelmbenchError) -> None:
        """Keep an error that stands until the same request is answered."""
        self._open_faults[key] = fault

    def close_fault(self, key: str) -> None:
        """Forget the error of a request that has been answered."""
        self._open_faults.pop(key, None)

    def close_faults(self, kind: type[HelmbenchError]) -> None:
        """Forget all errors of one kind."""
        for key in [key for key, fault in self._open_faults.items() if isinstance(fault, kind)]:
            del self._open_faults[key]


def _added(left: Usage, right: Usage) -> Usage:
    """Return the sum; what one side does not know is unknown."""
    return Usage(
        prompt_tokens=_sum(left.prompt_tokens, right.prompt_tokens),
        completion_tokens=_sum(left.completion_tokens, right.completion_tokens),
        cached_tokens=_sum(left.cached_tokens, right.cached_tokens),
        reasoning_tokens=_sum(left.reasoning_tokens, right.reasoning_tokens),
        cost_usd=_sum(left.cost_usd, right.cost_usd),
        estimated=left.estimated or right.estimated,
    )


def _sum(left: _Number | None, right: _Number | None) -> _Number | None:
    return None if left is None or right is None else left + right


@dataclass(frozen=True, slots=True)
class RawReply:
    """What a request gets.

    Args:
        status: HTTP status: 200, or what fits the error.
        body: HTTP body: of a reply as the provider sent it, else an error of the OpenAI form.
        reply: The reply as read; None for an error.
        error: Why there is none, for people (`CallFailedError`, `RefusedError` and its kinds,
            `BadRequestError`, `ItemEndedError`).
        stream: The reply as the provider streamed it; None where it did not.
        times: When its events came, where they are to be given at these times.
    """

    status: int
    body: bytes
    reply: Reply | None = None
    error: HelmbenchError | None = None
    stream: bytes | None = None
    times: ChunkTimes = ()

    def message(self) -> JsonObject:
        """Return the assistant's message with its content and tool calls; empty for an error."""
        if self.reply is None:
            return {}
        message = first_choice(reply_document(self.body)).get("message")
        return message if isinstance(message, dict) else {}


class Exchange:
    """A request that is out, or whose reply nobody has taken yet.

    Args:
        key: The same for requests that are alike.
        number: Which of these it is, from 1.
        task: Ends with the reply.
        live: The stream that was asked for, as far as it has come; None where none was.
    """

    __slots__ = ("_patience", "key", "live", "number", "task")

    def __init__(
        self, key: str, number: int, task: asyncio.Task[RawReply], live: LiveStream | None = None
    ) -> None:
        self.live = live
        self.key = key
        self.number = number
        self.task = task
        self._patience: asyncio.TimerHandle | None = None

    @property
    def fruitless(self) -> bool:
        """Whether it has ended without a reply."""
        task = self.task
        return task.done() and (
            task.cancelled() or task.exception() is not None or task.result().reply is None
        )

    def cancel_after(self, grace_s: float) -> None:
        """Cancel it then, unless `keep` is called; without effect on a call that is done by then."""
        self._patience = asyncio.get_running_loop().call_later(grace_s, self.task.cancel)

    def keep(self) -> None:
        """Take back `cancel_after`."""
        if self._patience is not None:
            self._patience.cancel()


class Exchanges:
    """Knows which of several requests that are alike is which, and whose reply waits for its client.

    The n-th of them always gets the same reply, in a replay too. One that brought no reply gives its number
    to the next.

    Args:
        journal: Keep every reply, so that code that starts over is given those it had.
    """

    def __init__(self, *, journal: bool) -> None:
        self.era = 0
        """How often the item's code has started over."""
        self._taken: defaultdict[str, set[int]] = defaultdict(set)
        self._abandoned: defaultdict[str, list[Exchange]] = defaultdict(list)
        self._journal: dict[tuple[str, int], RawReply] | None = {} if journal else None

    def take_number(self, key: str) -> int:
        """Return the smallest number that no request of this key has."""
        number = _smallest_free(self._taken[key])
        self._taken[key].add(number)
        return number

    def give_back(self, key: str, number: int, era: int) -> None:
        """Free the number of a request that brought no reply, unless the code has started over since."""
        if era == self.era:
            self._taken[key].discard(number)

    def keep_reply(self, key: str, number: int, raw: RawReply) -> None:
        """Put a reply into the journal, where there is one."""
        if self._journal is not None:
            self._journal[key, number] = raw

    def kept_reply(self, key: str) -> RawReply | None:
        """Return the reply to the next request of this key from before the code started over."""
        if self._journal is None:
            return None
        number = _smallest_free(self._taken[key])
        raw = self._journal.get((key, number))
        if raw is not None:
            self._taken[key].add(number)
            # What its client has not waited for is in the journal too.
            self._abandoned[key] = [one for one in self._abandoned[key] if not one.task.done()]
        return raw

    def abandon(self, exchange: Exchange, grace_s: float | None) -> None:
        """Let a call go on whose client has hung up; a reply that comes is kept for who asks for it again.

        Args:
            exchange: The call.
            grace_s: It is cancelled then, unless it was taken over; None lets it go on to its end.
        """
        self._abandoned[exchange.key].append(exchange)
        if grace_s is not None:
            exchange.cancel_after(grace_s)

    def take_over(self, key: str) -> Exchange | None:
        """Return a request whose client has hung up and which is made again now."""
        for exchange in tuple(self._abandoned.get(key, ())):
            self._abandoned[key].remove(exchange)
            exchange.keep()
            if not exchange.fruitless:
                self._taken[key].add(exchange.number)
                return exchange
        return None

    def start_over(self) -> None:
        """Give the replies in the journal again, each in its order.

        Raises:
            RuntimeError: There is no journal.
        """
        if self._journal is None:
            raise RuntimeError("there is no journal to begin anew from")
        self.era += 1
        self._taken.clear()
        for exchange in (one for waiting in self._abandoned.values() for one in waiting):
            exchange.keep()  # its code will ask for it again, perhaps not soon

    def clear(self) -> None:
        """Forget all of them; calls that are out go on."""
        for exchange in (one for waiting in self._abandoned.values() for one in waiting):
            exchange.keep()
        self._abandoned.clear()
        if self._journal is not None:
            self._journal.clear()


def _smallest_free(taken: set[int]) -> int:
    number = 1
    while number in taken:
        number += 1
    return number
