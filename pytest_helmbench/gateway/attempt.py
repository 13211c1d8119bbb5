"""An attempt: a call as it is sent, the row that records its result, and its usage."""

from __future__ import annotations

import time
from dataclasses import field, replace

from pytest_helmbench.core.case import Message
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import AttemptRecord, Reply, Usage, utc_now
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.gateway.backend import ReplyQuery
from pytest_helmbench.gateway.call import Call
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.http_answers import RawAnswer
from pytest_helmbench.gateway.prices import price_of, token_price
from pytest_helmbench.gateway.providers.provider import credible_usd
from pytest_helmbench.gateway.replies import encode
from pytest_helmbench.gateway.requests import (
    bound_completion,
    completion_bound,
    prompt_characters,
    request_body,
    request_hash,
    with_estimates,
)


class PreparedCall:
    """A call with its body, encoded and hashed once for all attempts.

    Args:
        call: The question.
        body: As sent.
        encoded: As sent, in bytes.
        bounded: The budget alone bounds its completion.
    """

    __slots__ = ("body", "bounded", "call", "completion_bound", "encoded", "hash")

    def __init__(self, call: Call, body: JsonObject, encoded: bytes, *, bounded: bool) -> None:
        number = 1 if call.forwarded is None else call.forwarded.number
        self.call = call
        self.bounded = bounded
        self.body = body
        self.encoded = encoded
        self.completion_bound = completion_bound(body)
        self.hash = request_hash(encoded, number)

    @property
    def is_free(self) -> bool:
        """Whether it costs nothing, however it ends."""
        price = token_price(self.call.entry.price, self.call.endpoint)
        return price is not None and not price.usd(1, 1)

    @property
    def asked_body(self) -> JsonObject:
        """The body as an application gets it: without the task, where its entry says so."""
        if self.call.entry.messages is None or self.call.forwarded is not None:
            return self.body
        messages: JsonValue = [
            one.wire()
            for one in map(Message.without_task, self.call.messages)
            if one.content or one.role not in ("system", "user")
        ]
        return {**self.body, "messages": messages}

    @property
    def query(self) -> ReplyQuery:
        """The key of this call among the recorded replies."""
        origin, asked, address = self.call.origin, self.call.entry.model_id, self.call.endpoint.replies_from
        judge = self.call.entry.id if self.call.purpose == "judge" else None
        return ReplyQuery(origin.run_id, origin.code, origin.repetition, self.hash, asked, address, judge)


def prepared(call: Call) -> PreparedCall:
    """Return a call with the request that is sent."""
    sampling, forwarded = call.entry.sampling, call.forwarded
    if forwarded is not None:
        body, encoded, bounded = forwarded.sent(
            call.endpoint, sampling, call.origin.repetition, call.entry.budget_tokens
        )
        return PreparedCall(call, body, encoded, bounded=bounded)
    own_body = request_body(
        call.endpoint,
        sampling,
        call.messages,
        call.response_format,
        call.tools,
        repetition=call.origin.repetition,
    )
    bounded = bound_completion(own_body, call.endpoint, call.entry.budget_tokens)
    return PreparedCall(call, own_body, encode(own_body), bounded=bounded)


def unbounded(request: PreparedCall) -> PreparedCall:
    """Return a call as it would go out without a budget."""
    call = request.call
    return prepared(replace(call, entry=replace(call.entry, budget_tokens=None)))


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that has started, in a batch as the line of that name; 0 is an answer from the record."""

    request: PreparedCall
    number: int
    batch: str | None = None
    started_at: str = field(default_factory=utc_now)
    started: float = field(default_factory=time.perf_counter)

    def record(
        self,
        *,
        answer: RawAnswer | None = None,
        reply: Reply | None = None,
        fault: Fault | None = None,
        error: str | None = None,
        unanswered: bool = False,
        reserved_usd: float = 0.0,
    ) -> AttemptRecord:
        """Return the row of this attempt: of a `reply`, or of a `fault`, whose class and text are in `error`.

        The provider may bill one that was sent and is `unanswered`: the budget counts `reserved_usd` for it.
        """
        call, said = self.request.call, reply or fault
        usage, origin = said.usage if said else Usage(), call.origin
        return AttemptRecord(
            run_id=origin.run_id,
            code=origin.code,
            repetition=origin.repetition,
            criterion=call.criterion,
            purpose=call.purpose,
            sequence=call.sequence,
            attempt=self.number,
            status_code=answer.status if answer else None,
            finish_reason=said.finish_reason if said else None,
            error=error,
            latency_ms=self._latency_ms(answer),
            usage=usage,
            provider_model=reply.provider_model if reply else None,
            request_hash=self.request.hash,
            request_body=self.request.encoded,
            response_body=answer.body if answer else None,
            text=scrub(reply.text) if reply else None,
            thoughts=scrub(reply.thoughts) or None if reply else None,
            inner_thoughts=reply.inner_thoughts if reply else 0,
            reply_key=reply.key if reply else None,
            from_cache=False,
            started_at=self.started_at,
            received_at=utc_now(),
            unanswered=unanswered and usage.cost_usd is None,
            reserved_usd=reserved_usd if reserved_usd and usage.cost_usd is None else None,
            judge=call.entry.id if call.purpose == "judge" else None,
            asked=call.entry.model_id,
            prompt_characters=prompt_characters(self.request.body, self.request.encoded),
            address=call.endpoint.replies_from,
            turn=call.turn,
            batch=self.batch,
        )

    def priced(self, usage: Usage, provider_model: str | None) -> Usage:
        """Return usage with what it has cost, at the price of a batch where it went in one."""
        return priced_usage(self.request.call, usage, provider_model, batched=self.batch is not None)

    def _latency_ms(self, answer: RawAnswer | None) -> float | None:
        if answer is not None or self.batch is not None:
            return answer.latency_ms if answer else None
        return (time.perf_counter() - self.started) * 1000


def counted_usage(request: PreparedCall, parsed: Reply) -> Usage:
    """Return the usage of a reply, with estimates where the provider has counted nothing."""
    if request.call.endpoint.server.embedded:
        return parsed.usage
    return with_estimates(parsed.usage, request.encoded, dict(parsed.message))


def cut_by_budget(call: Call, reply: Reply) -> Fault:
    """Return the fault of a reply that was cut at the bound set by the budget alone."""
    return Fault(
        FaultKind.REJECTED,
        None,
        "cut_by_budget",
        f"the reply was cut at {call.entry.budget_tokens} tokens, the bound that --helmbench-max-cost sets where"
        " none is stated",
        hint="state a bound that is large enough: --helmbench-max-tokens=N, or max_tokens in models.yml",
        usage=reply.usage,
        finish_reason=reply.finish_reason,
    )


def priced_usage(call: Call, usage: Usage, provider_model: str | None, *, batched: bool = False) -> Usage:
    """Return the usage with its cost: the provider's own figure, else a price list's, else unknown."""
    if usage.cost_usd is not None:
        return usage
    cost_usd = price_of(usage, call.entry.price, call.endpoint, provider_model, batched=batched)
    return replace(usage, cost_usd=credible_usd(cost_usd))
