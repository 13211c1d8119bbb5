"""Pure arithmetic of limits: calls in flight, rates per minute, the budget, costs of calls. The clock is passed in."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import Price
from pytest_helmbench.core.outcome import Usage

_CUT = 0.7
_EPISODE_S = 5.0  # what arrives this soon after a cut tells of the same jam
_TIMEOUTS_THAT_CUT = 3
_DUST_USD = 1e-12  # what adding floats may be off by
_UNBOUNDED_TOKENS = 32_768  # of a completion, where no bound is sent
_DEARER_COMPLETION = (
    8  # times: no list has a larger step from the price of a prompt's token to a completion's
)
_MOST_PER_ESTIMATED = 4  # tokens for one that was counted here: no tokenizer makes more than one of a byte
_SLACK_TOKENS = 16  # that servers count beyond a bound which they keep to
_CHEAPER_AT_FIRST = 4  # calls of a known price that may be out before the first cost is known
_KEPT_PER_CALL = 10  # replies within their bound for each call that goes with no more than that reserved


class AdaptiveLimit:
    """How many calls of one model may be in flight, the most at first: additive increase, multiplicative decrease."""

    def __init__(self, most: int) -> None:
        self.most = most
        self._limit = float(most)
        self._jammed_until = float("-inf")
        self._timeouts = 0
        self._succeeded = True

    @property
    def calls(self) -> int:
        """The present limit, at least 1."""
        return max(1, int(self._limit))

    def succeeded(self) -> None:
        """Grow by one call per full round of successes."""
        self._succeeded = True
        self._timeouts = 0
        self._limit = min(float(self.most), self._limit + 1 / self._limit)

    def rate_limited(self, now: float, pause_s: float = 0.0) -> bool:
        """Cut once per episode, and not again before a success; return whether this was the cut.

        Where nothing succeeds, fewer calls do not help: they would only make a session serial.

        Args:
            pause_s: How long the provider asked to wait; the episode lasts at least that long.
        """
        if now < self._jammed_until or not self._succeeded:
            return False
        self._succeeded = False
        self._jammed_until = now + max(_EPISODE_S, pause_s)
        self._limit = max(1.0, self._limit * _CUT)
        return True

    def timed_out(self, now: float) -> bool:
        """Count a timeout; three without a success between them are a jam. Return whether it cut."""
        self._timeouts += 1
        if self._timeouts < _TIMEOUTS_THAT_CUT:
            return False
        self._timeouts = 0
        return self.rate_limited(now)


class Rate:
    """A rate of units per minute, above 0, spread evenly: a second's worth may go at once, and no minute gets more."""

    def __init__(self, per_minute: float) -> None:
        self._burst = max(1.0, per_minute / 60)
        # The first burst counts into the same minute.
        self._per_s = (per_minute - self._burst + 1) / 60
        self._level = self._burst
        self._at: float | None = None

    def wait_s(self, now: float) -> float:
        """Return the seconds until the next unit may be taken; 0 when it may now."""
        self._refill(now)
        return max(0.0, (1.0 - self._level) / self._per_s)

    def take(self, now: float, amount: float) -> None:
        """Take an amount; it may be more than a burst, what comes next waits for it."""
        self._refill(now)
        self._level -= amount

    def _refill(self, now: float) -> None:
        if self._at is not None:
            self._level = min(self._burst, self._level + (now - self._at) * self._per_s)
        self._at = now


@dataclass(slots=True)
class Budget:
    """Money of the session: what is spent, and what calls in flight have reserved.

    A call that costs nothing can always be paid, also when replies have cost more than was reserved for them.

    Args:
        most_usd: The bound; None for none.
        spent_usd: So far.
        reservations: How many calls those are.
        unanswered: Calls that were sent and brought no reply, and that the provider may bill.
        unanswered_usd: What they may have cost; a part of what is spent.
    """

    most_usd: float | None = None
    spent_usd: float = 0.0
    reserved_usd: float = 0.0
    reservations: int = 0
    unanswered: int = 0
    unanswered_usd: float = 0.0

    @property
    def is_spent(self) -> bool:
        """Whether nothing is left."""
        return self.most_usd is not None and self.spent_usd >= self.most_usd - _DUST_USD

    def can_ever_pay(self, cost_usd: float) -> bool:
        """Return whether a call of this price would fit if nothing else were in flight."""
        return not cost_usd or self._fits(self.spent_usd + cost_usd)

    def can_pay_now(self, cost_usd: float) -> bool:
        """Return whether a call of this price fits beside what is reserved."""
        return not cost_usd or self._fits(self.spent_usd + self.reserved_usd + cost_usd)

    def reserve(self, cost_usd: float) -> None:
        """Set aside what a call may cost."""
        self.reservations += 1
        self.reserved_usd += cost_usd

    def release(self, cost_usd: float) -> None:
        """Free what was set aside for a call."""
        self.reservations -= 1
        # Adding and taking away leaves dust behind; with nothing out there is nothing reserved.
        self.reserved_usd = self.reserved_usd - cost_usd if self.reservations else 0.0

    def spend(self, cost_usd: float) -> None:
        """Count what a call has cost."""
        self.spent_usd += cost_usd

    def spend_unanswered(self, most_usd: float) -> None:
        """Count what a call may have cost that was not answered."""
        self.unanswered += 1
        self.unanswered_usd += most_usd
        self.spend(most_usd)

    def _fits(self, sum_usd: float) -> bool:
        return self.most_usd is None or sum_usd <= self.most_usd + _DUST_USD


