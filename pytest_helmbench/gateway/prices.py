"""Prices of calls: as an answer states them, and by the list, without a network."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.model import Price
from pytest_helmbench.core.outcome import Usage
from pytest_helmbench.gateway.providers.endpoints import Endpoint, is_loopback
from pytest_helmbench.gateway.providers.provider import PricePlace, Provider, amount, credible_usd

if TYPE_CHECKING:
    from genai_prices.types import PriceCalculation

HALF = 0.5
"""The part of a single price that a call in a batch is assumed to cost, where no list has a price for it."""
_IN_BATCH = {"processing": "batch"}
_SAMPLE_TOKENS = 1_000  # below every step of a tiered price
_MOST_TOKENS = 10**9  # of a call; no model takes or writes more


_PLACES = ("usage", "usagemetadata", "xgroq", "meta")
"""Where answers state what they count, in small letters without signs; else beside their text."""
_COUNTS: Mapping[str, tuple[str, ...]] = {
    "prompt": ("prompttokens", "inputtokens", "prompttokencount", "inputtokencount", "promptevalcount"),
    "completion": (
        "completiontokens",
        "outputtokens",
        "candidatestokencount",
        "outputtokencount",
        "evalcount",
    ),
    "total": ("totaltokens", "totaltokencount"),
    "read": (
        *("cachedtokens", "cachereadinputtokens", "cachereadtokens", "cachedinputtokens"),
        *("cachedcontenttokencount", "promptcachehittokens"),
    ),
    "written": (
        "cachecreationinputtokens",
        "cachewriteinputtokens",
        "cachewritetokens",
        "cachecreationtokens",
    ),
    "thought": ("reasoningtokens", "thoughtstokencount", "thinkingtokens"),
}
"""Names of counts, the first that is there; a name that is in no row says nothing."""
_KINDS = {name: kind for kind, names in _COUNTS.items() for name in names}
_READ_BESIDE = "cachereadinputtokens"
_BESIDE_PROMPT = ("cachecreationinputtokens", "cachewriteinputtokens", _READ_BESIDE)
"""Counts that stand beside the prompt's, as Anthropic has them."""
_COST_HEADER = re.compile(r"x-(?:[\w-]+-)?(?:response-|request-|total-)?cost(?:-usd)?")
_MOST_NESTED = 3
_FREE = Price(0.0, 0.0)


def stated_usage(document: JsonObject, headers: Mapping[str, str], provider: Provider) -> Usage:
    """Return the tokens and the cost that an answer states; None for anything but a number.

    Args:
        document: As decoded.
        headers: Names in lower case; a proxy may state the cost there.
        provider: Who answered.
    """
    top = {_plain(name): value for name, value in document.items()}
    stated = next((value for name in _PLACES if isinstance(value := top.get(name), dict) and value), document)
    flat = dict(_flat(stated, _MOST_NESTED if stated is document else 0))
    stated_by_kind: dict[str, list[JsonValue]] = {}
    for name, kind in _KINDS.items():
        if name in flat:
            stated_by_kind.setdefault(kind, []).append(flat[name])
    counts = {kind: _count(next(filter(None, values), values[0])) for kind, values in stated_by_kind.items()}
    asked, in_all = counts.get("prompt"), counts.get("total")
    names_beside = [name for name in _BESIDE_PROMPT if name in flat]
    beside, doubtful = sum([_count(flat[name]) or 0 for name in names_beside]), False
    if asked is not None and "prompttokens" not in flat and "inputtokens" in flat:
        asked, beside = asked + beside, 0
    completion = _billed(asked, counts.get("completion"), in_all)
    cost_usd = _stated_cost(stated, headers, provider)
    # Counts that contradict each other are read as they cost most, where the answer does not state its cost.
    if (
        cost_usd is None
        and asked is not None
        and (beside > asked or (beside and in_all is None and names_beside != [_READ_BESIDE]))
    ):
        asked, doubtful = asked + beside, True
    thought = counts.get("thought") or 0
    if cost_usd is None and completion is not None and thought > completion:
        completion, doubtful = completion + thought, True
    return Usage(
        prompt_tokens=asked,
        completion_tokens=completion,
        upper_bound=doubtful,
        cached_tokens=counts.get("read"),
        written_tokens=counts.get("written"),
        reasoning_tokens=counts.get("thought"),
        cost_usd=cost_usd,
    )


