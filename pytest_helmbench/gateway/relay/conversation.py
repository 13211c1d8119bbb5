"""The model calls of one item whose requests are not ours: an agent's, or those of a pack's own code."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from types import TracebackType
from typing import Self, TypeAlias

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.attempt import prepared
from pytest_helmbench.gateway.call import Call, CallWatch, CaseClock, Origin, ReplySource
from pytest_helmbench.gateway.http_answers import LiveStream
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.relay.refusals import BadRequestError, ItemEndedError, check_request, failure_of
from pytest_helmbench.gateway.requests import ForwardedRequest
from pytest_helmbench.gateway.retries import CallFailedError

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
    """The origin of an item's calls, and the model that answers them.

    Args:
        origin: Run, code and repetition of the item.
        entry: The model under test; its sampling options win over what a request states.
        purpose: `agent` or `pack`; `case` for a hand-written test.
        timeout_s: Per attempt; None for the session's.
        trusted: The code that asks is the user's own.
    """

    origin: Origin
    entry: ModelEntry
    endpoint: Endpoint
    purpose: str
    timeout_s: float | None = None
    trusted: bool = False


@dataclass(slots=True)
class CallTotals:
    """Totals of the calls of an item so far.

    Args:
        requests: That the item has made, refused ones too.
        answered: That got a reply.
        recalled: Replies taken from the record, or given again: they say nothing of time.
        usage: Of all replies, those that moderation cut too; a figure that one of them lacks is unknown.
        latency_ms: Of all replies, without our own waiting; None when there was none.
        open_faults: Errors that the item received, and requests that it gave up, without a later reply to the same
            request.
    """

    requests: int = 0
    answered: int = 0
    recalled: int = 0
    usage: Usage = Usage()
    latency_ms: float | None = None
    reply_key: str | None = None
    open_faults: tuple[HelmbenchError, ...] = ()


@dataclass(frozen=True, slots=True)
class RawReply:
    """The answer to a request.

    Args:
        status: HTTP status: 200, or what fits the error.
        body: HTTP body: of a reply as the provider sent it, else an error of the OpenAI form.
        reply: The reply as read; None for an error.
        error: Why there is none, for people (`CallFailedError`, `RefusedError` and its kinds,
            `BadRequestError`, `ItemEndedError`).
        stream: The reply as the provider streamed it; None where it did not.
    """

    status: int
    body: bytes
    reply: Reply | None = None
    error: HelmbenchError | None = None
    stream: bytes | None = None


Door: TypeAlias = Callable[[bytes], Awaitable[bytes]]
"""Answers the body of a request with that of a reply; raises `BadRequestError`."""


class _Exchange:
    """A request that is out or answered, and whether a client has its reply or waits for it."""

    __slots__ = ("live", "number", "taken", "task", "timer")

    def __init__(self, number: int, task: asyncio.Task[RawReply], live: LiveStream | None) -> None:
        self.number = number
        self.task = task
        self.live = live
        self.taken = True
        self.timer: asyncio.TimerHandle | None = None

    def give(self) -> None:
        """Give it to a client; a call that its client had left is not cancelled."""
        self.taken = True
        self.keep()

    def keep(self) -> None:
        """Let the call go on to its end."""
        if self.timer is not None:
            self.timer.cancel()


class Conversation:
    """Passes the requests of one item on, keeps count of them, and ends them with the item.

    Used on the event loop only, as a context manager or with `end`.

    Inside of an item the n-th identical request is one of its own: it has its own reply, and a replay gives
    the same replies in the same order. A request that brought none gives its number to the next. Code that starts
    over is given the replies that it had, see `rewind`.

    Args:
        watch: Told while a call is on the wire. The item holds its place while one of its calls sleeps.
        grace_s: How long a call goes on whose client has hung up; an identical request takes it over.
    """

    def __init__(
        self,
        gateway: ReplySource,
        line: ItemLine,
        clock: CaseClock,
        watch: CallWatch,
        *,
        grace_s: float = _GRACE_S,
    ) -> None:
        self.line = line
        self._gateway = gateway
        self._clock = clock
        self._watch: CallWatch = _HeldPlace(watch)
        self._grace_s = grace_s
        self._totals = CallTotals()
        self._usage: Usage | None = None
        self._open_faults: dict[str, HelmbenchError] = {}
        self._exchanges: defaultdict[str, list[_Exchange]] = defaultdict(list)
        self._started_over = 0
        self._sequence = 0
        self._tasks: set[asyncio.Task[RawReply]] = set()
        self._waiting = 0
        self._none_waits = asyncio.Event()
        self._on_end: list[Callable[[], None]] = []
        self._bug: BaseException | None = None
        self._door: Door | None = None
        self.ended = False
        """Nothing more is passed on."""
        self.last_text = ""
        """Text of the last reply that had one."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()

    @property
    def model_id(self) -> str:
        """The model under test, which answers every request."""
        return self.line.entry.id

    @property
    def totals(self) -> CallTotals:
        """Totals of the calls so far."""
        return replace(
            self._totals, usage=self._usage or Usage(), open_faults=tuple(self._open_faults.values())
        )

    @property
    def door(self) -> Door | None:
        """The door beside the model, for requests that are not for it; None where such are refused."""
        return None if self.ended else self._door

    def set_door(self, door: Door | None) -> None:
        """Open a door beside the model, or close it."""
        self._door = door

    def refuse(self, method: str, error: HelmbenchError) -> None:
        """Record a request that cannot be passed on: it is not a failure of the model.

        A pack or an agent may look around (GET) or come without its token; whatever it asks else, it will not do
        without.
        """
        if not self.line.trusted and isinstance(error, NotAdmittedError):
            return
        self._totals.requests += 1
        if self.line.trusted or method not in ("GET", "HEAD", "OPTIONS"):
            self._open_faults[f"refused {self._totals.requests}"] = error

    async def complete(
        self, body: JsonObject, on_stream: Callable[[LiveStream], None] | None = None
    ) -> RawReply:
        """Pass a chat completion on and return what comes back, as a whole.

        Args:
            body: As the client wrote it; `model` and what the user has set are replaced.
            on_stream: Told of the stream that was asked for as soon as there is one, to take it as it comes.

        Raises:
            asyncio.CancelledError: The caller is cancelled, or the session ends. The call goes on for a moment.
        """
        if self.ended:
            return self._failure(ItemEndedError())
        self._totals.requests += 1
        try:
            call, key = self._call(body)
        except BadRequestError as error:
            self._open_faults[f"refused {self._totals.requests}"] = error
            return self._failure(error)
        self._waiting += 1
        self._none_waits.clear()
        try:
            with self._clock.asking():
                raw = await self._asked(call, key, on_stream)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self._none_waits.set()
        if raw.reply is not None and raw.reply.text.strip():
            self.last_text = raw.reply.text
        if raw.error is None:
            self._open_faults.pop(key, None)
        elif not isinstance(raw.error, ItemEndedError):
            self._open_faults[key] = raw.error
        return raw

    def rewind(self) -> None:
        """Begin anew for code that starts over: each reply is given again, in its order."""
        self._started_over += 1
        for exchange in (one for alike in self._exchanges.values() for one in alike):
            exchange.taken = False
            exchange.keep()  # its code will ask for it again, perhaps not soon
        # Errors that it received stay until the same is answered; requests that it left by dying do not count.
        self._open_faults = {
            key: fault for key, fault in self._open_faults.items() if not isinstance(fault, ClientGaveUpError)
        }

    async def settle(self) -> HelmbenchError | None:
        """Wait a moment for requests that are open although the item has come to its end.

        A client that has hung up is known as gone later than what its code has said last.

        Returns:
            What is wrong with one that is open still, for an item that has failed without its reply; else None.
        """
        if self._waiting:
            with suppress(TimeoutError):
                async with asyncio.timeout(_SETTLE_S):
                    await self._none_waits.wait()
        return ClientGaveUpError(self.line.entry.id) if self._waiting else None

    async def drain(self) -> None:
        """Wait for the replies of all requests that are on the wire, whether a client is there or not."""
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))

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
        for exchange in (one for alike in self._exchanges.values() for one in alike):
            exchange.keep()
        self._exchanges.clear()
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

    def _call(self, body: JsonObject) -> tuple[Call, str]:
        """Return the call and the hash that identical requests have in common."""
        line = self.line
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
            check_request(body, line.entry.sampling.extra_body or (), trusted=line.trusted)
            return call, prepared(call).hash
        except RecursionError:
            raise BadRequestError("the request body is nested too deeply") from None

    async def _asked(self, call: Call, key: str, on_stream: Callable[[LiveStream], None] | None) -> RawReply:
        times = self._started_over
        exchange = next((one for one in self._exchanges[key] if not one.taken), None)
        if exchange is None:
            exchange = self._start(call, key)
        else:
            exchange.give()
            self._totals.recalled += exchange.task.done()
        if on_stream is not None and exchange.live is not None and not exchange.task.done():
            on_stream(exchange.live)
        try:
            return await asyncio.shield(exchange.task)
        except asyncio.CancelledError:
            if not exchange.task.cancelled():
                # Code that has started over since has not given it up.
                if times == self._started_over and not self.ended:
                    self._abandon(exchange, key)
            elif self.ended and not ((task := asyncio.current_task()) and task.cancelling()):
                return self._failure(ItemEndedError())
            raise

    def _start(self, call: Call, key: str) -> _Exchange:
        self._sequence += 1
        taken = {one.number for one in self._exchanges[key]}
        number = next(number for number in range(1, len(taken) + 2) if number not in taken)
        if call.forwarded is None:
            raise RuntimeError("the call passes nothing on")
        call.forwarded.number = number
        task = asyncio.get_running_loop().create_task(self._exchange(call, call.forwarded))
        exchange = _Exchange(number, task, call.forwarded.live)
        self._exchanges[key].append(exchange)
        self._tasks.add(task)

        def finished(_task: asyncio.Task[RawReply]) -> None:
            self._tasks.discard(task)
            bug = None if task.cancelled() else task.exception()
            if bug is not None:
                self.fail(bug)
            if (task.cancelled() or bug is not None or task.result().reply is None) and not self.ended:
                self._exchanges[key].remove(exchange)

        task.add_done_callback(finished)
        return exchange

    async def _exchange(self, call: Call, forwarded: ForwardedRequest) -> RawReply:
        try:
            reply = await self._gateway.ask(call, self._clock, self._watch)
        except (CallFailedError, RefusedError) as error:
            if isinstance(error, CallFailedError) and error.fault.usage.prompt_tokens is not None:
                self._add_usage(error.fault.usage)
            return self._failure(error)
        self._add_usage(reply.usage)
        totals = self._totals
        totals.answered += 1
        totals.recalled += forwarded.recalled
        totals.latency_ms = (totals.latency_ms or 0.0) + (reply.latency_ms or 0.0)
        totals.reply_key = reply.key
        return RawReply(200, forwarded.answer or b"", reply, stream=forwarded.stream)

    def _add_usage(self, usage: Usage) -> None:
        self._usage = usage if self._usage is None else self._usage + usage

    def _abandon(self, exchange: _Exchange, key: str) -> None:
        """Let a call go on for a moment whose client has hung up; a reply that comes is kept."""
        if exchange.live is not None and exchange.live.begun:
            # It had an answer, and has hung up in the middle of it: that is its own affair.
            self._totals.answered += 1
        else:
            self._open_faults[key] = ClientGaveUpError(self.line.entry.id)
        exchange.taken = False
        exchange.timer = asyncio.get_running_loop().call_later(self._grace_s, exchange.task.cancel)

    def _failure(self, error: HelmbenchError) -> RawReply:
        status, body = failure_of(error, self.line.endpoint)
        return RawReply(status, body, error=error)


class NotAdmittedError(BadRequestError):
    """A request whose path and token do not belong together, or to no conversation.

    Args:
        conversation: What the path alone leads to; None where it leads nowhere.
    """

    def __init__(self, conversation: Conversation | None = None) -> None:
        self.conversation = conversation
        super().__init__("this address takes only the bearer token that was given out with it")


class _HeldPlace(CallWatch):
    """A watch for an item whose own code runs on while one of its calls sleeps: it holds its place."""

    def __init__(self, watch: CallWatch) -> None:
        self._watch = watch

    def check(self) -> None:
        """Raise `asyncio.CancelledError` when the session sends nothing more."""
        self._watch.check()

    def on_the_wire(self) -> AbstractContextManager[None]:
        """Entered while a request is on the wire."""
        return self._watch.on_the_wire()
