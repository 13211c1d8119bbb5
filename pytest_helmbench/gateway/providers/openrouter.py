"""OpenRouter: where every hosted model is asked that is not asked at its vendor."""

from __future__ import annotations

from collections.abc import Mapping

from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.providers.provider import PricePlace, Provider, vendor_places

__all__ = ["OPENROUTER"]

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
    require_parameters=True,
)
