"""A model and where its calls go."""

from __future__ import annotations

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.gateway.providers.endpoints import Endpoint, Unusable

__all__ = ["Route"]


@dataclass(frozen=True, slots=True)
class Route:
    """A model and where its calls go.

    Args:
        entry: Everything that was said about the model, overrides applied.
        endpoint: Where it is reached, or why it is not.
    """

    entry: ModelEntry
    endpoint: Endpoint | Unusable

    @property
    def usable(self) -> bool:
        """Whether a call can be made."""
        return not isinstance(self.endpoint, Unusable)
