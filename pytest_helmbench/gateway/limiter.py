"""The limiter of a session: who may send now. It alone knows concurrency, rates, the budget and stopped models.

One limiter serves all processes of a session. It lives on one event loop and is not thread-safe; workers reach
it over their channel.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from pytest_helmbench.core.model import Price
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.limits import AdaptiveLimit, Budget, Rate

__all__ = [
    "AttemptUsage",
    "BudgetSpentError",
    "Ending",
    "Limiter",
    "ModelLimits",
    "ModelStoppedError",
    "NotStoredError",
    "Permit",
    "PermitRequest",
    "RefusedError",
    "SessionLimits",
]

_UNKNOWN_COMPLETION_TOKENS = 1024


class RefusedError(HelmbenchError):
    """The limiter will not let this call go, now or later."""


class BudgetSpentError(RefusedError):
    """The session's budget cannot pay this call."""


class NotStoredError(RefusedError):
    """Replies can no longer be put on record, so none is paid for."""


class ModelStoppedError(RefusedError):
    """No further call of this model starts: its key, name or account does not work."""


@dataclass(frozen=True, slots=True)
class ModelLimits:
    """What the limiter must know of a model.

    Args:
        model: Model id.
        most: Calls in flight; at least 1.
        requests_per_minute: None for no bound.
        tokens_per_minute: Prompt and completion tokens; None for no bound.
        price: None when unknown.
        free: Calls cost nothing (embedded models).
        items: No model, but places for items whose own code runs: they are no calls.
    """

    model: str
    most: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    price: Price | None = None
    free: bool = False
    items: bool = False


@dataclass(frozen=True, slots=True)
class SessionLimits:
    """Bounds of the whole session; None for no bound."""

    concurrency: int
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    max_cost_usd: float | None = None


@dataclass(frozen=True, slots=True)
class PermitRequest:
    """A wish to send one attempt.

    Args:
        model: Model id; its limits must be known.
        prompt_tokens: Estimate.
        max_tokens: Bound that is sent; None when none is.
        urgent: Continues a case that has begun (retry, judge): goes before new cases.
        label: Names the case, for those who watch.
    """

    model: str
    prompt_tokens: int
    max_tokens: int | None
    urgent: bool
    label: str = ""


@dataclass(frozen=True, slots=True)
class Permit:
    """Leave to send one attempt; settled exactly once."""

    number: int
    model: str
    reserved_usd: float


class Ending(StrEnum):
    """How an attempt ended, as far as the limiter cares."""

    REPLY = "reply"
    RATE_LIMITED = "rate_limited"
    TIMEOUT = "timeout"
    DEAD = "dead"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class AttemptUsage:
    """What came of a permit.

    Args:
        ending: How it ended.
        usage: Of a reply.
        pause_s: How long the provider asked everybody to wait.
        sentence: Of a dead model: why, for people.
    """

    ending: Ending
    usage: Usage = Usage()
    pause_s: float = 0.0
    sentence: str = ""


class _LimitsInUse:
    """The limits of a model with what is out and who waits; its rates are its own and the session's."""

    def __init__(
        self, model_id: ModelLimits, request_rates: Sequence[Rate], token_rates: Sequence[Rate]
    ) -> None:
        self.model_id = model_id
        self.limit = AdaptiveLimit(model_id.most)
        self.in_flight = 0
        self.paused_until = 0.0
        self.stopped: str | None = None
        self.largest_completion = 0
        self.largest_cost: float | None = None
        self.calls = 0 if model_id.items else 1
        """What one place in it counts as."""
        self.request_rates = (
            *_rates(model_id.requests_per_minute),
            *(() if model_id.items else request_rates),
        )
        self.token_rates = (*_rates(model_id.tokens_per_minute), *(() if model_id.items else token_rates))
        self.rates = (*self.request_rates, *self.token_rates)
        self.waiting: list[tuple[int, int, PermitRequest, asyncio.Future[Permit]]] = []


