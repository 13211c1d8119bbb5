"""OpenAI's own server, and those of Azure that speak as it does."""

from __future__ import annotations

from dataclasses import replace

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.providers.provider import PricePlace, Provider

__all__ = ["AZURE", "OPENAI"]


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
