"""Values on their way into a column: what SQLite cannot hold becomes what it can."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

__all__ = ["as_json", "safe_text", "whole_number"]

_LARGEST = 2**63 - 1


def safe_text(text: str) -> str:
    """Return text without lone surrogates and NUL: the first do not encode, the second cuts SQL strings."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def whole_number(value: int | None) -> int | None:
    """Return the number, or None (unknown) where a provider sent one that fits no column."""
    return value if value is None or -_LARGEST <= value <= _LARGEST else None


def as_json(value: Any) -> str:
    """Return compact JSON in ASCII (so that no surrogate gets in); dataclasses become objects.

    Raises:
        TypeError: Something in it is no JSON type.
    """
    return json.dumps(value, default=_plain, separators=(",", ":"))


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is no JSON value")
