"""The model calls of one item whose requests are not ours: an agent's, or those of a pack's own code."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, fields, replace
from types import TracebackType
from typing import Any, Self

from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.call import Call, Origin, Watch
from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.forwarded_request import ForwardedRequest
from pytest_helmbench.gateway.gateway import Gateway
from pytest_helmbench.gateway.limiter import RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.relay.client_errors import (
    BadRequestError,
    ItemEndedError,
    check_request,
    failure_of,
)
from pytest_helmbench.gateway.retries import CallFailedError

__all__ = ["ClientGaveUpError", "Conversation", "ItemLine", "RawReply", "Sums"]

_GRACE_S = 2.0
_SETTLE_S = 0.5  # for the end of a connection to reach us


class ClientGaveUpError(HelmbenchError):
    """A request whose client hung up before there was a reply."""

    def __init__(self, model: str) -> None:
        super().__init__(
            f"{model} had not answered when the code that asked gave up waiting"
            "\n  hint: a larger --helmbench-timeout may help, or fewer calls at a time"
        )


@dataclass(frozen=True, slots=True)
class ItemLine:
    """Whose calls they are, and who answers them.

    Args:
        origin: Run, code and repetition of the item.
        entry: The model under test; its sampling options win over what a request states.
        endpoint: Where it is reached.
        purpose: `agent` or `pack`; `case` for a hand-written test.
        timeout_s: Per attempt; None for that of everybody.
    """

    origin: Origin
    entry: ModelEntry
    endpoint: Endpoint
    purpose: str
    timeout_s: float | None = None


@dataclass(frozen=True, slots=True)
class RawReply:
    """What a request gets.

    Args:
        status: HTTP status: 200, or what fits the error.
        body: HTTP body: of a reply as the provider sent it, else an error of the OpenAI form.
        reply: The reply as read; None for an error.
        error: Why there is none, for people (`CallFailedError`, `RefusedError` and its kinds,
            `BadRequestError`, `ItemEndedError`).
    """

    status: int
    body: bytes
    reply: Reply | None = None
    error: HelmbenchError | None = None

    def message(self) -> Mapping[str, Any]:
        """Return the assistant's message with its content and tool calls; empty for an error."""
        if self.reply is None:
            return {}
        document = json.loads(self.body.decode("utf-8", "replace"))
        message: Mapping[str, Any] = document["choices"][0]["message"]
        return message


@dataclass(frozen=True, slots=True)
class Sums:
    """What the calls of an item came to so far.

    Args:
        requests: That the item has made, refused ones too.
        answered: That got a reply.
        recalled: Of these, replies taken from the record: they say nothing of time.
        usage: Of all replies, those that moderation cut too; a figure that one of them lacks is unknown.
        latency_ms: Of all replies, without our own waiting; None when there was none.
        finish_reason: Of the last reply; `provider_model` and `reply_key` likewise.
        open_faults: Errors that the item was told, and requests that it gave up, which no reply to the same
            request has followed.
    """

    requests: int = 0
    answered: int = 0
    recalled: int = 0
    usage: Usage = Usage()
    latency_ms: float | None = None
    finish_reason: str | None = None
    provider_model: str | None = None
    reply_key: str | None = None
    open_faults: tuple[HelmbenchError, ...] = ()


class _Exchange:
    """A request that is out, or whose reply nobody has taken yet."""

    __slots__ = ("key", "number", "patience", "task")

    def __init__(self, key: str, number: int, task: asyncio.Task[RawReply]) -> None:
        self.key = key
        self.number = number
        self.task = task
        self.patience: asyncio.TimerHandle | None = None
        """Runs while its client is gone."""

    @property
    def fruitless(self) -> bool:
        """Whether it has ended without a reply."""
        task = self.task
        return task.done() and (
            task.cancelled() or task.exception() is not None or task.result().reply is None
        )


