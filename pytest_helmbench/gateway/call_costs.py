"""The bound of what a call of one model may cost: by its price, or by what its calls have cost so far."""

from __future__ import annotations

from pytest_helmbench.core.model import Price
from pytest_helmbench.core.outcome import Usage

__all__ = ["CallCosts", "may_have_cost_usd"]

_UNBOUNDED_TOKENS = 32_768  # of a completion, where no bound is sent
_DEARER_COMPLETION = (
    8  # times: no list has a larger step from the price of a prompt's token to a completion's
)
_MOST_PER_ESTIMATED = 4  # tokens for one that was counted here: no tokenizer makes more than one of a byte
_CHEAPER_AT_FIRST = 4  # calls of a known price that may be out before the first cost is known


def may_have_cost_usd(usage: Usage, reserved_usd: float) -> float:
    """Return what a budget counts for a reply: where nobody has counted its tokens, the most that they may be.

    Args:
        usage: With its cost.
        reserved_usd: What was reserved for it.
    """
    cost = usage.cost_usd or 0.0
    return max(cost, min(cost * _MOST_PER_ESTIMATED, reserved_usd)) if usage.estimated else cost


class CallCosts:
    """The bound that a budget reserves for a call. It never shrinks to what a cheap reply has cost.

    Args:
        price: None when unknown.
        free: Calls cost nothing.
    """

    def __init__(self, price: Price | None, *, free: bool) -> None:
        self._price = price
        self._free = free
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

    def bound_usd(self, prompt_tokens: int, max_tokens: int | None) -> float | None:
        """Return what a call may cost; None when nobody can say.

        Args:
            prompt_tokens: Estimate.
            max_tokens: Bound that is sent; None when none is.
        """
        if self._free:
            return 0.0
        completion = max_tokens or max(self.largest_completion, _UNBOUNDED_TOKENS)
        if self._price is not None:
            by_price = (self._price.input * prompt_tokens + self._price.output * completion) / 1e6
            return by_price * self.factor
        if self._per_token_usd is None:
            return self.largest_usd
        by_token = self._per_token_usd * (prompt_tokens + _DEARER_COMPLETION * completion)
        return max(by_token, self.largest_usd or 0.0)

    def unknown_usd(self, reserved_usd: float) -> float | None:
        """Return what to count for a call whose cost nobody has said; None when nobody can say.

        Args:
            reserved_usd: What was reserved for it.
        """
        return reserved_usd if self.priced else self.largest_usd

    def add(self, usage: Usage, by_price_usd: float) -> None:
        """Learn from what a call has cost.

        Args:
            usage: With its cost.
            by_price_usd: What was reserved for it, before the factor.
        """
        self.largest_completion = max(self.largest_completion, usage.completion_tokens or 0)
        if usage.cost_usd is None:
            return
        self._known += 1
        self.largest_usd = max(self.largest_usd or 0.0, usage.cost_usd)
        if self._price is not None and by_price_usd > 0:
            self.factor = max(self.factor, usage.cost_usd / by_price_usd)
        tokens = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        if tokens:
            self._per_token_usd = max(self._per_token_usd or 0.0, usage.cost_usd / tokens)
