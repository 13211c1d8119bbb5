"""Python's regular expressions in the words of RE2, and where the two would not mean the same."""

from __future__ import annotations

import re

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["Translation", "translated"]

_SPACE = r"\t\n\v\f\r\x1c-\x20\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}"
_MEMBERS = {"d": r"\p{Nd}", "w": r"\p{L}\p{N}_", "s": _SPACE, "D": r"\P{Nd}"}
_TOKEN = re.compile(
    r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|\[\^?\]?|\(\?[a-zA-Z]*-?[a-zA-Z]*|\{,|.",
    re.DOTALL,
)
_MEMBER = re.compile(r"\\(?:x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|.)|[^\\]", re.DOTALL)
_MULTILINE = re.compile(r"\(\?[a-zA-Z]*m")
_SAME = frozenset("Aaftnrvx\\.^$|?*+()[]{}-/ #&~'\"`!%,:;<=>@_")
"""What behind a backslash means the same to both."""


@dataclass(frozen=True, slots=True)
class Translation:
    """An expression for RE2.

    Args:
        text: In its words.
        ascii_only: It means the same in texts of ASCII only.
        ends_at_a_break: It does not mean the same in texts that end with a line break.
    """

    text: str
    ascii_only: bool
    ends_at_a_break: bool


class _OtherwiseError(Exception):
    """RE2 cannot say it, or would mean something else by it."""


class _Writer:
    """Writes an expression, token by token.

    Args:
        pattern: That Python can read.
    """

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._multiline = _MULTILINE.search(pattern) is not None
        self.ascii_only = False
        self.ends_at_a_break = False

    def text(self) -> str:
        """Return it in RE2's words.

        Raises:
            _OtherwiseError: There are none.
        """
        parts: list[str] = []
        position = 0
        while position < len(self._pattern):
            found = _TOKEN.match(self._pattern, position)
            if found is None:
                raise _OtherwiseError
            token, position = found[0], found.end()
            if token[0] == "[":
                part, position = self._class(token, position)
            else:
                part = self._piece(token, position)
            parts.append(part)
        return "".join(parts)

    def _piece(self, token: str, end: int) -> str:
        if token == "{,":
            raise _OtherwiseError  # from none on, to Python alone
        if token.startswith("(?"):
            if set(token[2:]) & set("axuL"):
                raise _OtherwiseError
            return token
        if token == "$":
            return self._end(end)
        if token[0] != "\\":
            return token
        letter = token[1]
        if letter in "dws":
            return f"[{_MEMBERS[letter]}]"
        if letter in "DWS":
            return f"[^{_MEMBERS[letter.lower()]}]"
        if letter == "Z":
            return r"\z"
        if letter == "b":
            self.ascii_only = True
            return token
        if letter == "B":
            raise _OtherwiseError  # Python does not find it in an empty text
        return _character(token)

    def _end(self, end: int) -> str:
        """Return what `$` is: Python finds it before a line break at the very end, too."""
        if self._multiline:
            # Which of them are meant by the flag is not told here.
            self.ends_at_a_break = not self._pattern.startswith("(?m)")
            return "$"
        rest = self._pattern[end:].lstrip(")")
        if rest:
            self.ends_at_a_break = True
            return r"\z"
        return r"\n?\z"

    def _class(self, opening: str, start: int) -> tuple[str, int]:
        """Return a class in brackets, and where it ends."""
        parts = [opening]
        position = start
        while True:
            found = _MEMBER.match(self._pattern, position)
            if found is None or found[0] == "[":
                raise _OtherwiseError
            token, position = found[0], found.end()
            if token == "]":
                return f"{''.join(parts)}]", position
            parts.append(self._member(token))

    def _member(self, token: str) -> str:
        if token[0] != "\\":
            return token
        letter = token[1]
        if letter in "WS":
            self.ascii_only = True
            return token
        if letter == "b":
            return r"\x08"
        return _MEMBERS[letter] if letter in _MEMBERS else _character(token)


def translated(pattern: str) -> Translation | None:
    """Return an expression in RE2's words; None where it has none that mean the same.

    Args:
        pattern: That Python can read.
    """
    writer = _Writer(pattern)
    try:
        text = writer.text()
    except _OtherwiseError:
        return None
    return Translation(text, writer.ascii_only, writer.ends_at_a_break)


def _character(token: str) -> str:
    letter = token[1]
    if letter in "uU":
        return rf"\x{{{token[2:]}}}"
    if letter == "0" or letter.isdigit() or (letter.isalpha() and letter not in _SAME):
        raise _OtherwiseError
    return token if letter in _SAME else re.escape(letter) if letter.isascii() else letter