def _stated_cost(stated: JsonObject, headers: Mapping[str, str], provider: Provider) -> float | None:
    """Return the cost that an answer states; a proxy that does not know one says 0 in its header."""
    cost = provider.own_cost(stated)
    named = (value for name, value in headers.items() if _COST_HEADER.fullmatch(name))
    try:
        return credible_usd(amount(float(next(named, "")))) or None if cost is None else cost
    except ValueError:
        return None


@functools.lru_cache(maxsize=256)
def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")


def _flat(stated: JsonObject, depth: int) -> Iterator[tuple[str, JsonValue]]:
    """Yield names and numbers of a mapping and of those in it; what stands further out comes last, and wins."""
    for value in reversed(list(stated.values())) if depth < _MOST_NESTED else ():
        if isinstance(value, dict):
            yield from _flat(value, depth + 1)
    yield from ((_plain(name), value) for name, value in stated.items() if isinstance(value, int | float))


def _count(value: JsonValue) -> int | None:
    number = amount(value)
    return int(number) if number is not None and number.is_integer() and number <= _MOST_TOKENS else None


def _billed(prompt: int | None, completion: int | None, in_all: int | None) -> int | None:
    """Return the tokens of a completion: some providers count what was thought in the total alone, and bill it."""
    if prompt is None or in_all is None:
        return completion
    return max(completion or 0, in_all - prompt)


def token_price(entry_price: Price | None, endpoint: Endpoint) -> Price | None:
    """Return USD per million tokens for estimates, or None when it is unknown.

    Args:
        entry_price: `price` of models.yml; it goes before the list, or raises it.
        endpoint: Baselines and model servers on this machine are free.
    """
    if entry_price is not None and not entry_price.only_raises:
        return entry_price
    return _higher(entry_price, _known_price(endpoint))


def is_confirmed(entry_price: Price, endpoint: Endpoint) -> bool:
    """Return whether a price is the user's word, or that of a benchmark for a model whose least price is known."""
    return not entry_price.only_raises or _known_price(endpoint) is not None


def _known_price(endpoint: Endpoint) -> Price | None:
    """Return the published price of a model."""
    if _is_free(endpoint):
        return _FREE
    if _is_unlisted(endpoint):
        return None
    return _listed_price(endpoint.server.price_places(endpoint.wire_model, endpoint.base_url))


def _higher(one: Price | None, other: Price | None) -> Price | None:
    if one is None or other is None:
        return one or other
    written = max(one.cache_write or one.input, other.cache_write or other.input)
    dearest = max(one.input, other.input)
    return Price(dearest, max(one.output, other.output), cache_write=written if written > dearest else None)


def context_tokens(endpoint: Endpoint) -> int | None:
    """Return how many tokens prompt and completion of a model may have together, or None when it is unknown."""
    if _is_free(endpoint) or _is_unlisted(endpoint):
        return None
    place = _first_priced(endpoint.server.price_places(endpoint.wire_model, endpoint.base_url))
    return None if place is None else _calculated(place).model.context_window


def batch_share(entry_price: Price | None, endpoint: Endpoint) -> float | None:
    """Return the part of the price of a single call that one in a batch costs at most; None where no list says it.

    Args:
        entry_price: `price` of models.yml; see `token_price`.
        endpoint: Who is asked.
    """
    if (entry_price is not None and not entry_price.only_raises) or _is_unlisted(endpoint):
        return None
    place = _first_priced(endpoint.server.price_places(endpoint.wire_model, endpoint.base_url))
    if place is None or not _lists_batches(place):
        return None
    singly, batched = (_calculated(place, batched=one) for one in (False, True))
    prices = (singly.input_price, batched.input_price), (singly.output_price, batched.output_price)
    return float(max((in_batch / alone for alone, in_batch in prices if alone), default=1))


