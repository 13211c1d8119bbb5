"""The price list: what hosted models cost. Imported where a price is looked up, since it takes 0.2 s."""

from __future__ import annotations

import functools

from genai_prices import Usage as ListUsage
from genai_prices import calc_price
from genai_prices.types import PriceCalculation

from pytest_helmbench.core.model import Price
from pytest_helmbench.gateway.providers.provider import PricePlace

_SAMPLE_TOKENS = 1_000  # below every step of a tiered price


@functools.lru_cache(maxsize=1024)
def listed_price(places: tuple[PricePlace, ...]) -> Price | None:
    """Return USD per million tokens of a model, or None when the list knows it at none of the places."""
    place = _first_priced(places)
    if place is None:
        return None
    found = _calculate(ListUsage(input_tokens=_SAMPLE_TOKENS, output_tokens=_SAMPLE_TOKENS), place)
    per_million = 1_000_000 // _SAMPLE_TOKENS
    return Price(float(found.input_price * per_million), float(found.output_price * per_million))


@functools.lru_cache(maxsize=1024)
def listed_context(places: tuple[PricePlace, ...]) -> int | None:
    """Return the size of a model's window in tokens, or None when the list does not know it."""
    place = _first_priced(places)
    if place is None:
        return None
    return _calculate(ListUsage(input_tokens=1, output_tokens=1), place).model.context_window


def listed_cost(places: tuple[PricePlace, ...], tokens: tuple[int, int, int]) -> float | None:
    """Return the USD of one call, or None when the list does not know the model.

    Args:
        places: Where it may be known, the best first.
        tokens: Of the prompt, of these from the provider's cache, of the completion.
    """
    place = _first_priced(places)
    if place is None:
        return None
    prompt, cached, completion = tokens
    used = ListUsage(input_tokens=prompt, cache_read_tokens=cached, output_tokens=completion)
    return float(_calculate(used, place).total_price)


@functools.lru_cache(maxsize=1024)
def _first_priced(places: tuple[PricePlace, ...]) -> PricePlace | None:
    """Return the first place where the list knows what a model costs, or None."""
    return next((place for place in places if _has_price(place)), None)


def _has_price(place: PricePlace) -> bool:
    try:
        found = _calculate(ListUsage(input_tokens=1, output_tokens=1), place)
    except LookupError:
        return False
    # A model that is listed without figures is no free model, unless it says so.
    known = found.model_price.input_mtok is not None and found.model_price.output_mtok is not None
    return known or place.model.endswith(":free")


def _calculate(tokens: ListUsage, place: PricePlace) -> PriceCalculation:
    if place.api_url is not None:
        return calc_price(tokens, place.model, provider_api_url=place.api_url)
    return calc_price(tokens, place.model, provider_id=place.provider_id)
