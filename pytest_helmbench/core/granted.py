"""Rights that the user granted: where keys go, what runs, and what it may reach. A manifest never widens them.

pytest imports the module whenever it starts, so it imports nothing of ours but `core/light_dataclass.py`.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pytest_helmbench.core.light_dataclass import dataclass

T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Granted(Generic[T_co]):
    """A value that the user stated, or the program's own default where the user stated none.

    Code that gives rights takes one, so mypy refuses text of a manifest there. Only the modules that read the user's
    options make one: `tests/fast/test_granted.py` holds their list, `docs/trust.md` explains it.
    """

    value: T_co

    def __bool__(self) -> bool:
        """Return the truth of the value: a permission that the user denied is false."""
        return bool(self.value)


NOT_ALLOWED: Granted[bool] = Granted(value=False)
"""A permission that was not given."""

NOTHING_NAMED: Granted[tuple[str, ...]] = Granted(())
"""A list of names without any."""
