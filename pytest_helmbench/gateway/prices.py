"""What calls cost by list price, without a network. The provider's own figure goes first and is not known here."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from urllib.parse import urlsplit

from genai_prices import Usage as ListUsage
from genai_prices import calc_price
from genai_prices.types import PriceCalculation

from pytest_helmbench.bench.model import Price
from pytest_helmbench.bench.outcome import Usage
from pytest_helmbench.gateway.providers import Endpoint, is_loopback

__all__ = ["list_price", "price_of", "token_price"]

_FREE = Price(0.0, 0.0)
_SAMPLE_TOKENS = 1_000  # below every step of a tiered price


def token_price(entry_price: Price | None, endpoint: Endpoint) -> Price | None:
    """Return USD per million tokens for estimates, or None when nobody knows.

    Args:
        entry_price: `price` of models.yml; it goes before the list.
        endpoint: Baselines and model servers on this machine are free.
    """
    if entry_price is not None:
        return entry_price
    if _is_free(endpoint):
        return _FREE
    return _listed(endpoint.provider, endpoint.base_url, endpoint.wire_model)


def list_price(model_id: str) -> Price | None:
    """Return USD per million tokens of a hosted model that has no key yet, or None when nobody knows."""
    return _listed("openrouter", "", model_id)


def price_of(
    usage: Usage, entry_price: Price | None, endpoint: Endpoint, provider_model: str | None
) -> float | None:
    """Return the USD of one call by its tokens; None when price or tokens are unknown.

    Args:
        usage: Its own `cost_usd` is not looked at.
        entry_price: `price` of models.yml; it goes before the list. Cached tokens cost as others do.
        endpoint: Who was asked.
        provider_model: Who answered; goes before the model that was asked, where the list knows it.
    """
    if entry_price is None and _is_free(endpoint):
        return 0.0
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    if entry_price is not None:
        return (entry_price.input * usage.prompt_tokens + entry_price.output * usage.completion_tokens) / 1e6
    # A count above the whole is a provider's slip, which the list would not forgive.
    cached = min(usage.cached_tokens or 0, usage.prompt_tokens)
    tokens = ListUsage(
        input_tokens=usage.prompt_tokens, cache_read_tokens=cached, output_tokens=usage.completion_tokens
    )
    for model in (provider_model, endpoint.wire_model):
        reference = None if model is None else _reference(endpoint.provider, endpoint.base_url, model)
        if reference is not None:
            return float(_calculate(tokens, reference).total_price)
    return None


@dataclass(frozen=True, slots=True)
class _Reference:
    """A place in the price list: by provider, by address, or by the model's name alone."""

    model: str
    provider_id: str | None = None
    api_url: str | None = None


def _is_free(endpoint: Endpoint) -> bool:
    host = urlsplit(endpoint.base_url).hostname or ""
    return endpoint.provider == "baseline" or (endpoint.local and is_loopback(host))


@functools.lru_cache(maxsize=1024)
def _listed(provider: str, base_url: str, model: str) -> Price | None:
    """Return the list price of a model, or None when the list has none."""
    reference = _reference(provider, base_url, model)
    if reference is None:
        return None
    found = _calculate(ListUsage(input_tokens=_SAMPLE_TOKENS, output_tokens=_SAMPLE_TOKENS), reference)
    per_million = 1_000_000 // _SAMPLE_TOKENS
    return Price(float(found.input_price * per_million), float(found.output_price * per_million))


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
