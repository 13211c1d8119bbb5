"""The user in tests: what he says gives rights."""

from __future__ import annotations

from typing import TypeVar

from pytest_helmbench.core.granted import Granted

__all__ = ["said"]

T = TypeVar("T")


def said(value: T | None) -> Granted[T] | None:
    """Return what the user has said, or nothing."""
    return None if value is None else Granted(value)
