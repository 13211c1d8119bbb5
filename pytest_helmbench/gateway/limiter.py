"""The limiter of a session: which call may be sent now, by concurrency, rates, budget and stopped models.

One limiter serves all processes of a session. It lives on one event loop and is not thread-safe; workers reach
it over their channel.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
import math
from collections.abc import Callable, Iterable, Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.limits import AdaptiveLimit, Budget, CallCosts, Rate, highest_cost_usd
from pytest_helmbench.gateway.permits import (
    AttemptResult,
    BudgetSpentError,
    Ending,
    FailedCase,
    FaultStreak,
    ModelLimits,
    ModelStoppedError,
    Permit,
    PermitRequest,
    RefusedError,
    SessionLimits,
)
from pytest_helmbench.gateway.prices import HALF

_UNPRICED_TRIES = 3  # calls that may go unanswered before a budget is given up for want of a price


@dataclass(frozen=True, slots=True)
class _OpenAttempt:
    """An attempt that has its permit and is not settled."""

    label: str
    model: str
    since: float
    by_price_usd: float  # reserved for it, before the factor of its model
    max_tokens: int | None
    units: int  # none in a batch: it takes money alone


class _LocalServer:
    """Calls to one server, of all its models."""

    def __init__(self) -> None:
        self._most = 1
        self._in_flight = 0
        self._loaded: _ModelState | None = None

    def allow(self, most: int) -> None:
        """Let so many calls be in flight; the largest number of its models counts."""
        self._most = max(self._most, most)

    def has_room_for(self, state: _ModelState, now: float) -> bool:
        """Return whether a call of a model may go; the one that is loaded goes on while it has calls to make."""
        if self._in_flight >= self._most:
            return False
        loaded = self._loaded
        if loaded is None or loaded.shared is state.shared or not state.limits.loads:
            return True
        return not self._in_flight and (not loaded.waiting or loaded.shared.paused_until > now)

    def grant(self, state: _ModelState) -> None:
        """Count a call that starts."""
        self._in_flight += 1
        if state.limits.loads:
            self._loaded = state

    def settle(self) -> None:
        """Count a call that has ended."""
        self._in_flight -= 1


class _SharedState:
    """State of one model of a provider, which all its variants share: they use up the same limits."""

    def __init__(self, most: int) -> None:
        self.limit = AdaptiveLimit(most)
        self.in_flight = 0
        self.paused_until = 0.0
        self._rates: dict[tuple[str, float], Rate] = {}

    def rates(self, of: str, per_minute: float | None) -> tuple[Rate, ...]:
        """Return the rate of what is counted; variants that state the same one use it up together."""
        return () if per_minute is None else (self._rates.setdefault((of, per_minute), Rate(per_minute)),)


class _ModelState:
    """The limits of a model, its attempts in flight and its waiting requests."""

    def __init__(
        self,
        limits: ModelLimits,
        shared: _SharedState,
        request_rates: Sequence[Rate],
        token_rates: Sequence[Rate],
    ) -> None:
        self.limits = limits
        self.shared = shared
        self.in_flight = 0
        self.stopped: str | None = None
        self.answered = False
        self.bound: str | None = None
        self.refused_since: float | None = None
        self.limited_since: float | None = None
        self.streak = FaultStreak()
        self.server: _LocalServer | None = None
        free = limits.free or limits.items
        self.costs = CallCosts(limits.price, free=free, largest_output=limits.largest_output)
        self.unpriced_tries = 0
        self.calls = 0 if limits.items else 1
        """Calls that one permit counts as."""
        self.request_rates = (
            *shared.rates("requests", limits.requests_per_minute),
            *(() if limits.items else request_rates),
        )
        self.token_rates = (
            *shared.rates("tokens", limits.tokens_per_minute),
            *(() if limits.items else token_rates),
        )
        self.rates = (*self.request_rates, *self.token_rates)
        self.waiting: list[tuple[int, int, PermitRequest, asyncio.Future[Permit]]] = []

    def units(self, request: PermitRequest) -> int:
        """Return how many of its places a request takes."""
        return min(request.units, self.limits.concurrency)


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
        self.budget = Budget(limits.max_cost_usd, limits.spent_usd)
        self.refused_for_budget = 0
        self.closed: RefusedError | None = None
        self._clock = clock
        self._on_model_stopped = on_model_stopped
        self._on_overdrawn = on_overdrawn
        self._states: dict[str, _ModelState] = {}
        self._servers: dict[str, _LocalServer] = {}
        self._shared: dict[str, _SharedState] = {}
        self._numbers = itertools.count(1)
        self._order = itertools.count()
        self._in_flight = 0
        self._open_attempts: dict[int, _OpenAttempt] = {}
        self._request_rates = _rates(limits.requests_per_minute)
        self._token_rates = _rates(limits.tokens_per_minute)
        self._timer: asyncio.TimerHandle | None = None
        self._reserving = asyncio.Lock()
        self._returned = asyncio.Event()
        self.nothing_returns: RefusedError | None = None
        """Why no call of a batch waits for money any more."""

    @property
    def in_flight(self) -> int:
        """Attempts in flight."""
        return self._in_flight

    @property
    def stopped_models(self) -> dict[str, str]:
        """Model to the sentence that says why it stopped."""
        return {name: state.stopped for name, state in self._states.items() if state.stopped is not None}

    def calls_in_flight(self) -> list[tuple[str, str, float]]:
        """Return label, model and age in seconds of every attempt in flight, the oldest first."""
        now = self._clock()
        attempts = tuple(self._open_attempts.values())  # one step: other threads may change it
        calls = [one for one in attempts if self._states[one.model].calls and one.units]
        return [(one.label, one.model, now - one.since) for one in sorted(calls, key=lambda one: one.since)]

    def waits_for_limits(self) -> bool:
        """Return whether a call waits for a rate limit or a pause, not for another call. From any thread."""
        return self._timer is not None

    def add_models(self, models: Iterable[ModelLimits]) -> None:
        """Make models known; a model that is known keeps its limits."""
        for limits in models:
            if limits.model not in self._states:
                name = limits.provider_model or limits.model
                shared = self._shared.setdefault(name, _SharedState(limits.concurrency))
                state = _ModelState(limits, shared, self._request_rates, self._token_rates)
                self._states[limits.model] = state
                if limits.server is not None:
                    state.server = self._servers.setdefault(limits.server, _LocalServer())
                    state.server.allow(limits.concurrency)

    async def acquire(self, request: PermitRequest) -> Permit:
        """Wait until an attempt may go.

        Raises:
            BudgetSpentError: The budget cannot pay it.
            ModelStoppedError: The model does not work.
            RefusedError: The session is ending.
        """
        state = self._states[request.model]
        waiter: asyncio.Future[Permit] = asyncio.get_running_loop().create_future()
        heapq.heappush(state.waiting, (not request.urgent, next(self._order), request, waiter))
        self._dispatch()
        try:
            return await waiter
        except asyncio.CancelledError:
            # The permit may have been granted in the same turn of the loop: it must not leak.
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self.settle(waiter.result(), AttemptResult(Ending.OTHER))
            raise

    def settle(self, permit: Permit, result: AttemptResult) -> None:
        """Give a permit back; one that has come back already counts no second time."""
        attempt = self._open_attempts.pop(permit.number, None)
        if attempt is None:
            return
        state = self._states[permit.model]
        now = self._clock()
        state.bound = result.bound or state.bound
        if attempt.units:
            state.in_flight -= attempt.units
            state.shared.in_flight -= attempt.units
            if state.server is not None:
                state.server.settle()
            self._in_flight -= state.calls
        self.budget.release(permit.reserved_usd)
        self._returned.set()
        match result.ending:
            case Ending.REPLY:
                state.answered = True
                state.shared.limit.succeeded()
                state.refused_since = state.limited_since = None
                state.streak.answered()
            case Ending.RATE_LIMITED:
                state.shared.limit.rate_limited(now, result.pause_s)
                state.limited_since = now if state.limited_since is None else state.limited_since
                self._check_pause(state, result, now)
            case Ending.TIMEOUT:
                state.shared.limit.timed_out(now)
            case Ending.DEAD:
                self._stop(state, result.sentence)
            case Ending.OTHER:
                pass
        if result.ending is Ending.REPLY or result.usage.cost_usd is not None:
            self._account(state, result.usage, attempt, permit, now)
        elif result.unanswered:
            self._account_unanswered(state, permit)
        if result.pause_s:
            state.shared.paused_until = max(state.shared.paused_until, now + result.pause_s)
        self._dispatch()

    async def reserve(self, request: PermitRequest) -> Permit | None:
        """Wait until the budget can pay a call that goes in a batch: it takes no place, and no rate.

        The bound that is sent counts until a reply was longer: a batch of few calls, to learn, would take a day.

        Returns:
            None for a call that has to go alone, since its price is a guess: it goes singly.

        Raises:
            RefusedError: The budget cannot pay it, or the model or the session sends nothing more (and its kinds).
        """
        state = self._states[request.model]
        if self._cost_in_batch(state, request) is None:
            return None
        async with self._reserving:
            while (cost := self._cost_in_batch(state, request)) is not None:
                if self.budget.can_pay_now(cost):
                    return self.hold(request, cost)
                if self.nothing_returns is not None:
                    raise self.nothing_returns
                self._returned.clear()
                await self._returned.wait()
        return None

    def _cost_in_batch(self, state: _ModelState, request: PermitRequest) -> float | None:
        if (refusal := self._refusal(state)) is not None:
            raise refusal
        cost = self._cost(state, request, -1)
        if cost is None:
            return None
        cost *= state.limits.batch_share or HALF
        if not self.budget.can_ever_pay(cost):
            self.refused_for_budget += 1
            raise BudgetSpentError(self._spent_sentence(cost))
        return cost

    def hold(self, request: PermitRequest, usd: float, units: int = 0) -> Permit:
        """Reserve a sum, whatever is left; a call in a batch takes no place."""
        state = self._states[request.model]
        self.budget.reserve(usd)
        permit = Permit(next(self._numbers), request.model, usd, state.answered, state.bound)
        by_price = usd / state.costs.factor
        self._open_attempts[permit.number] = _OpenAttempt(
            request.label, request.model, self._clock(), by_price, request.max_tokens, units
        )
        return permit

    def give_back(self, permit: Permit) -> None:
        """Free what was reserved for a call that has cost nothing."""
        self.settle(permit, AttemptResult(Ending.OTHER))

    def stop(self, model: str, sentence: str) -> None:
        """Let a model send nothing more."""
        self._stop(self._states[model], sentence)

    def leave(self, error: RefusedError) -> None:
        """Let no call of a batch wait for money: nothing returns in this session."""
        self.nothing_returns = error
        self._returned.set()

    def failed(self, model: str, case: FailedCase) -> None:
        """Count a case that has failed for good; stop a model that has answered nothing and fails alike each time."""
        state = self._states[model]
        sentence = state.streak.ends_with(case)
        if sentence is not None:
            self._stop(state, sentence)

    def limited_s(self) -> dict[str, float]:
        """Return for how long models have been answered with nothing but rate limits. From any thread."""
        now = self._clock()
        return {
            name: now - state.limited_since
            for name, state in tuple(self._states.items())
            if state.limited_since is not None and state.stopped is None
        }

    def close(self, error: RefusedError) -> None:
        """Refuse everything that has not gone yet, and all that comes."""
        self.closed = error
        self._returned.set()
        for state in self._states.values():
            self._refuse_all(state, error)

    def _account(
        self, state: _ModelState, usage: Usage, attempt: _OpenAttempt, permit: Permit, now: float
    ) -> None:
        for rate in state.token_rates:
            rate.take(now, usage.completion_tokens or 0)
        if state.limits.free:
            return
        state.costs.add(usage, attempt.by_price_usd, attempt.max_tokens)
        if usage.cost_usd is not None:
            self.budget.spend(highest_cost_usd(usage, permit.reserved_usd))
        elif (usual := state.costs.unknown_usd(permit.reserved_usd)) is not None:
            self.budget.spend(usual)
        else:
            self._give_up_budget(f"{state.limits.model} has no known price and its reply names no cost")

    def _account_unanswered(self, state: _ModelState, permit: Permit) -> None:
        """Count a call as spent that the provider may bill, though its cost stays unknown."""
        if state.limits.free or self.budget.most_usd is None:
            return
        may_cost = state.costs.unknown_usd(permit.reserved_usd)
        if may_cost is not None:
            if may_cost:
                self.budget.spend_unanswered(may_cost)
            return
        state.unpriced_tries += 1
        if state.unpriced_tries >= _UNPRICED_TRIES:
            unanswered = f"{state.unpriced_tries} calls were sent and not answered"
            self._give_up_budget(f"{state.limits.model} has no known price, and {unanswered}")

    def _give_up_budget(self, why: str) -> None:
        if self.budget.most_usd is None or self.closed is not None:
            return
        sentence = (
            f"--helmbench-max-cost cannot be held: {why}\n"
            "  hint: give the model a `price:` in a models.yml of your own (--helmbench-models-file), or start anew"
            " without --helmbench-max-cost"
        )
        self.close(RefusedError(sentence))
        self._on_overdrawn(sentence)

    def _check_pause(self, state: _ModelState, result: AttemptResult, now: float) -> None:
        """Stop a model that its provider keeps waiting for longer than a case may take."""
        if not result.pause_s:
            return
        if state.refused_since is None:
            state.refused_since = now
        waited_s = now - state.refused_since
        if waited_s + result.pause_s > self.limits.longest_pause_s:
            before = f", after {waited_s:.0f} s without a reply" if waited_s >= 1 else ""
            self._stop(
                state,
                f"{result.sentence}\n  it asks for a pause of {result.pause_s:.0f} s{before};"
                f" a case may take {self.limits.longest_pause_s:g} s\n"
                "  hint: go on later with --helmbench-resume, or raise --helmbench-case-timeout",
            )

    def _stop(self, state: _ModelState, sentence: str) -> None:
        if state.stopped is None:
            state.stopped = sentence
            self._returned.set()
            self._refuse_all(state, ModelStoppedError(sentence))
            self._on_model_stopped(state.limits.model, sentence)

    @staticmethod
    def _refuse_all(state: _ModelState, error: RefusedError) -> None:
        for *_, waiter in state.waiting:
            if not waiter.done():
                waiter.set_exception(error)
        state.waiting.clear()

    def _dispatch(self) -> None:
        """Let every call go that may, the urgent and the early first."""
        now = self._clock()
        wake_s: float | None = None
        while True:
            best: _ModelState | None = None
            for state in self._states.values():
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
    def _drop_abandoned(state: _ModelState) -> None:
        while state.waiting and state.waiting[0][3].done():
            heapq.heappop(state.waiting)

    def _refusal(self, state: _ModelState) -> RefusedError | None:
        """Return why nothing more of a model may go; None while it may."""
        return self.closed if state.stopped is None else ModelStoppedError(state.stopped)

    def _has_room(self, state: _ModelState) -> bool:
        """Return whether the first waiter could go, rates apart; refuse at once who never can."""
        if (refusal := self._refusal(state)) is not None:
            self._refuse_all(state, refusal)
            return False
        shared = state.shared
        units = state.units(state.waiting[0][2])
        if (
            shared.in_flight + units > shared.limit.calls
            or state.in_flight + units > state.limits.concurrency
        ):
            return False
        if self._in_flight + state.calls > self.limits.concurrency:
            return False
        if state.server is not None and not state.server.has_room_for(state, self._clock()):
            return False
        if self.budget.most_usd is not None and state.in_flight >= state.costs.most_at_once:
            return False
        while state.waiting:
            *_, request, waiter = state.waiting[0]
            cost = self._cost(state, request, state.in_flight)
            if cost is None and not self.budget.is_spent:
                # The price of this model is unknown: one call at a time until a reply tells.
                return state.in_flight == 0
            if cost is not None and self.budget.can_ever_pay(cost):
                return self.budget.can_pay_now(cost)
            if self._alone_usd(state, request) is not None:
                return not self.budget.reserved_usd and not self.budget.is_spent
            self.refused_for_budget += 1
            heapq.heappop(state.waiting)
            waiter.set_exception(BudgetSpentError(self._spent_sentence(cost)))
            self._drop_abandoned(state)
        return False

    def _alone_usd(self, state: _ModelState, request: PermitRequest) -> float | None:
        """Return what to reserve for a call that goes alone, since its bound is a guess; None when it may not."""
        usual = state.costs.alone_usd(request.most_prompt_tokens or request.prompt_tokens, request.max_tokens)
        return usual if usual is not None and self.budget.can_ever_pay(usual) else None

    def _spent_sentence(self, cost: float | None) -> str:
        budget = self.budget
        may_cost = "an unknown sum" if cost is None else _usd(cost)
        if not budget.spent_usd:
            return f"the budget of {_usd(budget.most_usd or 0.0)} USD does not pay this call: it may cost {may_cost}"
        spent = f"{_usd(budget.spent_usd)} of {_usd(budget.most_usd or 0.0)} USD"
        return f"budget spent: {spent}, the call may cost {may_cost}"

    def _cost(self, state: _ModelState, request: PermitRequest, beside: int) -> float | None:
        """Return what to reserve; None when it is unknown and matters."""
        if self.budget.most_usd is None:
            return 0.0
        prompt_tokens = request.most_prompt_tokens or request.prompt_tokens
        return state.costs.bound_usd(prompt_tokens, request.max_tokens, beside)

    @staticmethod
    def _wait_s(state: _ModelState, now: float) -> float:
        if state.shared.paused_until > now:
            return state.shared.paused_until - now
        return max((rate.wait_s(now) for rate in state.rates), default=0.0)

    def _grant(self, state: _ModelState, now: float) -> None:
        *_, request, waiter = heapq.heappop(state.waiting)
        reserved = self._cost(state, request, state.in_flight) or 0.0
        if not self.budget.can_ever_pay(reserved):
            reserved = self._alone_usd(state, request) or 0.0
        units = state.units(request)
        state.in_flight += units
        state.shared.in_flight += units
        if state.server is not None:
            state.server.grant(state)
        self._in_flight += state.calls
        for rate in state.request_rates:
            rate.take(now, 1)
        for rate in state.token_rates:
            rate.take(now, request.prompt_tokens)
        waiter.set_result(self.hold(request, reserved, units))

    def _wake_in(self, wait_s: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if wait_s is not None:
            self._timer = asyncio.get_running_loop().call_later(wait_s, self._dispatch)


def _rates(per_minute: float | None) -> tuple[Rate, ...]:
    return () if per_minute is None else (Rate(per_minute),)


def _usd(amount: float) -> str:
    """Return a sum with four decimals; a small one with the two digits that count."""
    return (
        f"{amount:.4f}"
        if amount == 0 or amount >= 0.01
        else f"{amount:.{1 - math.floor(math.log10(amount))}f}"
    )
