"""Usage: the tokens and the cost of a reply, whoever knows them, and what it means that a budget has cut it."""

from __future__ import annotations

from dataclasses import replace

from pytest_helmbench.core.outcome import Reply, Usage
from pytest_helmbench.gateway.attempt import PreparedCall
from pytest_helmbench.gateway.call import Call
from pytest_helmbench.gateway.faults import Fault, FaultKind
from pytest_helmbench.gateway.prices import price_of
from pytest_helmbench.gateway.providers.provider import credible_usd
from pytest_helmbench.gateway.token_counts import with_estimates
from pytest_helmbench.gateway.wire import ParsedReply

__all__ = ["counted_usage", "cut_by_budget", "priced_usage"]


def counted_usage(request: PreparedCall, parsed: ParsedReply) -> Usage:
    """Return the usage of a reply, with estimates where the provider has counted nothing."""
    if request.call.endpoint.server.embedded:
        return parsed.usage
    return with_estimates(parsed.usage, request.encoded, dict(parsed.message))


def cut_by_budget(call: Call, reply: Reply) -> Fault:
    """Return what a call has brought whose reply ends at the bound that the budget alone has set."""
    return Fault(
        FaultKind.REJECTED,
        None,
        "cut_by_budget",
        f"the reply was cut at {call.entry.budget_tokens} tokens, the bound that --helmbench-max-cost sets where"
        " nobody states one",
        hint="state a bound that is large enough: --helmbench-max-tokens=N, or max_tokens in models.yml",
        usage=reply.usage,
        finish_reason=reply.finish_reason,
    )


def priced_usage(call: Call, usage: Usage, provider_model: str | None) -> Usage:
    """Return the usage with its cost: the provider's own figure, else a price list's, else unknown."""
    if usage.cost_usd is not None:
        return usage
    cost_usd = price_of(usage, call.entry.price, call.endpoint, provider_model)
    return replace(usage, cost_usd=credible_usd(cost_usd))
