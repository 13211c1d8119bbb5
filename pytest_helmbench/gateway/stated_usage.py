"""Usage as an answer states it: tokens and cost."""

from __future__ import annotations

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.providers.provider import Provider, amount

__all__ = ["stated_usage"]

_MOST_TOKENS = 10**9  # of a call; no model takes or writes more


def stated_usage(value: JsonValue, provider: Provider) -> Usage:
    """Return the tokens and the cost that an answer states; None for what is no number.

    Args:
        value: Its `usage`.
        provider: Who answered.
    """
    if not isinstance(value, dict):
        return Usage()
    prompt = value.get("prompt_tokens_details")
    completion = value.get("completion_tokens_details")
    asked, written, in_all = (
        _count(value.get(f"{name}_tokens")) for name in ("prompt", "completion", "total")
    )
    return Usage(
        prompt_tokens=asked,
        completion_tokens=_billed(asked, written, in_all),
        cached_tokens=_count(prompt.get("cached_tokens")) if isinstance(prompt, dict) else None,
        reasoning_tokens=_count(completion.get("reasoning_tokens")) if isinstance(completion, dict) else None,
        cost_usd=provider.own_cost(value),
    )


def _count(value: JsonValue) -> int | None:
    number = amount(value)
    return int(number) if number is not None and number.is_integer() and number <= _MOST_TOKENS else None


def _billed(prompt: int | None, completion: int | None, in_all: int | None) -> int | None:
    """Return the tokens of a completion: some providers count what was thought in the total alone, and bill it."""
    if prompt is None or completion is None or in_all is None:
        return completion
    return max(completion, in_all - prompt)
