"""The embedded baselines as a provider: they answer inside this process, without a server or a key."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.gateway.providers.provider import Provider

__all__ = ["EMBEDDED"]


@dataclass(frozen=True, slots=True)
class _Embedded(Provider):
    def wire_model(self, model_id: str) -> str:
        """See `Provider.wire_model`."""
        return model_id


EMBEDDED = _Embedded("baseline", prefix="baseline", embedded=True)
