"""The meaning of a budget for a plan: the bounds of its replies, and the least sum that pays one call."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.engine.job import Target
from pytest_helmbench.gateway.prices import token_price
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.run.plan import CHARACTERS_PER_TOKEN, Plan

__all__ = ["LeastCall", "budget_bounds", "least_call", "rounded_up"]

Targets = Mapping[tuple[str, str], Target]


@dataclass(frozen=True, slots=True)
class LeastCall:
    """The cheapest call of a plan.

    Args:
        model: Id.
        tokens: Bound of its reply.
        usd: What it may cost.
    """

    model: str
    tokens: int
    usd: float


def budget_bounds(plan: Plan, targets: Targets) -> Mapping[int, Sequence[str]]:
    """Return the models that a budget bounds, judges too, by the most tokens of a reply."""
    bounds: dict[int, dict[str, None]] = {}
    for run in plan.runs:
        target = targets[run.key]
        judges = target.judges if run.judge_calls else ()
        for route in (target.model, *judges) if run.usable else ():
            if route.entry.budget_tokens is not None and route.entry.sampling.max_tokens is None:
                bounds.setdefault(route.entry.budget_tokens, {})[route.entry.id] = None
    return {tokens: tuple(models) for tokens, models in bounds.items()}


def least_call(plan: Plan, targets: Targets) -> LeastCall | None:
    """Return the call that may cost least; None where a price or a bound is unknown, or nothing is to be paid."""
    found = []
    for run in plan.runs:
        entry, endpoint = targets[run.key].model.entry, targets[run.key].model.endpoint
        if not run.usable or not run.tests or not isinstance(endpoint, Endpoint):
            continue
        if run.open_ended:
            return None  # a pack states bounds of its own
        price = token_price(entry.price, endpoint)
        tokens = entry.sampling.max_tokens or entry.budget_tokens
        if price is None or tokens is None:
            return None
        prompt = run.prompt_tokens * CHARACTERS_PER_TOKEN // run.tests  # as many tokens as it may have
        found.append(LeastCall(entry.id, tokens, (price.input * prompt + price.output * tokens) / 1e6))
    return min(found, key=lambda call: call.usd, default=None)


def rounded_up(usd: float) -> str:
    """Return a sum for an option: two digits that count, and a little more than asked for."""
    unit = 10.0 ** (math.floor(math.log10(usd)) - 1)
    return f"{math.ceil(usd * 1.05 / unit) * unit:.10f}".rstrip("0").rstrip(".")