class Limiter:
    """Admission for every attempt of the session.

    Args:
        limits: Bounds of the session.
        clock: Monotonic seconds.
        on_model_stopped: Called once per model that stops, with the model and the sentence.
        on_overdrawn: Called with a sentence when the budget cannot be held for want of a price.
    """

    def __init__(
        self,
        limits: SessionLimits,
        clock: Callable[[], float],
        on_model_stopped: Callable[[str, str], None] = lambda _model, _sentence: None,
        on_overdrawn: Callable[[str], None] = lambda _sentence: None,
    ) -> None:
        self.limits = limits
        self.budget = Budget(limits.max_cost_usd)
        self.refused_for_budget = 0
        self.closed: RefusedError | None = None
        self._clock = clock
        self._on_model_stopped = on_model_stopped
        self._on_overdrawn = on_overdrawn
        self._in_use: dict[str, _LimitsInUse] = {}
        self._numbers = itertools.count(1)
        self._order = itertools.count()
        self._in_flight = 0
        self._out: dict[int, tuple[str, str, float]] = {}
        self._request_rates = _rates(limits.requests_per_minute)
        self._token_rates = _rates(limits.tokens_per_minute)
        self._timer: asyncio.TimerHandle | None = None

    @property
    def in_flight(self) -> int:
        """Attempts that are out now."""
        return self._in_flight

    @property
    def stopped_models(self) -> dict[str, str]:
        """Model to the sentence that says why it stopped."""
        return {name: state.stopped for name, state in self._in_use.items() if state.stopped is not None}

    def calls_in_flight(self) -> list[tuple[str, str, float]]:
        """Return label, model and age in seconds of every attempt that is out, the oldest first."""
        now = self._clock()
        out = tuple(self._out.values())  # in one step: who watches is another thread
        calls = ((label, model, now - since) for label, model, since in out if self._in_use[model].calls)
        return sorted(calls, key=lambda call: -call[2])

    def add_models(self, limits_by_model: Iterable[ModelLimits]) -> None:
        """Make models known; a model that is known keeps its limits."""
        for model_id in limits_by_model:
            if model_id.model not in self._in_use:
                self._in_use[model_id.model] = _LimitsInUse(model_id, self._request_rates, self._token_rates)

    async def acquire(self, wanted: PermitRequest) -> Permit:
        """Wait until an attempt may go.

        Raises:
            BudgetSpentError: The budget cannot pay it.
            ModelStoppedError: The model does not work.
            RefusedError: The session is ending.
        """
        state = self._in_use[wanted.model]
        waiter: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        heapq.heappush(state.waiting, (not wanted.urgent, next(self._order), wanted, waiter))
        self._dispatch()
        try:
            return await waiter
        except asyncio.CancelledError:
            # The permit may have been granted in the same turn of the loop: it must not leak.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.settle(waiter.result(), AttemptUsage(Ending.OTHER))
            raise

    def settle(self, permit: Permit, used: AttemptUsage) -> None:
        """Give a permit back; one that has come back already counts no second time."""
        if self._out.pop(permit.number, None) is None:
            return
        state = self._in_use[permit.model]
        now = self._clock()
        state.in_flight -= 1
        self._in_flight -= state.calls
        self.budget.release(permit.reserved_usd)
        match used.ending:
            case Ending.REPLY:
                state.limit.succeeded()
            case Ending.RATE_LIMITED:
                state.limit.rate_limited(now, used.pause_s)
            case Ending.TIMEOUT:
                state.limit.timed_out(now)
            case Ending.DEAD:
                self._stop(state, used.sentence)
            case Ending.OTHER:
                pass
        if used.ending is Ending.REPLY or used.usage.cost_usd is not None:
            self._account(state, used.usage, now)
        if used.pause_s:
            state.paused_until = max(state.paused_until, now + used.pause_s)
        self._dispatch()

    def close(self, error: RefusedError) -> None:
        """Refuse everything that has not gone yet, and all that comes."""
        self.closed = error
        for state in self._in_use.values():
            self._refuse_all(state, error)

    def _account(self, state: _LimitsInUse, usage: Usage, now: float) -> None:
        completion = usage.completion_tokens or 0
        state.largest_completion = max(state.largest_completion, completion)
        for rate in state.token_rates:
            rate.take(now, completion)
        cost = 0.0 if state.model_id.free else usage.cost_usd
        if cost is not None:
            self.budget.spend(cost)
            state.largest_cost = max(state.largest_cost or 0.0, cost)
        elif self.budget.most_usd is not None and state.largest_cost is None and self.closed is None:
            sentence = (
                f"--helmbench-max-cost cannot be held: {state.model_id.model} has no known price"
                " and its reply names no cost\n"
                "  hint: give the model a `price:` in models.yml, or leave --helmbench-max-cost out"
            )
            self.close(RefusedError(sentence))
            self._on_overdrawn(sentence)

    def _stop(self, state: _LimitsInUse, sentence: str) -> None:
        if state.stopped is None:
            state.stopped = sentence
            self._refuse_all(state, ModelStoppedError(sentence))
            self._on_model_stopped(state.model_id.model, sentence)

    @staticmethod
    def _refuse_all(state: _LimitsInUse, error: RefusedError) -> None:
        for *_, waiter in state.waiting:
            if not waiter.done():
                waiter.set_exception(error)
        state.waiting.clear()

    def _dispatch(self) -> None:
        """Let go whoever may go, the urgent and the early first."""
        now = self._clock()
        wake_s: float | None = None
        while True:
            best: _LimitsInUse | None = None
            for state in self._in_use.values():
                self._drop_abandoned(state)
                if not state.waiting or not self._has_room(state):
                    continue
                wait_s = self._wait_s(state, now)
                if wait_s > 0:
                    wake_s = wait_s if wake_s is None else min(wake_s, wait_s)
                elif best is None or state.waiting[0][:2] < best.waiting[0][:2]:
                    best = state
            if best is None:
                break
            self._grant(best, now)
        self._wake_in(wake_s)

    @staticmethod
    def _drop_abandoned(state: _LimitsInUse) -> None:
        while state.waiting and state.waiting[0][3].done():
            heapq.heappop(state.waiting)

    def _has_room(self, state: _LimitsInUse) -> bool:
        """Return whether the first waiter could go, rates apart; refuse at once who never can."""
        if self.closed is not None or state.stopped is not None:
            error = ModelStoppedError(state.stopped) if state.stopped else self.closed
            self._refuse_all(state, error or RefusedError())
            return False
        if state.in_flight >= state.limit.calls:
            return False
        if self._in_flight + state.calls > self.limits.concurrency:
            return False
        while state.waiting:
            *_, wanted, waiter = state.waiting[0]
            cost = self._cost(state, wanted)
            if cost is None and not self.budget.is_spent:
                # Nobody knows what this model costs: one call at a time until a reply tells.
                return state.in_flight == 0
            if cost is not None and self.budget.can_ever_pay(cost):
                return self.budget.can_pay_now(cost)
            self.refused_for_budget += 1
            heapq.heappop(state.waiting)
            waiter.set_exception(BudgetSpentError(self._spent_sentence(cost)))
            self._drop_abandoned(state)
        return False

    def _spent_sentence(self, cost: float | None) -> str:
        budget = self.budget
        may_cost = "an unknown sum" if cost is None else f"{cost:.4f}"
        spent = f"{budget.spent_usd:.4f} of {budget.most_usd:.4f} USD"
        return f"budget spent: {spent}, the call may cost {may_cost}"

    def _cost(self, state: _LimitsInUse, wanted: PermitRequest) -> float | None:
        """Return what to reserve; None when nobody can say and it matters."""
        if self.budget.most_usd is None or state.model_id.free:
            return 0.0
        price = state.model_id.price
        if price is None:
            return state.largest_cost
        completion = wanted.max_tokens or state.largest_completion or _UNKNOWN_COMPLETION_TOKENS
        return (price.input * wanted.prompt_tokens + price.output * completion) / 1e6

    @staticmethod
    def _wait_s(state: _LimitsInUse, now: float) -> float:
        if state.paused_until > now:
            return state.paused_until - now
        return max((rate.wait_s(now) for rate in state.rates), default=0.0)

    def _grant(self, state: _LimitsInUse, now: float) -> None:
        *_, wanted, waiter = heapq.heappop(state.waiting)
        reserved = self._cost(state, wanted) or 0.0
        state.in_flight += 1
        self._in_flight += state.calls
        self.budget.reserve(reserved)
        for rate in state.request_rates:
            rate.take(now, 1)
        for rate in state.token_rates:
            rate.take(now, wanted.prompt_tokens)
        permit = Permit(next(self._numbers), wanted.model, reserved)
        self._out[permit.number] = (wanted.label, wanted.model, now)
        waiter.set_result(permit)

    def _wake_in(self, wait_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait_s is not None:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._dispatch)


def _rates(per_minute: float | None) -> tuple[Rate, ...]:
    return () if per_minute is None else (Rate(per_minute),)
