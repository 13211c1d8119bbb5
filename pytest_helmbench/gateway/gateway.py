"""The gateway: one request to one reply, whatever it takes. Retries live here and nowhere else."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Protocol

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.outcome import AttemptRecord, Reply, Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.gateway.backend import Backend
from pytest_helmbench.gateway.baselines.baseline import baseline_reply, guarded_reply
from pytest_helmbench.gateway.client import ChatClient, RawAnswer, TransportFault
from pytest_helmbench.gateway.faults import Fault, FaultKind, rate_headers
from pytest_helmbench.gateway.forwarded_request import ForwardedRequest
from pytest_helmbench.gateway.limiter import AttemptUsage, Ending, ModelStoppedError, Permit, PermitRequest
from pytest_helmbench.gateway.prices import price_of
from pytest_helmbench.gateway.providers.endpoints import Endpoint, other_route
from pytest_helmbench.gateway.reply_cache import Recorded, RecordedUse, Wanted
from pytest_helmbench.gateway.wire import ParsedReply, encode, parse_reply, request_body, request_hash

__all__ = [
    "NOT_ON_RECORD",
    "Call",
    "CallFailedError",
    "CaseClock",
    "Gateway",
    "Origin",
    "Patience",
    "Watch",
    "utc_now",
]

NOT_ON_RECORD = "not_on_record"
"""Reason of a replay that finds no reply."""

_log = logging.getLogger(__name__)

_FIRST_BACKOFF_S = 0.5
_LONGEST_BACKOFF_S = 30.0
_MOST_DOUBLINGS = 10
_CHARACTERS_PER_TOKEN = 4


class CallFailedError(HelmbenchError):
    """A call that brought no reply, after all retries.

    Args:
        fault: The last fault.
        attempts: How many attempts were sent.
        out_of_time: The case's time limit ended it, not the number of attempts.
    """

    def __init__(self, fault: Fault, attempts: int, *, out_of_time: bool = False) -> None:
        self.fault = fault
        after = f" after {attempts} attempts" if attempts > 1 else ""
        limit = ", at the time limit of the case" if out_of_time else ""
        hint = f"\n  hint: {fault.hint}" if fault.hint else ""
        super().__init__(f"{fault.message}{after}{limit}{hint}")


class Watch(Protocol):
    """Whoever keeps count of what a call is doing."""

    def check(self) -> None:
        """Raise `asyncio.CancelledError` when nothing more may be sent."""

    def asleep(self) -> AbstractContextManager[None]:
        """Entered while the call waits for a retry and holds nothing."""

    def on_the_wire(self) -> AbstractContextManager[None]:
        """Entered while a request is out."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose call it is."""

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
        accepts: Whether a reply on record is of use; another one is asked for, but in a pure replay.
    """

    origin: Origin
    entry: ModelEntry
    endpoint: Endpoint
    messages: Sequence[Message]
    response_format: Mapping[str, Any] | None
    purpose: str = "case"
    criterion: str = ""
    sequence: int = 1
    forwarded: ForwardedRequest | None = None
    timeout_s: float | None = None
    accepts: Callable[[Reply], bool] = lambda _reply: True


@dataclass(frozen=True, slots=True)
class Patience:
    """How long and how often.

    Args:
        timeout_s: Per attempt.
        case_timeout_s: Per case, our own waiting for limits apart; None for 3 × timeout after the first
            attempt.
        max_retries: Attempts after the first; a 429 uses none up.
    """

    timeout_s: float = 120.0
    case_timeout_s: float | None = None
    max_retries: int = 5

    @property
    def longest_pause_s(self) -> float:
        """How long a provider may make everybody wait: as long as one case may take."""
        return self.case_timeout_s or 3 * self.timeout_s


class CaseClock:
    """The time a case has used: on the wire and in backoff, not in our own queues.

    Args:
        patience: Its limit.
        clock: Monotonic seconds.
    """

    def __init__(self, patience: Patience, clock: Callable[[], float] = time.monotonic) -> None:
        self._limit_s = patience.longest_pause_s
        self._clock = clock
        self._counts = patience.case_timeout_s is not None
        self._spent_s = 0.0
        self._running = 0
        self._since = 0.0

    def left_s(self) -> float:
        """Return what is left; may be below 0."""
        running_s = self._clock() - self._since if self._running and self._counts else 0.0
        return self._limit_s - self._spent_s - running_s

    def asking(self) -> AbstractContextManager[None]:
        """Entered while a request of somebody else's code is open, on the wire or waiting."""
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


