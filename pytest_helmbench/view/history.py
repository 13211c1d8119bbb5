"""Changes between versions of what is shown, so that a viewer is sent only what is new to him."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

__all__ = ["History"]

_Key = TypeVar("_Key", bound=Hashable)


class History(Generic[_Key]):
    """When each of some values has changed last."""

    def __init__(self) -> None:
        self._changed: dict[_Key, tuple[int, int]] = {}
        self._lost_at = 0

    def note(self, values: Mapping[_Key, Hashable], version: int) -> None:
        """Take what is shown from a version on.

        Args:
            values: By key, in the order they are shown.
            version: Larger than all before.
        """
        before = self._changed
        if not before.keys() <= values.keys():
            self._lost_at = version
        self._changed = {}
        for key, value in values.items():
            now, known = hash(value), before.get(key)
            self._changed[key] = known if known is not None and known[0] == now else (now, version)

    def since(self, version: int) -> tuple[_Key, ...] | None:
        """Return the keys whose values are newer than a version; None where a value has gone since."""
        if version < self._lost_at:
            return None
        return tuple(key for key, (_, changed) in self._changed.items() if changed > version)
