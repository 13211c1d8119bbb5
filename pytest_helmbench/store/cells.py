"""Values on their way into a column: what SQLite cannot hold becomes what it can."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isfinite

from pytest_helmbench.core.scrub import without_tokens

__all__ = ["as_json", "foreign_json", "foreign_text", "safe_text", "whole_number"]

_LARGEST = 2**63 - 1


def safe_text(text: str) -> str:
    """Return text without lone surrogates and NUL: the first do not encode, the second cuts SQL strings."""
    return text.encode("utf-8", "replace").decode("utf-8").replace("\0", "\ufffd")


def whole_number(value: int | None) -> int | None:
    """Return the number, or None (unknown) where a provider sent one that fits no column."""
    return value if value is None or -_LARGEST <= value <= _LARGEST else None


def as_json(value: object) -> str:
    """Return compact JSON in ASCII (so that no surrogate gets in); dataclasses become objects.

    Raises:
        TypeError: Something in it is no JSON type.
    """
    return json.dumps(value, default=_plain, separators=(",", ":"))


def foreign_text(text: str) -> str | None:
    """Return what a pack has written, without the relay's tokens; NULL for nothing.

    The tokens are of no use once their item has ended, but they look like keys.
    """
    return without_tokens(safe_text(text)) if text else None


def foreign_json(value: object) -> str:
    """Return what a pack has said as JSON that SQLite can read, without the relay's tokens.

    What is no finite number becomes null; what is nested too deeply to be written is replaced by a word of that.
    """
    try:
        try:
            text = json.dumps(value, default=_plain, separators=(",", ":"), allow_nan=False)
        except ValueError:
            text = as_json(_finite(value))
    except RecursionError:
        text = as_json({"lost": "nested too deeply to be kept"})
    return without_tokens(text)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def _plain(value: object) -> object:
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{value!r} is no JSON value")
