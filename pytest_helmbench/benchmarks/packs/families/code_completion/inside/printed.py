"""The candidate's stdout and stderr: text kept for tests that redirect theirs, dropped otherwise."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Printed"]

_LIMIT = 1 << 20


class Printed:
    """Text that was printed: kept for tests that redirect theirs, dropped otherwise."""

    encoding = "utf-8"
    errors = "strict"
    closed = False

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._room = _LIMIT

    def write(self, text: str) -> int:
        """Keep the text as long as there is room."""
        if not isinstance(text, str):
            raise TypeError("write() argument must be str, not " + type(text).__name__)
        if self._room > 0:
            self._parts.append(text[: self._room])
            self._room -= len(text)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Keep texts one after the other, as long as there is room."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Do nothing: there is nothing behind."""

    def isatty(self) -> bool:
        """Return False: no terminal stands behind."""
        return False

    def writable(self) -> bool:
        """Return True, as programs expect of stdout."""
        return True

    def taken(self) -> str:
        """Return what was written since the last time."""
        text = "".join(self._parts)
        self._parts.clear()
        self._room = _LIMIT
        return text
