"""Types of a JSON document: what `json.loads` can return, for files and the wire.

A document is narrowed with `isinstance` where it is read; inside the program stand values with types of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

JsonValue: TypeAlias = "str | int | float | bool | list[JsonValue] | dict[str, JsonValue] | None"

JsonObject: TypeAlias = Mapping[str, JsonValue]
"""An object that is only read; `isinstance(value, dict)` narrows a `JsonValue` to it."""


def without_twins(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    """Return an object as `json` decodes it (`object_pairs_hook`).

    Raises:
        ValueError: A key stands twice, so the object says two things.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key stands twice")
    return found