def utc_now() -> str:
    """Return the time as ISO 8601 UTC."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Gateway:
    """Sends calls through the gate and puts every attempt on record.

    Args:
        backend: Limiter and record of the session.
        client: HTTP client; used on the loop only.
        patience: Limits of time and attempts.
        name: Distinguishes the reply keys of this process from those of others.
        recorded: Whether replies on record may stand for calls.
        sleep: For waiting between attempts.
        jitter: A number in [0, 1).
    """

    def __init__(
        self,
        backend: Backend,
        client: ChatClient,
        patience: Patience,
        name: str = "",
        recorded: RecordedUse = RecordedUse.NEVER,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._backend = backend
        self._client = client
        self.patience = patience
        self._name = name
        self._sleep = sleep
        self._jitter = jitter
        self._recorded = recorded
        self._replies = 0
        self._stopped: dict[str, str] = {}
        self._at_work: defaultdict[str, set[asyncio.Task[Any]]] = defaultdict(set)

    def use_recorded(self) -> None:
        """Let replies on record stand for calls from now on."""
        if self._recorded is RecordedUse.NEVER:
            self._recorded = RecordedUse.FIRST

    async def ask(self, call: Call, clock: CaseClock, watch: Watch) -> Reply:
        """Get a reply.

        Args:
            call: The question.
            clock: Of the case.
            watch: Told while the call sleeps and while it is on the wire.

        Raises:
            CallFailedError: No reply after all retries, or the provider refuses this call.
            RefusedError: The gate lets nothing more of it go (and its kinds).
        """
        request = _request(call)
        if self._recorded is RecordedUse.NEVER:
            return await self._sent(request, clock, watch)
        reply = await self._recalled(request)
        if reply is not None:
            return reply
        if self._recorded is RecordedUse.ONLY:
            return await self._recalled_elsewhere(call)
        try:
            return await self._sent(request, clock, watch)
        except BaseException:
            self._backend.give_up(_wanted(request))
            raise

    async def _recalled(self, request: _Request) -> Reply | None:
        """Return the reply on record; None means that this request is to be sent, or given up."""
        try:
            recorded = await self._backend.look_up(_wanted(request))
        except HelmbenchError as error:
            raise CallFailedError(
                Fault(FaultKind.REJECTED, None, "record_unreadable", str(error)), 0
            ) from error
        return self._replayed(request, recorded) if recorded is not None else None

    async def _recalled_elsewhere(self, call: Call) -> Reply:
        """Return a recorded reply of the other server that the model may have been asked at.

        Which of the two it was depends on the keys of that time; a replay needs none.
        """
        endpoint = other_route(call.endpoint)
        reply = await self._recalled(_request(replace(call, endpoint=endpoint))) if endpoint else None
        if reply is None:
            raise CallFailedError(_MISSING, 0)
        return reply

    async def _sent(self, request: _Request, clock: CaseClock, watch: Watch) -> Reply:
        """Get a reply by calling, as often as it takes."""
        call = request.call
        forwarded = call.forwarded
        ask = PermitRequest(
            model=call.entry.id,
            prompt_tokens=len(request.encoded) // _CHARACTERS_PER_TOKEN,
            max_tokens=call.entry.sampling.max_tokens
            if forwarded is None
            else forwarded.most_tokens(request.body),
            urgent=call.purpose != "case" or call.sequence > 1,
            label=call.origin.code,
        )
        retries = waits = 0
        while True:
            attempts = retries + waits
            if clock.left_s() <= 0:
                raise CallFailedError(self._no_time_left(), attempts)
            result = await self._attempt(request, ask, attempts + 1, clock, watch)
            if isinstance(result, Reply):
                return result
            attempts += 1
            if result.kind is FaultKind.DEAD_MODEL:
                raise ModelStoppedError(self._stopped.get(call.entry.id) or result.text())
            if not result.kind.retries:
                raise CallFailedError(result, attempts)
            if result.kind is FaultKind.RATE_LIMITED:
                waits += 1
            else:
                retries += 1
            if retries > self.patience.max_retries:
                raise CallFailedError(result, attempts)
            delay_s = self._delay_s(result, waits if result.kind is FaultKind.RATE_LIMITED else retries)
            if delay_s >= clock.left_s():
                raise CallFailedError(result, attempts, out_of_time=True)
            _log.info(
                "%s: %s call: attempt %d in %.1f s", call.origin.code, call.purpose, attempts + 1, delay_s
            )
            watch.check()
            with self._stoppable(call.entry.id), watch.asleep(), clock.running():
                await self._sleep(delay_s)
            ask = replace(ask, urgent=True)

    @asynccontextmanager
    async def place(self, model_id: str) -> AsyncIterator[None]:
        """Hold a place among items, see `ModelLimits.items`.

        Raises:
            RefusedError: The session is ending.
        """
        permit = await self._backend.acquire(PermitRequest(model_id, 0, None, urgent=False))
        try:
            yield
        finally:
            self._backend.release(permit)

    @staticmethod
    def fingerprint(call: Call) -> str:
        """Return the hash of the request that a call would send."""
        return _request(call).hash

    def stop_model(self, model: str, sentence: str) -> None:
        """End every call of a model that does not work, on the wire or waiting for its next attempt."""
        self._stopped.setdefault(model, sentence)
        for task in tuple(self._at_work[model]):
            task.cancel()

    async def close(self) -> None:
        """Close the HTTP client."""
        await self._client.close()

    def _replayed(self, request: _Request, recorded: Recorded) -> Reply | None:
        """Return a recorded reply as if it had just come; None when it cannot be read or is of no use."""
        call = request.call
        parsed = parse_reply(
            200, recorded.body, endpoint=call.endpoint, sent_schema=call.response_format is not None
        )
        if isinstance(parsed, Fault):
            return None
        # What another run has paid costs this one nothing; its own calls stay its own.
        free = replace(parsed.usage, cost_usd=0.0)
        reply = self._reply(
            parsed,
            _priced(call, parsed.usage, parsed.provider_model) if recorded.own else free,
            latency_ms=0.0,
        )
        if not (self._recorded is RecordedUse.ONLY or call.accepts(reply)):
            return None
        if call.forwarded is not None:
            call.forwarded.arrived(recorded.body, recalled=True)
        trace = _Trace(request, 0, utc_now(), time.perf_counter())
        answer = RawAnswer(200, {}, recorded.body, 0.0)
        record = trace.record(answer=answer, reply=replace(reply, usage=free))
        self._backend.record_replay(replace(record, from_cache=True))
        _log.info("%s: %s call: answered from the record", call.origin.code, call.purpose)
        return reply

    def _reply(self, parsed: ParsedReply, usage: Usage, *, latency_ms: float) -> Reply:
        self._replies += 1
        return Reply(
            text=parsed.text,
            refusal=parsed.refusal,
            finish_reason=parsed.finish_reason,
            usage=usage,
            latency_ms=latency_ms,
            provider_model=parsed.provider_model,
            key=f"{self._name}{self._replies}",
        )

    def _delay_s(self, fault: Fault, count: int) -> float:
        doubled_s = _FIRST_BACKOFF_S * 2.0 ** min(count - 1, _MOST_DOUBLINGS)
        backoff_s = min(_LONGEST_BACKOFF_S, doubled_s) * (0.5 + self._jitter() / 2)
        if fault.retry_after_s is None:
            return backoff_s
        # A little more than asked for, and not all at the same moment.
        return fault.retry_after_s + self._jitter() * min(1.0, 0.1 + fault.retry_after_s / 10)

    def _no_time_left(self) -> Fault:
        return Fault(
            FaultKind.TIMEOUT,
            None,
            "timeout",
            f"the case has used up its {self.patience.longest_pause_s:g} s",
            hint="raise --helmbench-case-timeout",
        )

    @contextmanager
    def _stoppable(self, model: str) -> Iterator[None]:
        """Inside, a model that stops ends the wait: the task's cancellation becomes `ModelStoppedError`."""
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("calls are made inside of tasks")
        at_work = self._at_work[model]
        at_work.add(task)
        try:
            yield
        except asyncio.CancelledError:
            sentence = self._stopped.get(model)
            # Whoever else cancelled the task must be obeyed.
            if sentence is None or task.uncancel() > 0:
                raise
            raise ModelStoppedError(sentence) from None
        finally:
            at_work.discard(task)

    async def _attempt(
        self, request: _Request, ask: PermitRequest, attempt: int, clock: CaseClock, watch: Watch
    ) -> Reply | Fault:
        """Wait for leave and send once; the permit comes back whatever happens."""
        permit = await self._backend.acquire(ask)
        try:
            # Leave may have been given just before the end.
            watch.check()
            if ask.model in self._stopped:
                raise ModelStoppedError(self._stopped[ask.model])
            return await self._exchange(request, permit, attempt, clock, watch)
        except BaseException:
            self._backend.release(permit)
            raise

    async def _exchange(
        self, request: _Request, permit: Permit, attempt: int, clock: CaseClock, watch: Watch
    ) -> Reply | Fault:
        """Send, settle the permit and put the attempt on record."""
        trace = _Trace(request, attempt, utc_now(), time.perf_counter())
        timeout_s = min(request.call.timeout_s or self.patience.timeout_s, max(clock.left_s(), 0.001))
        try:
            with self._stoppable(permit.model), watch.on_the_wire(), clock.running():
                answer = await self._send(request, timeout_s)
        except TransportFault as error:
            return self._settle_fault(trace, permit, error.fault, None)
        except (asyncio.CancelledError, ModelStoppedError):
            self._backend.settle(permit, AttemptUsage(Ending.OTHER), trace.record(error="cancelled"))
            raise
        endpoint = request.call.endpoint
        parsed = parse_reply(
            answer.status,
            answer.body,
            headers=answer.headers,
            endpoint=endpoint,
            sent_schema=request.call.response_format is not None,
        )
        if isinstance(parsed, Fault):
            return self._settle_fault(trace, permit, parsed, answer)
        return self._settle_reply(trace, permit, parsed, answer)

    async def _send(self, request: _Request, timeout_s: float) -> RawAnswer:
        endpoint = request.call.endpoint
        if endpoint.provider != "baseline":
            return await self._client.post(endpoint, request.encoded, timeout_s)
        started = time.perf_counter()
        try:
            answer = baseline_reply if request.call.forwarded is None else guarded_reply
            document = answer(endpoint.model_id, request.body)
        except HelmbenchError as error:
            raise TransportFault(Fault(FaultKind.REJECTED, None, "no_answer", str(error))) from error
        body = json.dumps(document).encode()
        return RawAnswer(200, {}, body, (time.perf_counter() - started) * 1000)

    def _settle_reply(self, trace: _Trace, permit: Permit, parsed: ParsedReply, answer: RawAnswer) -> Reply:
        call = trace.request.call
        usage = _priced(call, parsed.usage, parsed.provider_model)
        reply = self._reply(parsed, usage, latency_ms=answer.latency_ms)
        used = AttemptUsage(Ending.REPLY, usage, self._announced_pause_s(answer))
        self._backend.settle(permit, used, trace.record(answer=answer, reply=reply))
        if call.forwarded is not None:
            call.forwarded.arrived(answer.body)
        _log.info(
            "%s: %s call: %s answered after %.0f ms, %s + %s tokens, %s USD",
            call.origin.code,
            call.purpose,
            scrub(call.entry.id),
            answer.latency_ms,
            usage.prompt_tokens,
            usage.completion_tokens,
            usage.cost_usd,
        )
        return reply

    def _settle_fault(self, trace: _Trace, permit: Permit, fault: Fault, answer: RawAnswer | None) -> Fault:
        pause_s = 0.0
        if fault.kind is FaultKind.RATE_LIMITED:
            pause_s = fault.retry_after_s or 0.0
        elif answer is not None:
            pause_s = self._announced_pause_s(answer)
        if fault.usage.prompt_tokens is not None:
            # A reply that moderation cut is paid all the same.
            fault = replace(fault, usage=_priced(trace.request.call, fault.usage, None))
        used = AttemptUsage(
            _ENDINGS.get(fault.kind, Ending.OTHER),
            fault.usage,
            min(pause_s, self.patience.longest_pause_s),
            fault.text() if fault.kind is FaultKind.DEAD_MODEL else "",
        )
        record = trace.record(answer=answer, error=f"{fault.reason}: {fault.message}", fault=fault)
        self._backend.settle(permit, used, record)
        call = trace.request.call
        # The class only: the provider's own words may quote the prompt.
        _log.info("%s: %s call: %s, status %s", call.origin.code, call.purpose, fault.reason, fault.status)
        return fault

    def _announced_pause_s(self, answer: RawAnswer) -> float:
        """Return how long a provider wants to be left alone whose window is used up."""
        said = rate_headers(answer.headers)
        waits = [
            reset_s
            for remaining, reset_s in (
                (said.remaining_requests, said.reset_requests_s),
                (said.remaining_tokens, said.reset_tokens_s),
            )
            if remaining is not None and remaining < 1 and reset_s is not None
        ]
        return min(max(waits, default=0.0), self.patience.longest_pause_s)


