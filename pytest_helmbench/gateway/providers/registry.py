"""The providers there are: which one an id or an address leads to, and what keys look like."""

from __future__ import annotations

import re
from collections.abc import Iterable

from pytest_helmbench.gateway.providers.any_server import ANY_SERVER
from pytest_helmbench.gateway.providers.embedded import EMBEDDED
from pytest_helmbench.gateway.providers.model_servers import MODEL_SERVERS
from pytest_helmbench.gateway.providers.openai import AZURE, OPENAI
from pytest_helmbench.gateway.providers.openrouter import OPENROUTER
from pytest_helmbench.gateway.providers.provider import Provider

__all__ = ["ROUTER", "is_embedded", "provider_at", "provider_of", "routes", "without_keys"]

_PROVIDERS: tuple[Provider, ...] = (EMBEDDED, OPENAI, OPENROUTER, AZURE, *MODEL_SERVERS)

ROUTER = OPENROUTER
"""Where hosted models are asked whose prefix belongs to no provider."""

_HIDDEN = "[key]"
_BY_PREFIX = {provider.prefix: provider for provider in _PROVIDERS if provider.prefix}
_LIKE_A_KEY = re.compile("|".join(one.key_shape for one in (*_PROVIDERS, ANY_SERVER) if one.key_shape))


def provider_of(model_id: str) -> Provider | None:
    """Return the provider that the prefix of an id names, or None."""
    return _BY_PREFIX.get(model_id.partition("/")[0])


def provider_at(host: str) -> Provider:
    """Return the provider that answers at a host."""
    found = (here for provider in _PROVIDERS if (here := provider.at(host)) is not None)
    return next(found, None) or ANY_SERVER.at(host)


def routes(model_id: str) -> tuple[Provider, ...]:
    """Return the hosted providers where a model can be asked, the preferred one first."""
    vendor = provider_of(model_id)
    if vendor is None or vendor.local or vendor.embedded:
        return (ROUTER,)
    return (ROUTER, vendor) if vendor.routed else (vendor,)


def is_embedded(model_id: str) -> bool:
    """Return whether a model answers inside this process."""
    provider = provider_of(model_id)
    return provider is not None and provider.embedded and "/" in model_id


def without_keys(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without what is a key, or looks like one of any provider.

    Args:
        secrets: That are known.
    """
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return _LIKE_A_KEY.sub(_HIDDEN, text)
