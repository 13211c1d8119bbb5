"""The provider of every address that no other provider knows, such as one of `--helmbench-base-url`."""

from __future__ import annotations

from dataclasses import replace

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.providers.provider import Provider

__all__ = ["ANY_SERVER"]


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