def price_of(
    usage: Usage,
    entry_price: Price | None,
    endpoint: Endpoint,
    provider_model: str | None,
    *,
    batched: bool = False,
) -> float | None:
    """Return the USD of one call by its tokens; None when price or tokens are unknown.

    Args:
        usage: Its own `cost_usd` is not looked at.
        entry_price: `price` of models.yml; it goes before the list, or raises it.
        endpoint: Who was asked.
        provider_model: Who answered; goes before the model that was asked, where the list knows it.
        batched: It was in a batch.
    """
    if entry_price == _FREE or (entry_price is None and _is_free(endpoint)):
        return 0.0
    if usage.prompt_tokens is None or usage.completion_tokens is None:
        return None
    # A count above the whole is a provider's slip, which the list would not forgive.
    read = min(usage.cached_tokens or 0, usage.prompt_tokens)
    written = min(usage.written_tokens or 0, usage.prompt_tokens - read)
    tokens = (usage.prompt_tokens, usage.completion_tokens, read, written)
    stated = None
    if entry_price is not None:
        stated = entry_price.usd(*tokens) * (HALF if batched else 1)
        if not entry_price.only_raises or _is_free(endpoint):
            return stated
    models = () if _is_unlisted(endpoint) else filter(None, (provider_model, endpoint.wire_model))
    for model in models:
        place = _first_priced(endpoint.server.price_places(model, endpoint.base_url))
        if place is not None:
            listed = float(_calculated(place, tokens, batched=batched).total_price)
            return max(listed * (HALF if batched and not _lists_batches(place) else 1), stated or 0.0)
    return stated


def _is_free(endpoint: Endpoint) -> bool:
    host = urlsplit(endpoint.base_url).hostname or ""
    return endpoint.server.embedded or (endpoint.server.local and is_loopback(host))


def _is_unlisted(endpoint: Endpoint) -> bool:
    """Return whether no list can know a model: it is asked on this machine, by a name without a vendor."""
    return "/" not in endpoint.wire_model and is_loopback(urlsplit(endpoint.base_url).hostname or "")


@functools.lru_cache(maxsize=1024)
def _listed_price(places: tuple[PricePlace, ...]) -> Price | None:
    """Return USD per million tokens of a model, or None when the list knows it at none of its places."""
    place = _first_priced(places)
    if place is None:
        return None
    found = _calculated(place, (_SAMPLE_TOKENS, _SAMPLE_TOKENS, 0, 0))
    written = _calculated(place, (_SAMPLE_TOKENS, 0, 0, _SAMPLE_TOKENS)).input_price
    per_million = 1_000_000 // _SAMPLE_TOKENS
    return Price(
        float(found.input_price * per_million),
        float(found.output_price * per_million),
        cache_write=float(written * per_million) if written > found.input_price else None,
    )


@functools.lru_cache(maxsize=1024)
def _first_priced(places: tuple[PricePlace, ...]) -> PricePlace | None:
    """Return the first place where the list knows what a model costs, or None."""
    return next((place for place in places if _has_price(place)), None)


def _has_price(place: PricePlace) -> bool:
    try:
        price = _calculated(place).model_price
    except LookupError:
        return False
    # A model that is listed without figures is not free, unless its name says so.
    known = price.input_mtok is not None and price.output_mtok is not None
    return known or place.model.endswith(":free")


def _lists_batches(place: PricePlace) -> bool:
    variants = _calculated(place).model.price_variants or ()
    return any(variant.when == _IN_BATCH for variant in variants)


def _calculated(
    place: PricePlace, tokens: tuple[int, int, int, int] = (1, 1, 0, 0), *, batched: bool = False
) -> PriceCalculation:
    """Return what the list says of tokens: see `Price.usd` for what they are."""
    import genai_prices  # takes 0.2 s: where a price is looked up

    names = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
    used = genai_prices.Usage(**dict(zip(names, tokens, strict=True)))
    context = _IN_BATCH if batched else None
    if place.api_url is not None:
        return genai_prices.calc_price(
            used, place.model, provider_api_url=place.api_url, price_context=context
        )
    return genai_prices.calc_price(used, place.model, provider_id=place.provider_id, price_context=context)
