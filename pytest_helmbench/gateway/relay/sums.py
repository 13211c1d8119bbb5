"""The sums of an item's model calls: how many, what they used, and which errors nothing has made good."""

from __future__ import annotations

from dataclasses import replace
from typing import TypeVar

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError

__all__ = ["Sums", "Tally"]

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
