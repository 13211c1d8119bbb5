"""The requests of one item that are out: counted where they are alike, and handed over when a client comes back."""

from __future__ import annotations

import asyncio
from collections import defaultdict

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Reply
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.live_stream import ChunkTimes, LiveStream
from pytest_helmbench.gateway.wire import first_choice, reply_document

__all__ = ["Exchange", "Exchanges", "RawReply"]


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

    def abandon(self, exchange: Exchange, grace_s: float) -> None:
        """Let a call go on whose client has hung up; a reply that comes is kept for who asks for it again."""
        self._abandoned[exchange.key].append(exchange)
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
