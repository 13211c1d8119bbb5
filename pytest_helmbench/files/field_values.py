"""Holding single values of a row to the format, and telling what is wrong without showing what is hidden."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from dataclasses import field

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.source import Fault, listed

_MOST_SECONDS = 10_000_000


@dataclass(slots=True)
class RowFaults:
    """The faults of one row, or of a mapping in a file.

    Args:
        line: Of the row.
        line_of: Returns the line of a field, for a file that has one line per field; None for a row.
    """

    line: int
    line_of: Callable[[str], int | None] | None = None
    errors: list[Fault] = field(default_factory=list)
    warnings: list[Fault] = field(default_factory=list)

    def error(self, where: str, message: str, hint: str = "") -> None:
        """File a problem: `where: message`."""
        self.errors.append(Fault(self._line(where), f"{where}: {message}", hint))

    def warn(self, where: str, message: str, hint: str = "", key: str = "") -> None:
        """File something odd but usable; `key` is the one in `where` whose line it stands in."""
        line = self._line(f"{where}.{key}" if key else where)
        self.warnings.append(Fault(line, f"{where}: {message}", hint, usable=True))

    def text(self) -> str:
        """Return all problems with their hints."""
        return "\n".join(
            f"{fault.message}\n  hint: {fault.hint}" if fault.hint else fault.message for fault in self.errors
        )

    def _line(self, where: str) -> int:
        return (self.line_of(where) if self.line_of else None) or self.line


def kind_of(value: object) -> str:
    """Return what kind of value this is, never the value itself: it may be hidden."""
    if value is None:
        return "empty (null)"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "text" if value and not value.isspace() else "blank text"
    return "a list" if isinstance(value, list | tuple) else "an object"


def named(key: object) -> str:
    """Return a key as messages name it, cut where it is long."""
    text = repr(key)
    return text if len(text) <= 60 else f"{text[:56]}…{text[0]}"


def check_text(faults: RowFaults, where: str, value: object) -> None:
    """File anything but text with something in it."""
    if not isinstance(value, str) or not value or value.isspace():
        faults.error(where, f"this is {_no_text(value)}")


def check_texts(faults: RowFaults, where: str, value: object, *, may_be_empty: bool = False) -> None:
    """File anything but a list of texts with something in them."""
    if not isinstance(value, list):
        faults.error(where, f"this is {kind_of(value)}, not a list of texts")
        return
    if not value and not may_be_empty:
        faults.error(where, "the list is empty")
    for number, item in enumerate(value, start=1):
        if not isinstance(item, str) or not item or item.isspace():
            faults.error(where, f"entry {number} is {_no_text(item)}")


def check_command(faults: RowFaults, where: str, value: object) -> None:
    """File anything but a command: text for `sh -lc`, or a list of arguments; all but the first may be empty."""
    words = [value] if isinstance(value, str) else value
    if not isinstance(words, list):
        faults.error(where, f"this is {kind_of(value)}, not text or a list of texts")
    elif not words:
        faults.error(where, "the list is empty")
    for number, word in enumerate(words if isinstance(words, list) else (), start=1):
        if not isinstance(word, str) or (number == 1 and not word.strip()):
            which = "this" if isinstance(value, str) else f"entry {number}"
            faults.error(where, f"{which} is {_no_text(word)}")
        elif "\0" in word:
            faults.error(where, "the command holds a NUL character")


def check_number(
    faults: RowFaults, where: str, value: object, *, low: float, high: float = sys.float_info.max
) -> None:
    """File anything but a number in a range, without showing it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        faults.error(where, f"this is {kind_of(value)}, not a number")
    elif not low <= value <= high:
        wanted = f"from {low:g} to {high:g}" if high < sys.float_info.max else f"that is {low:g} or more"
        faults.error(where, "the number is out of range", f"write a number {wanted}")


def check_seconds(faults: RowFaults, where: str, value: object) -> None:
    """File anything but a number above 0 that a clock can wait for."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        faults.error(where, f"this is {kind_of(value)}, not a number")
    elif not 0 < value <= _MOST_SECONDS:
        faults.error(where, f"{named(value)} is not a time", "write a number of seconds above 0")


def check_unknown(
    faults: RowFaults, where: str, data: Mapping[str, object], known: Collection[str], *, usable: bool = False
) -> None:
    """File keys that the format does not know; `usable`: only warn."""
    for key in data:
        if key not in known:
            hint = listed(key, known, "known keys" if len(known) > 1 else "the only key")
            if usable:
                faults.warn(where, f"unknown key {named(key)}", hint, key)
            else:
                faults.error(where, f"unknown key {named(key)}", hint)


def _no_text(value: object) -> str:
    kind = kind_of(value)
    return kind if isinstance(value, str) else f"{kind}, not text"