_ENDINGS: Mapping[FaultKind, Ending] = {
    FaultKind.RATE_LIMITED: Ending.RATE_LIMITED,
    FaultKind.TIMEOUT: Ending.TIMEOUT,
    FaultKind.DEAD_MODEL: Ending.DEAD,
}


def _priced(call: Call, usage: Usage, provider_model: str | None) -> Usage:
    """Return the usage with its cost: the provider's own figure, else a price list's, else unknown."""
    if usage.cost_usd is not None:
        return usage
    return replace(usage, cost_usd=price_of(usage, call.entry.price, call.endpoint, provider_model))


_MISSING = Fault(
    FaultKind.REJECTED,
    None,
    NOT_ON_RECORD,
    "no reply to this request is on record (--helmbench-cache=only)",
    hint="run once with --helmbench-cache=reuse; another prompt, model or sampling option is another request",
)


def _wanted(request: _Request) -> Wanted:
    origin = request.call.origin
    return Wanted(origin.run_id, origin.code, origin.repetition, request.hash)


def _request(call: Call) -> _Request:
    sampling, forwarded = call.entry.sampling, call.forwarded
    if forwarded is not None:
        body, encoded = forwarded.sent(call.endpoint, sampling, call.origin.repetition)
        return _Request(call, body, encoded, forwarded.number)
    body = request_body(
        call.endpoint,
        sampling,
        call.messages,
        call.response_format,
        repetition=call.origin.repetition,
    )
    return _Request(call, body, encode(body))


