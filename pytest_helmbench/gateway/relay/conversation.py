"""The model calls of one item whose requests are not ours: an agent's, or those of a pack's own code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from types import TracebackType
from typing import Self

from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.attempt import prepared
from pytest_helmbench.gateway.call import Asking, Call, CallWatch, CaseClock, Origin
from pytest_helmbench.gateway.faults import CallFailedError
from pytest_helmbench.gateway.http_answers import LiveStream
from pytest_helmbench.gateway.permits import RefusedError
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.gateway.relay.exchanges import Exchange, Exchanges, RawReply, Sums, Tally
from pytest_helmbench.gateway.relay.refusals import (
    BadRequestError,
    ItemEndedError,
    check_request,
    failure_of,
)
from pytest_helmbench.gateway.replies import CHAT
from pytest_helmbench.gateway.requests import ForwardedRequest

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
        trusted: The code that asks is the user's own.
    """

    origin: Origin
    entry: ModelEntry
    endpoint: Endpoint
    purpose: str
    timeout_s: float | None = None
    trusted: bool = False


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
        gateway: Asking,
        line: ItemLine,
        clock: CaseClock,
        watch: CallWatch,
        *,
        grace_s: float = _GRACE_S,
        journal: bool = False,
    ) -> None:
        self.line = line
        self._gateway = gateway
        self._clock = clock
        self._watch = _HeldPlace(watch)
        self._grace_s = grace_s
        self._tally = Tally()
        self._exchanges = Exchanges(journal=journal)
        self._sequence = 0
        self._tasks: set[asyncio.Task[RawReply]] = set()
        self._waiting = 0
        self._nobody_waits = asyncio.Event()
        self._on_end: list[Callable[[], None]] = []
        self._bug: BaseException | None = None
        self.ended = False
        """Nothing more is passed on."""
        self.last_text = ""
        """Of the last reply that had a text."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.end()

    @property
    def model_id(self) -> str:
        """The model under test; whatever is asked for, this one answers."""
        return self.line.entry.id

    @property
    def sums(self) -> Sums:
        """What the calls came to so far."""
        return self._tally.sums

    def refuse(self, method: str, error: HelmbenchError) -> None:
        """Take note of a request that cannot be passed on: it is no failure of the model.

        A pack or an agent may look around (GET) or come without its token; whatever it asks else, it will not do
        without.
        """
        if not self.line.trusted and isinstance(error, NotAdmittedError):
            return
        number = self._tally.count_request()
        if self.line.trusted or method not in ("GET", "HEAD", "OPTIONS"):
            self._tally.open_fault(f"refused {number}", error)

    async def complete(
        self, body: JsonObject, path: str = CHAT, on_stream: Callable[[LiveStream], None] | None = None
    ) -> RawReply:
        """Pass a request on and return what comes back, as a whole.

        Args:
            body: As the client wrote it; `model` and what the user has set are replaced.
            path: `chat/completions`, `responses` or `embeddings`.
            on_stream: Told of the stream that was asked for as soon as there is one, to take it as it comes.

        Raises:
            asyncio.CancelledError: The caller is cancelled, or the session ends. The call goes on for a moment.
        """
        if self.ended:
            return self._failure(ItemEndedError())
        number = self._tally.count_request(streamed=body.get("stream") is True)
        try:
            call, key = self._call(body, path)
        except BadRequestError as error:
            self._tally.open_fault(f"refused {number}", error)
            return self._failure(error)
        raw = self._exchanges.kept_reply(key)
        if raw is not None:
            self._tally.add_repeated_reply()
        else:
            self._waiting += 1
            self._nobody_waits.clear()
            try:
                with self._clock.asking():
                    raw = await self._asked(call, key, on_stream)
            finally:
                self._waiting -= 1
                if not self._waiting:
                    self._nobody_waits.set()
        if raw.reply is not None and raw.reply.text.strip():
            self.last_text = raw.reply.text
        if raw.error is None:
            self._tally.close_fault(key)
        elif not isinstance(raw.error, ItemEndedError):
            self._tally.open_fault(key, raw.error)
        return raw

    def rewind(self) -> None:
        """Begin anew for code that starts over: each reply is given again, in its order.

        Raises:
            RuntimeError: It keeps no journal.
        """
        self._exchanges.start_over()
        # What it was told stands until the same is answered; what it gave up by dying does not count.
        self._tally.close_faults(ClientGaveUpError)

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

    def _call(self, body: JsonObject, path: str) -> tuple[Call, str]:
        """Return the call and the hash that identical requests have in common."""
        line = self.line
        check_request(body, path, line.entry.sampling.extra_body or (), trusted=line.trusted)
        stated = body.get("response_format")
        call = Call(
            line.origin,
            line.entry,
            line.endpoint,
            (),
            stated if isinstance(stated, Mapping) else None,
            purpose=line.purpose,
            sequence=self._sequence + 1,
            forwarded=ForwardedRequest(body, path),
            timeout_s=line.timeout_s,
        )
        try:
            return call, prepared(call).hash
        except RecursionError:
            raise BadRequestError("the request body is nested too deeply") from None

    async def _asked(self, call: Call, key: str, on_stream: Callable[[LiveStream], None] | None) -> RawReply:
        era = self._exchanges.era
        exchange = self._exchanges.take_over(key) or self._start(call, key)
        if on_stream is not None and exchange.live is not None:
            on_stream(exchange.live)
        try:
            return await asyncio.shield(exchange.task)
        except asyncio.CancelledError:
            if not exchange.task.cancelled():
                self._abandon(exchange, in_vain=era == self._exchanges.era)
            elif self.ended and not _is_cancelled():
                return self._failure(ItemEndedError())
            raise

    def _start(self, call: Call, key: str) -> Exchange:
        self._sequence += 1
        number = self._exchanges.take_number(key)
        task = asyncio.get_running_loop().create_task(self._exchange(call, key, number))
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return Exchange(key, number, task, None if call.forwarded is None else call.forwarded.live)

    async def _exchange(self, call: Call, key: str, number: int) -> RawReply:
        forwarded, era = call.forwarded, self._exchanges.era
        if forwarded is None:
            raise RuntimeError("the call passes nothing on")
        forwarded.repeat(number)
        try:
            reply = await self._gateway.ask(call, self._clock, self._watch)
        except BaseException as error:
            self._exchanges.give_back(key, number, era)
            if not isinstance(error, CallFailedError | RefusedError):
                raise
            if isinstance(error, CallFailedError) and error.fault.usage.prompt_tokens is not None:
                self._tally.add_usage(error.fault.usage)
            return self._failure(error)
        self._tally.add_reply(reply, recalled=forwarded.recalled)
        raw = RawReply(200, forwarded.answer or b"", reply, stream=forwarded.stream, times=forwarded.times)
        self._exchanges.keep_reply(key, number, raw)
        return raw

    def _finished(self, task: asyncio.Task[RawReply]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (bug := task.exception()) is not None:
            self.fail(bug)

    def _abandon(self, exchange: Exchange, *, in_vain: bool) -> None:
        """Let a call go on: for a moment, or to its end where its code starts over.

        Args:
            exchange: Its client has hung up.
            in_vain: The code that asked is still there, and has no reply.
        """
        if self.ended:
            return
        if exchange.live is not None and exchange.live.begun:
            # It had an answer, and has hung up in the middle of it: that is its own affair.
            self._tally.add_cut_stream()
        elif in_vain:
            self._tally.open_fault(exchange.key, ClientGaveUpError(self.line.entry.id))
        self._exchanges.abandon(exchange, self._grace_s if in_vain else None)

    def _failure(self, error: HelmbenchError) -> RawReply:
        status, body = failure_of(error, self.line.endpoint)
        return RawReply(status, body, error=error)


class NotAdmittedError(BadRequestError):
    """A request whose path and token do not belong together, or to nobody.

    Args:
        conversation: What the path alone leads to; None where it leads nowhere.
    """

    def __init__(self, conversation: Conversation | None = None) -> None:
        self.conversation = conversation
        super().__init__("this address takes only the bearer token that was given out with it")


class _HeldPlace:
    """A watch for an item whose own code runs on while one of its calls sleeps."""

    def __init__(self, watch: CallWatch) -> None:
        self._watch = watch
        self.check = watch.check
        self.on_the_wire = watch.on_the_wire

    def asleep(self) -> AbstractContextManager[None]:
        """See `CallWatch.asleep`."""
        return nullcontext()


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
