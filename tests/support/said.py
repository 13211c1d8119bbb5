"""The user in tests: what he says gives rights."""

from __future__ import annotations

from typing import TypeVar

from pytest_helmbench.core.users_word import UsersWord

__all__ = ["said"]

T = TypeVar("T")


def said(value: T | None) -> UsersWord[T] | None:
    """Return what the user has said, or nothing."""
    return None if value is None else UsersWord(value)
