"""Rights that a user grants in tests."""

from __future__ import annotations

from typing import TypeVar

from pytest_helmbench.core.granted import Granted

__all__ = ["granted"]

T = TypeVar("T")


def granted(value: T | None) -> Granted[T] | None:
    """Return a value as the user grants it; None where the user gives none."""
    return None if value is None else Granted(value)