class _Request:
    """A call with its body, encoded and hashed once for all attempts."""

    __slots__ = ("body", "call", "encoded", "hash")

    def __init__(self, call: Call, body: Mapping[str, Any], encoded: bytes, number: int = 1) -> None:
        self.call = call
        self.body = body
        self.encoded = encoded
        self.hash = request_hash(encoded, number)


@dataclass(frozen=True, slots=True)
class _Trace:
    """An attempt that is out, until it becomes a row."""

    request: _Request
    attempt: int
    started_at: str
    started: float

    def record(
        self,
        *,
        answer: RawAnswer | None = None,
        reply: Reply | None = None,
        fault: Fault | None = None,
        error: str | None = None,
    ) -> AttemptRecord:
        """Return the row of this attempt."""
        call = self.request.call
        finish_reason = reply.finish_reason if reply else fault.finish_reason if fault else None
        return AttemptRecord(
            run_id=call.origin.run_id,
            code=call.origin.code,
            repetition=call.origin.repetition,
            criterion=call.criterion,
            purpose=call.purpose,
            sequence=call.sequence,
            attempt=self.attempt,
            status_code=answer.status if answer else None,
            finish_reason=finish_reason,
            error=error,
            latency_ms=answer.latency_ms if answer else (time.perf_counter() - self.started) * 1000,
            usage=reply.usage if reply else fault.usage if fault else Usage(),
            provider_model=reply.provider_model if reply else None,
            request_hash=self.request.hash,
            request_body=self.request.encoded,
            response_body=answer.body if answer else None,
            text=scrub(reply.text) if reply else None,
            reply_key=reply.key if reply else None,
            from_cache=False,
            started_at=self.started_at,
            received_at=utc_now(),
        )
