"""The user's word: where keys go, what is run, and with which rights. A manifest never widens them.

pytest imports the module whenever it starts, so it imports nothing of ours but `core/light_dataclass.py`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pytest_helmbench.core.light_dataclass import dataclass

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class UsersWord(Generic[T_co]):
    """A value of which it is known that the user has said it, or the program itself where he has said nothing.

    Whatever gives rights takes one, so that mypy refuses text of a manifest there. It is made where the user's words
    are read, and nowhere else: `tests/fast/test_users_words.py` holds the list, `docs/trust.md` tells it.

    Args:
        value: What was said.
    """

    value: T_co

    def __bool__(self) -> bool:
        """Return whether the value says anything: what was said to be off is off."""
        return bool(self.value)


NOT_ALLOWED: UsersWord[bool] = UsersWord(value=False)
"""A permission that was not given."""

NOTHING_NAMED: UsersWord[tuple[str, ...]] = UsersWord(())
"""A list of names without any."""