def highest_cost_usd(usage: Usage, reserved_usd: float) -> float:
    """Return what a budget counts for a reply: where its tokens were not counted, the most that they may be."""
    cost = usage.cost_usd or 0.0
    return max(cost, min(cost * _MOST_PER_ESTIMATED, reserved_usd)) if usage.estimated else cost


class CallCosts:
    """The bound that a budget reserves for a call. It never shrinks to what a cheap reply has cost.

    A server may take no notice of the bound of a completion, or think beyond it: only a reply that was cut there shows
    that it does not. Until one was, and for good after one that was longer, the model's largest output is reserved, but
    for one call at a time for every ten replies that were within their bound.

    Args:
        price: None when unknown.
        free: Calls cost nothing.
        largest_output: Tokens of a completion that is not bounded.
    """

    def __init__(self, price: Price | None, *, free: bool, largest_output: int = 0) -> None:
        self._price = price
        self._free = free
        self._largest_output = largest_output
        self._keeps: bool | None = None
        self._kept = 0
        self.factor = 1.0
        """How often the price of what was sent calls have cost, where that is more than once."""
        self._per_token_usd: float | None = None
        self._known = 0
        self.largest_usd: float | None = None
        self.largest_completion = 0

    @property
    def priced(self) -> bool:
        """Whether a call's cost is known before it is sent."""
        return self._free or self._price is not None

    @property
    def most_at_once(self) -> float:
        """How many calls may be out: few until the first costs are known."""
        if self._free:
            return float("inf")
        return (_CHEAPER_AT_FIRST if self._price is not None else 1) + 2 * self._known

    def bound_usd(self, prompt_tokens: int, max_tokens: int | None, beside: int) -> float | None:
        """Return what a call may cost beside the calls of the model that are out; None when it is unknown."""
        trusted = self._keeps or (self._keeps is None and beside < self._kept // _KEPT_PER_CALL)
        longest = 0 if trusted else max(self._largest_output, self.largest_completion)
        return self._usd(prompt_tokens, max(self._stated(max_tokens), longest))

    def alone_usd(self, prompt_tokens: int, max_tokens: int | None) -> float | None:
        """Return what a call has to cost at least to go alone where its bound cannot be paid; None when it may not.

        That bound is a guess without a price, and for a model that has never passed the one that is sent.
        """
        if self._price is None:
            return self.largest_usd
        return self._usd(prompt_tokens, self._stated(max_tokens)) if self._keeps is None else None

    def _stated(self, max_tokens: int | None) -> int:
        return max_tokens or max(self.largest_completion, _UNBOUNDED_TOKENS)

    def _usd(self, prompt_tokens: int, completion: int) -> float | None:
        if self._free:
            return 0.0
        if self._price is not None:
            return self._price.most_usd(prompt_tokens, completion) * self.factor
        if self._per_token_usd is None:
            return self.largest_usd
        by_token = self._per_token_usd * (prompt_tokens + _DEARER_COMPLETION * completion)
        return max(by_token, self.largest_usd or 0.0)

    def unknown_usd(self, reserved_usd: float) -> float | None:
        """Return what to count for a call whose cost was not stated; None when it is unknown."""
        return reserved_usd if self.priced else self.largest_usd

    def add(self, usage: Usage, by_price_usd: float, max_tokens: int | None) -> None:
        """Learn from what a call has cost, and from what was reserved for it, before the factor."""
        prompt, completion = usage.prompt_tokens or 0, usage.completion_tokens or 0
        self.largest_completion = max(self.largest_completion, completion)
        if max_tokens and completion and not usage.estimated:
            self._kept += 1
            if completion >= max_tokens and self._keeps is not False:
                self._keeps = completion <= max_tokens + _SLACK_TOKENS
        if usage.cost_usd is None:
            return
        self._known += 1
        self.largest_usd = max(self.largest_usd or 0.0, usage.cost_usd)
        if self._price is not None and by_price_usd > 0:
            # Tokens that the provider may count twice were not foreseen: the next call may have as many.
            if not usage.upper_bound:
                by_price_usd = max(by_price_usd, self._price.most_usd(prompt, completion))
            self.factor = max(self.factor, usage.cost_usd / by_price_usd)
        if prompt + completion:
            self._per_token_usd = max(self._per_token_usd or 0.0, usage.cost_usd / (prompt + completion))
