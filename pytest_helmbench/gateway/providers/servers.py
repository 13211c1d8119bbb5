"""The known servers: hosted, local and any other, and which of them a model id or an address leads to."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pytest_helmbench.core.json_types import JsonValue, decoded_json, json_object
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.providers.provider import Provider


@dataclass(frozen=True, slots=True)
class _Azure(Provider):
    def auth_headers(self, key: str) -> Mapping[str, str]:
        """Return a token as everywhere, but a key in `api-key`: older addresses of Azure take it nowhere else."""
        return Provider.auth_headers(self, key) if key.startswith("eyJ") else {"api-key": key}


@dataclass(frozen=True, slots=True)
class _OpenRouter(Provider):
    def complete_request(self, body: dict[str, JsonValue], *, with_schema: bool) -> None:
        """Ask for servers that know schemas, and for the cost with every reply."""
        if with_schema:
            body["provider"] = {"require_parameters": True, **json_object(body.get("provider"))}
        body["usage"] = {**json_object(body.get("usage")), "include": True}


ANY_SERVER = Provider(
    "",
    # Keys of servers that often stand behind a proxy, and anything in an authorization header.
    key_shape=r"\b(?:pk|gsk|xai|key)[-_][\w*.…-]{8,}|\bBearer\s+\S+|\bAIza[\w-]{20,}",
)
EMBEDDED = Provider("baseline", prefix="baseline", embedded=True)
MODEL_SERVERS: tuple[Provider, ...] = (
    Provider("ollama", prefix="ollama", base_url="http://localhost:11434/v1", local=True, pull="ollama pull"),
    Provider("lmstudio", prefix="lmstudio", base_url="http://localhost:1234/v1", local=True),
    Provider("vllm", prefix="vllm", base_url="http://localhost:8000/v1", local=True),
    Provider("llamacpp", prefix="llamacpp", base_url="http://localhost:8080/v1", local=True),
)
OPENAI = Provider(
    "openai",
    prefix="openai",
    base_url="https://api.openai.com/v1",
    hosts=("//api.openai.com",),
    key_variable="OPENAI_API_KEY",
    address_variable="OPENAI_BASE_URL",
    key_shape=r"\bsk[-_][\w*.…-]{8,}",
    routed=True,
    list_id="openai",
    max_tokens_key="max_completion_tokens",
    batch="openai",
)
AZURE = _Azure(
    "",
    hosts=(".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com"),
    max_tokens_key="max_completion_tokens",
    batch="openai",
)
GROQ = Provider("", hosts=("//api.groq.com",), batch="openai")
OPENROUTER = _OpenRouter(
    "openrouter",
    base_url="https://openrouter.ai/api/v1",
    hosts=("//openrouter.ai", ".openrouter.ai"),
    list_id="openrouter",
    title_header="X-Title",
    key_variable="OPENROUTER_API_KEY",
    key_shape=r"\bsk-or-[\w*.…-]{8,}",
)
ROUTER = OPENROUTER
"""The provider of hosted models whose prefix names no other."""
_HIDDEN = "[key]"
_PROVIDERS: tuple[Provider, ...] = (EMBEDDED, OPENAI, OPENROUTER, AZURE, GROQ, *MODEL_SERVERS)
_BY_PREFIX = {provider.prefix: provider for provider in _PROVIDERS if provider.prefix}
_LIKE_A_KEY = re.compile("|".join(one.key_shape for one in (*_PROVIDERS, ANY_SERVER) if one.key_shape))


def provider_of(model_id: str) -> Provider | None:
    """Return the provider that the prefix of an id names, or None."""
    return _BY_PREFIX.get(model_id.partition("/")[0])


def provider_at(host: str) -> Provider:
    """Return the provider that answers at a host; one that has no name of its own goes by the host's."""
    found = next((one for one in _PROVIDERS if one.hosts and f"//{host}".endswith(one.hosts)), ANY_SERVER)
    return found if found.name else replace(found, name=host)


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


def stated_slots(base_url: str, get: Callable[[str], bytes]) -> int | None:
    """Return how many calls a server takes at a time, as llama.cpp's states them; None where a server does not.

    Args:
        get: Returns the body of an answer to a GET.

    Source: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md (`GET /props`)
    """
    properties = decoded_json(get(f"{base_url.partition('?')[0].removesuffix('/v1')}/props"))
    slots = json_object(properties).get("total_slots")
    return slots if type(slots) is int and slots > 0 else None


def without_keys(text: str, secrets: Iterable[str] = ()) -> str:
    """Return a text without what is a key, or looks like one of any provider."""
    for secret in secrets:
        text = text.replace(secret, _HIDDEN)
    return _LIKE_A_KEY.sub(_HIDDEN, text)
