"""Short metadata values that rows share, so that scores can be told by group."""

from __future__ import annotations

from pytest_helmbench.core.json_types import JsonObject, JsonValue

__all__ = ["Groups", "short_value"]

Pairs = tuple[tuple[str, str], ...]

_MOST_KEYS = 12
_MOST_VALUES = 64
_LONGEST = 80  # characters


def short_value(value: JsonValue) -> str | None:
    """Return a metadata value as text; None for one that names no group: long, empty, no text or whole number."""
    if type(value) is str:
        text = value
    elif type(value) is int or type(value) is bool:
        text = str(value).lower()
    else:
        return None
    return text if 0 < len(text) <= _LONGEST else None


class Groups:
    """Gathers groups while rows are read. Each distinct value is held once, however many rows have it.

    A group is a key of `metadata` whose values are short texts, whole numbers or true and false. Keys beyond the
    twelfth, and keys with more than 64 values (row numbers, URLs), group nothing.
    """

    def __init__(self) -> None:
        self._values: dict[str, dict[str, tuple[str, str]]] = {}
        self._crowded: set[str] = set()
        self._known: dict[Pairs, Pairs] = {(): ()}

    def of(self, metadata: JsonObject) -> Pairs:
        """Return the groups of a row as far as they are known by now."""
        found: list[tuple[str, str]] = []
        for key, value in metadata.items():
            if key in self._crowded:
                continue
            text = short_value(value)
            pair = None if text is None else self._pair(key, text)
            if pair is not None:
                found.append(pair)
        pairs = tuple(found)
        return self._known.setdefault(pairs, pairs)

    def final(self, pairs: Pairs) -> Pairs:
        """Return the groups of a row once all rows are read: without keys that turned out to group nothing."""
        if not self._crowded or not pairs:
            return pairs
        left = tuple(pair for pair in pairs if pair[0] not in self._crowded)
        return self._known.setdefault(left, left)

    @property
    def changed(self) -> bool:
        """Whether `final` may differ from what was returned before."""
        return bool(self._crowded)

    def _pair(self, key: str, text: str) -> tuple[str, str] | None:
        values = self._values.get(key)
        if values is None:
            if len(self._values) >= _MOST_KEYS or len(key) > _LONGEST:
                return None
            values = self._values[key] = {}
        pair = values.get(text)
        if pair is None:
            if len(values) >= _MOST_VALUES:
                self._crowded.add(key)
                self._values[key] = {}  # it keeps its place among the twelve
                return None
            pair = values[text] = (key, text)
        return pair