class Conversation:
    """Passes the requests of one item on, keeps count of them, and ends them with the item.

    Used on the event loop only, as a context manager or with `end`.

    Inside of an item the n-th identical request is one of its own: it has its own reply, and a replay gives
    the same replies in the same order. A request that brought none gives its number to the next. With a
    journal, code that starts over is given the replies that it had, see `rewind`.

    Args:
        gateway: Where calls go.
        line: Whose they are.
        clock: Of the item.
        watch: Told while a call is on the wire. The item holds its place while one of its calls sleeps.
        grace_s: How long a call goes on whose client has hung up; an identical request takes it over.
        journal: Keep every reply until the item ends.
    """

    def __init__(
        self,
        gateway: Gateway,
        line: ItemLine,
        clock: CaseClock,
        watch: Watch,
        *,
        grace_s: float = _GRACE_S,
        journal: bool = False,
    ) -> None:
        self.line = line
        self._gateway = gateway
        self._clock = clock
        self._watch = _HeldPlace(watch)
        self._grace_s = grace_s
        self._sums = Sums()
        self._usage: Usage | None = None
        self._sequence = 0
        self._taken: defaultdict[str, set[int]] = defaultdict(set)
        self._tasks: set[asyncio.Task[RawReply]] = set()
        self._abandoned: defaultdict[str, list[_Exchange]] = defaultdict(list)
        self._open_faults: dict[str, HelmbenchError] = {}
        self._journal: dict[tuple[str, int], RawReply] | None = {} if journal else None
        self._era = 0
        self._waiting = 0
        self._nobody_waits = asyncio.Event()
        self._on_end: list[Callable[[], None]] = []
        self._bug: BaseException | None = None
        self.ended = False
        """Nothing more is passed on."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()

    @property
    def sums(self) -> Sums:
        """What the calls came to so far."""
        usage = self._usage if self._usage is not None else Usage()
        return replace(self._sums, usage=usage, open_faults=tuple(self._open_faults.values()))

    async def complete(self, body: Mapping[str, Any]) -> RawReply:
        """Pass a chat-completions request on and return what comes back; never a stream.

        Args:
            body: As the client wrote it; `model`, `stream` and what the user has set are replaced.

        Raises:
            asyncio.CancelledError: The caller is cancelled, or the session ends. The call goes on for a moment.
        """
        if self.ended:
            return self._failure(ItemEndedError())
        self._sums = replace(self._sums, requests=self._sums.requests + 1)
        try:
            call, key = self._call(body)
        except BadRequestError as error:
            self._open_faults[f"refused {self._sums.requests}"] = error
            return self._failure(error)
        raw = self._journaled(key)
        if raw is None:
            self._waiting += 1
            self._nobody_waits.clear()
            try:
                with self._clock.asking():
                    raw = await self._asked(call, key)
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._nobody_waits.set()
        if raw.error is None:
            self._open_faults.pop(key, None)
        elif not isinstance(raw.error, ItemEndedError):
            self._open_faults[key] = raw.error
        return raw

    def rewind(self) -> None:
        """Begin anew for code that starts over: each reply is given again, in its order.

        Raises:
            RuntimeError: It keeps no journal.
        """
        if self._journal is None:
            raise RuntimeError("there is no journal to begin anew from")
        self._era += 1
        # What it was told stands until the same is answered; what it gave up by dying does not count.
        for key in [key for key, fault in self._open_faults.items() if isinstance(fault, ClientGaveUpError)]:
            del self._open_faults[key]
        self._taken.clear()

    async def settle(self) -> HelmbenchError | None:
        """Wait a moment for requests that are open although the item has come to its end.

        A client that has hung up is known as gone later than what its code has said last.

        Returns:
            What is wrong with one that is open still, for an item that has failed without its reply; else None.
        """
        if self._waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SETTLE_S):
                    await self._nobody_waits.wait()
        return ClientGaveUpError(self.line.entry.id) if self._waiting else None

    def call_at_end(self, function: Callable[[], None]) -> None:
        """Have a function called once, when the item ends; at once when it has."""
        if self.ended:
            function()
        else:
            self._on_end.append(function)

    def fail(self, bug: BaseException) -> None:
        """Keep an error of our own code: `end` raises it, so that it reaches the item and not only a client."""
        self._bug = self._bug or bug

    async def end(self) -> None:
        """Pass nothing more on and cancel what is out; what has arrived is on record.

        Raises:
            BaseException: An error of our own code, that a request has met.
        """
        self.ended = True
        for exchange in (one for waiting in self._abandoned.values() for one in waiting):
            if exchange.patience is not None:
                exchange.patience.cancel()
        self._abandoned.clear()
        if self._journal is not None:
            self._journal.clear()
        callbacks, self._on_end = self._on_end, []
        for function in callbacks:
            function()
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        bug, self._bug = self._bug, None
        if bug is not None:
            raise bug

    def _call(self, body: Mapping[str, Any]) -> tuple[Call, str]:
        """Return the call and the hash that identical requests have in common."""
        line = self.line
        check_request(body, line.entry.sampling.extra_body or ())
        stated = body.get("response_format")
        call = Call(
            line.origin,
            line.entry,
            line.endpoint,
            (),
            stated if isinstance(stated, Mapping) else None,
            purpose=line.purpose,
            sequence=self._sequence + 1,
            forwarded=ForwardedRequest(body),
            timeout_s=line.timeout_s,
        )
        try:
            return call, Gateway.fingerprint(call)
        except RecursionError:
            raise BadRequestError("the request body is nested too deeply") from None

    async def _asked(self, call: Call, key: str) -> RawReply:
        era = self._era
        exchange = self._taken_over(key) or self._start(call, key)
        try:
            return await asyncio.shield(exchange.task)
        except asyncio.CancelledError:
            if not exchange.task.cancelled():
                self._abandon(exchange, in_vain=era == self._era)
            elif self.ended and not _is_cancelled():
                return self._failure(ItemEndedError())
            raise

    def _journaled(self, key: str) -> RawReply | None:
        """Return the reply to this request from before the code started over."""
        if self._journal is None:
            return None
        number = _smallest_free(self._taken[key])
        raw = self._journal.get((key, number))
        if raw is not None:
            self._taken[key].add(number)
            # What its client has not waited for is in the journal too.
            self._abandoned[key] = [one for one in self._abandoned[key] if not one.task.done()]
            self._sums = replace(self._sums, recalled=self._sums.recalled + 1)
        return raw

    def _start(self, call: Call, key: str) -> _Exchange:
        self._sequence += 1
        number = _smallest_free(self._taken[key])
        self._taken[key].add(number)
        task = asyncio.get_running_loop().create_task(self._exchange(call, key, number))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return _Exchange(key, number, task)

    async def _exchange(self, call: Call, key: str, number: int) -> RawReply:
        forwarded, era = call.forwarded, self._era
        if forwarded is None:
            raise RuntimeError("the call passes nothing on")
        forwarded.number = number
        try:
            reply = await self._gateway.ask(call, self._clock, self._watch)
        except BaseException as error:
            if era == self._era:
                self._taken[key].discard(number)
            if not isinstance(error, CallFailedError | RefusedError):
                raise
            if isinstance(error, CallFailedError) and error.fault.usage.prompt_tokens is not None:
                self._pay(error.fault.usage)
            return self._failure(error)
        self._take_note(reply, recalled=forwarded.recalled)
        raw = RawReply(200, forwarded.answer or b"", reply)
        if self._journal is not None:
            self._journal[key, number] = raw
        return raw

    def _take_note(self, reply: Reply, *, recalled: bool) -> None:
        self._pay(reply.usage)
        self._sums = replace(
            self._sums,
            answered=self._sums.answered + 1,
            recalled=self._sums.recalled + recalled,
            latency_ms=(self._sums.latency_ms or 0.0) + reply.latency_ms,
            finish_reason=reply.finish_reason,
            provider_model=reply.provider_model,
            reply_key=reply.key,
        )

    def _pay(self, usage: Usage) -> None:
        self._usage = usage if self._usage is None else _added(self._usage, usage)

    def _finished(self, task: asyncio.Task[RawReply]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bug := task.exception()) is not None:
            self.fail(bug)

    def _taken_over(self, key: str) -> _Exchange | None:
        """Return the request whose client has hung up and which this one repeats."""
        for exchange in tuple(self._abandoned.get(key, ())):
            self._abandoned[key].remove(exchange)
            if exchange.patience is not None:
                exchange.patience.cancel()
            if not exchange.fruitless:
                self._taken[key].add(exchange.number)
                return exchange
        return None

    def _abandon(self, exchange: _Exchange, *, in_vain: bool) -> None:
        """Let a call go on for a moment; a reply that comes is kept for who asks for it again.

        Args:
            exchange: It.
            in_vain: The code that asked is still there, and has no reply.
        """
        if self.ended:
            return
        if in_vain:
            self._open_faults[exchange.key] = ClientGaveUpError(self.line.entry.id)
        self._abandoned[exchange.key].append(exchange)
        # Without effect on a call that is done by then.
        exchange.patience = asyncio.get_running_loop().call_later(self._grace_s, exchange.task.cancel)

    def _failure(self, error: HelmbenchError) -> RawReply:
        status, body = failure_of(error, self.line.endpoint)
        return RawReply(status, body, error=error)


class _HeldPlace:
    """A watch for an item whose own code runs on while one of its calls sleeps."""

    def __init__(self, watch: Watch) -> None:
        self._watch = watch
        self.check = watch.check
        self.on_the_wire = watch.on_the_wire

    def asleep(self) -> AbstractContextManager[None]:
        """See `Watch.asleep`."""
        return nullcontext()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _smallest_free(taken: set[int]) -> int:
    number = 1
    while number in taken:
        number += 1
    return number


def _added(left: Usage, right: Usage) -> Usage:
    """Return the sum; what one side does not know is unknown."""

    def total(name: str) -> Any:
        a, b = getattr(left, name), getattr(right, name)
        return None if a is None or b is None else a + b

    return Usage(**{field.name: total(field.name) for field in fields(Usage)})
