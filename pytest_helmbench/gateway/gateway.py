"""The gateway: one request to one reply, through the limiter and the retries, with every attempt on record."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from pytest_helmbench.core.outcome import RecordedReply, Reply
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.gateway.attempt import (
    Attempt,
    PreparedCall,
    counted_usage,
    cut_by_budget,
    prepared,
    priced_usage,
    unbounded,
)
from pytest_helmbench.gateway.backend import Backend, RecordedUse
from pytest_helmbench.gateway.batches import BatchLine
from pytest_helmbench.gateway.call import Call, CallWatch, CaseClock
from pytest_helmbench.gateway.faults import Fault, FaultKind, is_unanswered
from pytest_helmbench.gateway.http_answers import RawAnswer, TransportError
from pytest_helmbench.gateway.local_answers import local_answer
from pytest_helmbench.gateway.permits import (
    AttemptResult,
    Ending,
    ModelFoundStoppedError,
    ModelStoppedError,
    ModelStops,
    Permit,
    PermitRequest,
    failed_case,
)
from pytest_helmbench.gateway.providers.endpoints import other_route
from pytest_helmbench.gateway.replies import failed_generation, parse_reply
from pytest_helmbench.gateway.requests import (
    accepted_bound_name,
    estimated_tokens,
    most_tokens,
    with_bound,
)
from pytest_helmbench.gateway.retries import (
    BOUND_RENAMED,
    BOUND_TOKENS,
    CallFailedError,
    Retries,
    RetryPolicy,
    cut_after_timeout,
    without_end,
)

if TYPE_CHECKING:
    from pytest_helmbench.gateway.client import ChatClient

NOT_ON_RECORD = "not_on_record"
"""Reason of a replay that finds no reply."""

_log = logging.getLogger(__name__)
_ENDINGS: Mapping[FaultKind, Ending] = {
    FaultKind.RATE_LIMITED: Ending.RATE_LIMITED,
    FaultKind.TIMEOUT: Ending.TIMEOUT,
    FaultKind.DEAD_MODEL: Ending.DEAD,
}
_MISSING = Fault(
    FaultKind.REJECTED,
    None,
    NOT_ON_RECORD,
    "no stored reply to this request (--helmbench-cache=only)",
    hint="run once with --helmbench-cache=reuse; another prompt, model or sampling option is another request, and an"
    " application is never replayed without a 'version' in models.yml",
)
_EXPIRED = Fault(
    FaultKind.REJECTED,
    None,
    "batch_expired",
    "two batches have ended without an answer to this call",
    hint="ask singly: --helmbench-resume without --helmbench-batch",
)
_GONE = Fault(
    FaultKind.TRANSIENT,
    None,
    "batch_gone",
    "the provider has deleted the batch that may have answered this call",
)


class Gateway:
    """Sends calls through the limiter and puts every attempt on record.

    Args:
        backend: Limiter and record of the session.
        client: HTTP client, used on the loop only; None for one from the first request on: embedded models, replays
            and dry runs need none, and its library takes a seventh of the CPU of a short session.
        retry_policy: Limits of time and attempts.
        name: Distinguishes the reply keys of this process from those of others.
        recorded: Whether replies on record may replace calls.
        sleep: For waiting between attempts.
        jitter: A number in [0, 1).
    """

    def __init__(
        self,
        backend: Backend,
        client: ChatClient | None,
        retry_policy: RetryPolicy,
        name: str = "",
        recorded: RecordedUse = RecordedUse.NEVER,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._backend = backend
        self._client = client
        self.retry_policy = retry_policy
        self._name = name
        self._sleep = sleep
        self._jitter = jitter
        self._recorded = recorded
        self._replies = 0
        self._answering: set[str] = set()
        self._stops = ModelStops(retry_policy.grace_s)
        self.batched: frozenset[str] = frozenset()
        """Ids of models whose first attempts go in batches, where the watch of a call lets them wait."""

    def use_recorded(self) -> None:
        """Let replies on record replace calls from now on."""
        if self._recorded is RecordedUse.NEVER:
            self._recorded = RecordedUse.FIRST

    async def ask(self, call: Call, clock: CaseClock, watch: CallWatch) -> Reply:
        """Get a reply.

        Args:
            call: The question.
            clock: Of the case.
            watch: Told while the call sleeps and while it is on the wire.

        Raises:
            CallFailedError: No reply after all retries, the provider refuses this call, or the bound that the budget
                has set cut the reply.
            RefusedError: The limiter lets nothing more of it go (and its kinds).
        """
        request = prepared(call)
        reply = await self._answered(request, clock, watch)
        if request.bounded and reply.is_cut:
            raise CallFailedError(cut_by_budget(call, reply), 1)
        return reply

    async def _answered(self, request: PreparedCall, clock: CaseClock, watch: CallWatch) -> Reply:
        """Get a reply from the record or by calling."""
        call = request.call
        if self._recorded is RecordedUse.NEVER:
            return await self._sent(request, clock, watch)
        reply = await self._recalled(request)
        if reply is None and request.bounded:
            reply = await self._recalled_unbounded(request)
        if reply is not None:
            return reply
        if self._recorded is RecordedUse.ONLY:
            return await self._recalled_elsewhere(call)
        try:
            return await self._sent(request, clock, watch)
        except BaseException:
            self._backend.give_up(request.query)
            raise

    async def _recalled(self, request: PreparedCall) -> Reply | None:
        """Return the reply on record; None means that this request is to be sent, or given up."""
        recorded = await self._looked_up(request)
        return self._replayed(request, recorded) if recorded is not None else None

    async def _looked_up(self, request: PreparedCall) -> RecordedReply | None:
        try:
            return await self._backend.look_up(request.query)
        except HelmbenchError as error:
            raise CallFailedError(
                Fault(FaultKind.REJECTED, None, "record_unreadable", str(error)), 0
            ) from error

    async def _recalled_unbounded(self, request: PreparedCall) -> Reply | None:
        """Return the reply on record to the same request without the budget's bound, which is as good."""
        other = unbounded(request)
        reply = await self._recalled(other)
        self._backend.give_up(other.query if reply is None else request.query)
        return reply

    async def _recalled_elsewhere(self, call: Call) -> Reply:
        """Return a recorded reply of the other server that the model may have been asked at.

        Which of the two it was depends on the keys of that time; a replay needs none.
        """
        endpoint = other_route(call.endpoint)
        reply = await self._recalled(prepared(replace(call, endpoint=endpoint))) if endpoint else None
        if reply is None:
            raise CallFailedError(_MISSING, 0)
        return reply

    async def _sent(self, request: PreparedCall, clock: CaseClock, watch: CallWatch) -> Reply:
        """Get a reply by calling, as often as it takes."""
        call = request.call
        ask = PermitRequest(
            model=call.entry.id,
            prompt_tokens=estimated_tokens(request.encoded),
            most_prompt_tokens=most_tokens(request.encoded),
            max_tokens=request.completion_bound,
            urgent=call.purpose != "case" or call.sequence > 1,
            label=call.origin.code,
            run_id=call.origin.run_id,
        )
        retries = Retries(self.retry_policy, self._jitter)
        waits = watch.may_wait and ask.model in self.batched and call.forwarded is None
        result = await self._batched(request, ask, retries, watch) if waits else None
        while True:
            if result is None:
                retries.check_time(clock.left_s())
                result = await self._attempt(request, ask, retries, clock, watch)
            if isinstance(result, Reply):
                return result
            if call.forwarded is not None and call.forwarded.begun:
                raise CallFailedError(result, retries.attempts + 1)  # a part of it cannot be taken back
            if result.kind is FaultKind.DEAD_MODEL:
                raise ModelFoundStoppedError(self._stops.sentence(call.entry.id) or result.text())
            try:
                pause_s = retries.next_pause_s(result, clock.left_s())
            except CallFailedError:
                self._backend.failed(ask.model, failed_case(f"{ask.run_id} {ask.label}", result))
                raise
            _log.info(
                "%s: %s call: attempt %d in %.1f s",
                call.origin.code,
                call.purpose,
                retries.attempts + 1,
                pause_s,
            )
            watch.check()
            if pause_s:
                with self._stops.stoppable(call.entry.id, asleep=True), watch.asleep(), clock.running():
                    await self._sleep(pause_s)
            ask, result = replace(ask, urgent=True), None

    async def _batched(
        self, request: PreparedCall, ask: PermitRequest, retries: Retries, watch: CallWatch
    ) -> Reply | Fault | None:
        """Wait for the batch that answers a call; None for a call that is to be sent singly."""
        call = request.call
        watch.check()
        self._stops.check(ask.model)
        body = call.endpoint.server.sent(request.encoded, request.asked_body)
        line = BatchLine(_origin(request), body, ask)
        with self._stops.stoppable(ask.model, asleep=True), watch.asleep():
            came = await self._backend.batched(line)
        if came.expired:
            raise CallFailedError(_EXPIRED, 1)
        if came.permit is None:
            return None
        trace = Attempt(request, 1, came.custom_id)
        if came.body is None:
            return self._settle_fault(trace, came.permit, _GONE, None)
        answer = failed_generation(RawAnswer(came.status, {}, came.body, None))
        parsed = _parsed(request, answer, request.completion_bound)
        if isinstance(parsed, Fault):
            return self._settle_fault(trace, came.permit, self._passing(parsed, came.permit, retries), answer)
        return await self._kept(trace, came.permit, parsed, answer, watch)

    async def on_record(self, call: Call) -> tuple[str, Reply | None]:
        """Return the hash of the request that a call is, and the reply on record to it; None for none.

        Nothing is sent, and nothing put on record.

        Raises:
            CallFailedError: The record cannot be read.
        """
        request = prepared(call)
        for form in (request, unbounded(request)) if request.bounded else (request,):
            recorded = await self._looked_up(form)
            if recorded is not None:
                return form.hash, _read(form, recorded)
            self._backend.give_up(form.query)
        return request.hash, None

    @asynccontextmanager
    async def place(self, model_id: str, units: int = 1) -> AsyncIterator[None]:
        """Hold a place among items, or several; see `ModelLimits.items`.

        Raises:
            RefusedError: The session is ending.
        """
        permit = await self._backend.acquire(PermitRequest(model_id, 0, None, urgent=False, units=units))
        try:
            yield
        finally:
            self._backend.release(permit)

    @staticmethod
    def fingerprints(call: Call) -> frozenset[str]:
        """Return the hashes of the requests whose replies answer a call: with the budget's bound and without."""
        request = prepared(call)
        return frozenset((request.hash, unbounded(request).hash if request.bounded else request.hash))

    def stop_model(self, model: str, sentence: str) -> None:
        """End every call of a model that does not work: at once what waits, after a grace what is on the wire.

        Calls on the wire may be paid; a reply that still comes is kept.
        """
        self._stops.stop(model, sentence)

    async def close(self) -> None:
        """Close the HTTP client."""
        if self._client is not None:
            await self._client.close()

    def _replayed(self, request: PreparedCall, recorded: RecordedReply) -> Reply | None:
        """Return a recorded reply as if it had just come; None when it cannot be read or is of no use."""
        call = request.call
        parsed = _read(request, recorded)
        if parsed is None:
            return None
        # A reply that another run has paid costs this one nothing; its own calls stay its own.
        usage = counted_usage(request, parsed)
        free = replace(usage, cost_usd=0.0)
        priced = priced_usage(call, usage, parsed.provider_model)
        if recorded.cost_usd is not None:
            priced = replace(usage, cost_usd=recorded.cost_usd)  # a proxy may have named it beside the body
        reply = replace(
            parsed,
            usage=priced if recorded.own else free,
            key=self._next_key(),
            recorded=True,
            first_cost_usd=priced.cost_usd,
        )
        if not (self._recorded is RecordedUse.ONLY or call.accepts(reply)):
            return None
        if call.forwarded is not None:
            call.forwarded.receive(recorded.body, reply)
        trace = Attempt(request, 0)
        answer = RawAnswer(200, {}, recorded.body, 0.0)
        record = trace.record(answer=answer, reply=replace(reply, usage=free))
        self._backend.record_replay(replace(record, from_cache=True))
        _log.info("%s: %s call: answered by a stored reply", call.origin.code, call.purpose)
        return reply

    def _next_key(self) -> str:
        self._replies += 1
        return f"{self._name}{self._replies}"

    async def _attempt(
        self, request: PreparedCall, ask: PermitRequest, retries: Retries, clock: CaseClock, watch: CallWatch
    ) -> Reply | Fault:
        """Wait for a permit and send once; the permit comes back even when that fails."""
        permit = await self._backend.acquire(ask)
        try:
            # The permit may have been granted just before the end.
            watch.check()
            self._stops.check(ask.model)
            return await self._exchange(request, permit, retries, clock, watch)
        except BaseException:
            self._backend.release(permit)
            raise

    async def _exchange(
        self, request: PreparedCall, permit: Permit, retries: Retries, clock: CaseClock, watch: CallWatch
    ) -> Reply | Fault:
        """Send, settle the permit and put the attempt on record."""
        trace = Attempt(request, retries.attempts + 1)
        endpoint = request.call.endpoint
        endless = request.completion_bound is None and endpoint.server.passes_on
        bound_tokens = BOUND_TOKENS if endless and retries.after_timeout else request.completion_bound
        timeout_s = min(request.call.timeout_s or self.retry_policy.timeout_s, max(clock.left_s(), 0.001))
        try:
            with self._stops.stoppable(permit.model, asleep=False), watch.on_the_wire(), clock.running():
                answer = await self._send(request, timeout_s, permit.bound, bound_tokens)
        except TransportError as error:
            late = endless and error.fault.kind is FaultKind.TIMEOUT
            fault = without_end(error.fault) if late else error.fault
            return self._settle_fault(trace, permit, fault, None)
        except (asyncio.CancelledError, ModelStoppedError):
            used = AttemptResult(Ending.OTHER, unanswered=not request.is_free)
            record = trace.record(
                error="cancelled", unanswered=used.unanswered, reserved_usd=permit.reserved_usd
            )
            self._backend.settle(permit, used, record)
            raise
        parsed = _parsed(request, answer, bound_tokens)
        if endless and bound_tokens and isinstance(parsed, Reply) and parsed.is_cut:
            parsed = cut_after_timeout(parsed.usage)
        if isinstance(parsed, Fault):
            fault = self._passing(parsed, permit, retries)
            if permit.bound is None and (other := accepted_bound_name(fault, request.body)) is not None:
                fault = replace(fault, kind=FaultKind.TRANSIENT, reason=BOUND_RENAMED, parameter=other)
            return self._settle_fault(trace, permit, fault, answer)
        return await self._kept(trace, permit, parsed, answer, watch)

    def _passing(self, fault: Fault, permit: Permit, retries: Retries) -> Fault:
        """Return a fault as one that passes, where its model has answered before; see `Retries.forgive_once`."""
        return retries.forgive_once(fault) if permit.answered or permit.model in self._answering else fault

    async def _kept(
        self, trace: Attempt, permit: Permit, parsed: Reply, answer: RawAnswer, watch: CallWatch
    ) -> Reply:
        self._answering.add(permit.model)
        reply = self._settle_reply(trace, permit, parsed, answer)
        # A call that is over for the limiter, but not for a run that ends: its reply is paid.
        with watch.on_the_wire():
            await self._backend.stored()
        return reply

    async def _send(
        self, request: PreparedCall, timeout_s: float, bound: str | None, bound_tokens: int | None
    ) -> RawAnswer:
        call, endpoint = request.call, request.call.endpoint
        server = endpoint.server
        if server.function or server.embedded:
            return await local_answer(request, timeout_s)
        live = call.forwarded.live if call.forwarded is not None and server.passes_on else None
        # The record keeps the request as made: another name of its bound does not make another question.
        asked, encoded = request.asked_body, request.encoded
        if bound_tokens != request.completion_bound:
            asked, bound = {**asked, endpoint.max_tokens_key: bound_tokens}, bound or endpoint.max_tokens_key
        sent = server.sent(encoded if bound is None else with_bound(asked, bound), asked)
        if self._client is None:
            from pytest_helmbench.gateway.client import ChatClient

            self._client = ChatClient()
        said = await self._client.post(endpoint, sent, timeout_s, live.add if live is not None else None)
        body = server.read(said.body) if 200 <= said.status < 300 else said.body
        return failed_generation(said if body is said.body else replace(said, body=body))

    def _settle_reply(self, trace: Attempt, permit: Permit, parsed: Reply, answer: RawAnswer) -> Reply:
        call = trace.request.call
        usage = trace.priced(counted_usage(trace.request, parsed), parsed.provider_model)
        reply = replace(parsed, usage=usage, latency_ms=answer.latency_ms, key=self._next_key())
        used = AttemptResult(Ending.REPLY, usage, self.retry_policy.announced_pause_s(answer.headers))
        record = trace.record(answer=answer, reply=reply, reserved_usd=permit.reserved_usd)
        self._backend.settle(permit, used, record)
        if call.forwarded is not None:
            call.forwarded.receive(answer.body, reply)
        _log.info(
            "%s: %s call: %s answered after %s ms, %s + %s tokens, %s USD",
            call.origin.code,
            call.purpose,
            scrub(call.entry.id),
            "?" if answer.latency_ms is None else round(answer.latency_ms),
            *(
                "?" if n is None else n
                for n in (usage.prompt_tokens, usage.completion_tokens, usage.cost_usd)
            ),
        )
        return reply

    def _settle_fault(self, trace: Attempt, permit: Permit, fault: Fault, answer: RawAnswer | None) -> Fault:
        fault = fault.without_words() if trace.request.call.hides_words else fault
        if fault.usage.prompt_tokens is not None:
            # A reply that moderation cut is paid all the same.
            fault = replace(fault, usage=trace.priced(fault.usage, None))
        pause_s = self.retry_policy.announced_pause_s(answer.headers if answer is not None else {})
        if fault.kind is FaultKind.RATE_LIMITED:
            pause_s = fault.retry_after_s or 0.0  # not cut: whether it is too long, the limiter decides
        used = AttemptResult(
            _ENDINGS.get(fault.kind, Ending.OTHER),
            fault.usage,
            pause_s,
            fault.text() if fault.kind in (FaultKind.DEAD_MODEL, FaultKind.RATE_LIMITED) else "",
            unanswered=is_unanswered(fault) and not trace.request.is_free,
            bound=fault.parameter if fault.reason == BOUND_RENAMED else None,
        )
        record = trace.record(
            answer=answer,
            error=f"{fault.reason}: {fault.message}",
            fault=fault,
            unanswered=used.unanswered,
            reserved_usd=permit.reserved_usd if used.unanswered else 0.0,
        )
        self._backend.settle(permit, used, record)
        call = trace.request.call
        # The class only: the provider's own words may quote the prompt.
        _log.info(
            "%s: %s call: %s, status %s", call.origin.code, call.purpose, fault.reason, fault.status or "-"
        )
        return fault


def _origin(request: PreparedCall) -> tuple[str, ...]:
    """Return what tells a call from every other of its run; with or without the budget's bound it is the same."""
    call, form = request.call, unbounded(request) if request.bounded else request
    origin, judge = call.origin, call.entry.id if call.purpose == "judge" else ""
    counts = (origin.repetition, call.turn, call.sequence)
    return (origin.code, call.purpose, judge, call.criterion, *map(str, counts), form.hash)


def _parsed(request: PreparedCall, answer: RawAnswer, most_tokens: int | None) -> Reply | Fault:
    return parse_reply(
        answer.status,
        answer.body,
        headers=answer.headers,
        endpoint=request.call.endpoint,
        sent_schema=request.call.response_format is not None,
        most_tokens=most_tokens,
    )


def _read(request: PreparedCall, recorded: RecordedReply) -> Reply | None:
    """Return what a recorded reply says; None where it cannot be read."""
    parsed = _parsed(request, RawAnswer(200, {}, recorded.body, None), request.completion_bound)
    return None if isinstance(parsed, Fault) else parsed
