"""The price list: what hosted models cost. Imported where a price is looked up, since it takes 0.2 s."""

from __future__ import annotations

import functools
from dataclasses import dataclass

from genai_prices import Usage as ListUsage
from genai_prices import calc_price
from genai_prices.types import PriceCalculation

from pytest_helmbench.core.model import Price

__all__ = ["listed_cost", "listed_price"]

_SAMPLE_TOKENS = 1_000  # below every step of a tiered price


@dataclass(frozen=True, slots=True)
class _Reference:
    """A place in the price list: by provider, by address, or by the model's name alone."""

    model: str
    provider_id: str | None = None
    api_url: str | None = None


@functools.lru_cache(maxsize=1024)
def listed_price(provider: str, base_url: str, model: str) -> Price | None:
    """Return USD per million tokens of a model, or None when the list does not know it."""
    reference = _reference(provider, base_url, model)
    if reference is None:
        return None
    found = _calculate(ListUsage(input_tokens=_SAMPLE_TOKENS, output_tokens=_SAMPLE_TOKENS), reference)
    per_million = 1_000_000 // _SAMPLE_TOKENS
    return Price(float(found.input_price * per_million), float(found.output_price * per_million))


def listed_cost(provider: str, base_url: str, model: str, tokens: tuple[int, int, int]) -> float | None:
    """Return the USD of one call, or None when the list does not know the model.

    Args:
        tokens: Of the prompt, of these from the provider's cache, of the completion.
    """
    reference = _reference(provider, base_url, model)
    if reference is None:
        return None
    prompt, cached, completion = tokens
    used = ListUsage(input_tokens=prompt, cache_read_tokens=cached, output_tokens=completion)
    return float(_calculate(used, reference).total_price)


@functools.lru_cache(maxsize=1024)
def _reference(provider: str, base_url: str, model: str) -> _Reference | None:
    """Return the first place where the list knows what a model costs, or None."""
    vendor, _, name = model.partition("/")
    by_vendor = (_Reference(name, provider_id=vendor),) if name else (_Reference(model),)
    places: tuple[_Reference, ...]
    match provider:
        case "openrouter":
            places = (_Reference(model, provider_id="openrouter"), *by_vendor)
        case "openai":
            places = (_Reference(model, provider_id="openai"),)
        case _:
            # A proxy in front of a vendor: the list of the host where there is one, else the vendor's.
            places = (_Reference(model, api_url=base_url), *by_vendor)
    return next((place for place in places if _has_price(place)), None)


def _has_price(reference: _Reference) -> bool:
    try:
        found = _calculate(ListUsage(input_tokens=1, output_tokens=1), reference)
    except LookupError:
        return False
    # A model that is listed without figures is no free model, unless it says so.
    known = found.model_price.input_mtok is not None and found.model_price.output_mtok is not None
    return known or reference.model.endswith(":free")


def _calculate(tokens: ListUsage, reference: _Reference) -> PriceCalculation:
    if reference.api_url is not None:
        return calc_price(tokens, reference.model, provider_api_url=reference.api_url)
    return calc_price(tokens, reference.model, provider_id=reference.provider_id)
