"""A server of the user's own with several models: it would have to swap them, so it is asked for one at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

__all__ = ["LocalServer"]


class _Model(Protocol):
    """A model that is served."""

    paused_until: float

    @property
    def waiting(self) -> Sequence[object]:
        """Its calls that wait."""


class LocalServer:
    """Calls to one server, whatever the model."""

    def __init__(self) -> None:
        self._most = 1
        self._in_flight = 0
        self._loaded: _Model | None = None

    def allow(self, most: int) -> None:
        """Let so many calls be in flight; the largest number of its models counts."""
        self._most = max(self._most, most)

    def has_room_for(self, model: _Model, now: float) -> bool:
        """Return whether a call of a model may go; the one that is loaded goes on while it has calls to make."""
        if self._in_flight >= self._most:
            return False
        loaded = self._loaded
        if loaded is None or loaded is model:
            return True
        return not self._in_flight and (not loaded.waiting or loaded.paused_until > now)

    def grant(self, model: _Model) -> None:
        """Take note that a call goes."""
        self._in_flight += 1
        self._loaded = model

    def settle(self) -> None:
        """Take note that a call has come back."""
        self._in_flight -= 1
