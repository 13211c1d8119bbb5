"""The servers there are: hosted ones, those of the user, any other; which one an id or an address leads to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.providers.provider import PricePlace, Provider, vendor_places


@dataclass(frozen=True, slots=True)
class _AnyServer(Provider):
    def at(self, host: str) -> Provider:
        """See `Provider.at`."""
        return replace(self, name=host)


ANY_SERVER = _AnyServer(
    "",
    # Those of servers that often stand behind a proxy, and whatever stands in a header.
    key_shape=r"\b(?:pk|gsk|xai|key)[-_][\w*.…-]{8,}|\bBearer\s+\S+|\bAIza[\w-]{20,}",
)


@dataclass(frozen=True, slots=True)
class _Embedded(Provider):
    def wire_model(self, model_id: str) -> str:
        """See `Provider.wire_model`."""
        return model_id


EMBEDDED = _Embedded("baseline", prefix="baseline", embedded=True)


@dataclass(frozen=True, slots=True)
class _ModelServer(Provider):
    def at(self, _host: str) -> None:
        """See `Provider.at`: only the prefix tells, for they may be anywhere and look alike."""


@dataclass(frozen=True, slots=True)
class _Ollama(_ModelServer):
    def unknown_model_hint(self, model: str, _base_url: str) -> str:
        """See `Provider.unknown_model_hint`."""
        return f"ollama pull {model}"


def _url(port: int) -> str:
    return f"http://localhost:{port}/v1"


MODEL_SERVERS: tuple[Provider, ...] = (
    _Ollama("ollama", prefix="ollama", base_url=_url(11434), local=True),
    _ModelServer("lmstudio", prefix="lmstudio", base_url=_url(1234), local=True),
    _ModelServer("vllm", prefix="vllm", base_url=_url(8000), local=True),
    _ModelServer("llamacpp", prefix="llamacpp", base_url=_url(8080), local=True),
)


@dataclass(frozen=True, slots=True)
class _OpenAI(Provider):
    def price_places(self, model: str, _base_url: str) -> tuple[PricePlace, ...]:
        """See `Provider.price_places`."""
        return (PricePlace(model, provider_id="openai"),)


@dataclass(frozen=True, slots=True)
class _Azure(Provider):
    def at(self, host: str) -> Provider | None:
        """See `Provider.at`: every customer has a host of their own."""
        return replace(self, name=host) if host.endswith(".openai.azure.com") else None


OPENAI = _OpenAI(
    "openai",
    prefix="openai",
    base_url="https://api.openai.com/v1",
    key_variable="OPENAI_API_KEY",
    address_variable="OPENAI_BASE_URL",
    key_shape=r"\bsk[-_][\w*.…-]{8,}",
    routed=True,
    max_tokens_key="max_completion_tokens",
)
AZURE = _Azure("azure", max_tokens_key="max_completion_tokens")


_HOST = "openrouter.ai"


@dataclass(frozen=True, slots=True)
class _OpenRouter(Provider):
    def at(self, host: str) -> Provider | None:
        """See `Provider.at`: its regions have hosts below its own."""
        return self if host == _HOST or host.endswith(f".{_HOST}") else None

    def own_headers(self) -> Mapping[str, str]:
        """See `Provider.own_headers`: it shows who asks by title."""
        return {"X-Title": "pytest-helmbench"}

    def complete_request(self, body: dict[str, JsonValue], *, with_schema: bool) -> None:
        """See `Provider.complete_request`: only servers that know schemas, and the cost with every reply."""
        if with_schema:
            body["provider"] = {"require_parameters": True, **_block(body, "provider")}
        body["usage"] = {**_block(body, "usage"), "include": True}

    def price_places(self, model: str, _base_url: str) -> tuple[PricePlace, ...]:
        """See `Provider.price_places`."""
        return PricePlace(model, provider_id="openrouter"), *vendor_places(model)


def _block(body: JsonObject, name: str) -> JsonObject:
    value = body.get(name)
    return value if isinstance(value, dict) else {}


OPENROUTER = _OpenRouter(
    "openrouter",
    base_url=f"https://{_HOST}/api/v1",
    key_variable="OPENROUTER_API_KEY",
    key_shape=r"\bsk-or-[\w*.…-]{8,}",
)


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
