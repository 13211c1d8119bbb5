"""The interface by which stand-ins ask the candidate on behalf of the tests."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

__all__ = ["Asker"]

_DEEPEST = 50


class Asker:
    """Whoever can ask the candidate; the tester is the one there is."""

    def __init__(self) -> None:
        self.is_talking = False
        """A question is under way: no other may be asked."""
        self._depth = 0

    def ask(self, what: str, *args: object) -> object:
        """Ask, and return the answer or raise what the candidate raised."""
        raise NotImplementedError

    def refuse(self, reason: str, name: tuple[str, str] | None = None) -> NoReturn:
        """End the tests: what they want cannot be said between two processes; see `Verdict.end` for the name."""
        raise NotImplementedError

    def may_swallow(self, error: BaseException) -> bool:
        """Return whether a context manager of the candidate may end an exception that the tests raise in it."""
        raise NotImplementedError

    def blame(self, error: BaseException, line: int, text: str) -> None:
        """Note that an exception is the candidate's."""
        raise NotImplementedError

    def forget(self, number: int) -> None:
        """Tell that nobody speaks of an object any more."""
        raise NotImplementedError

    def remember(self, number: int) -> None:
        """Take it back: the object has come again."""
        raise NotImplementedError

    def have_same_fields(self, one: object, other: object) -> bool:
        """Return whether two objects of the candidate have the same fields, and any; not known of those too deep."""
        fields, others = self.ask("state", one), self.ask("state", other)
        self._depth += 1
        try:
            return bool(fields) and self._depth < _DEEPEST and fields == others
        finally:
            self._depth -= 1
