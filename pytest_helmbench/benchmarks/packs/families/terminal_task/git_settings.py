"""Settings of git as git itself reads a file of them: sections however they are written, values, and their places."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["GitSetting", "git_settings"]

_HEAD = re.compile(r'\[([A-Za-z0-9.-]*)(?:[ \t]+"((?:[^"\\\n]|\\[^\n])*)")?[ \t]*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)[ \t]*(=?)")
_ESCAPED = {"n": "\n", "t": "\t", "b": "\b"}


@dataclass(frozen=True, slots=True)
class GitSetting:
    """One setting.

    Args:
        section: In lower case.
        subsection: As it is; None for none.
        key: In lower case.
        value: Without quotes and comments; None where nothing is set to it.
        start: Of its text in the file.
        end: Behind it.
    """

    section: str
    subsection: str | None
    key: str
    value: str | None
    start: int
    end: int

    @property
    def name(self) -> str:
        """As `git config` takes it."""
        return ".".join(part for part in (self.section, self.subsection, self.key) if part is not None)


def git_settings(text: str) -> Iterator[GitSetting]:
    """Yield the settings of a file, up to where git would refuse it."""
    section, subsection = "", None
    place = 1 if text.startswith("\ufeff") else 0
    while place < len(text):
        char = text[place]
        if char.isspace():
            place += 1
        elif char in "#;":
            place = _line_end(text, place)
        elif char == "[":
            head = _HEAD.match(text, place)
            if head is None:
                return
            section, dot, inner = head[1].lower().partition(".")
            quoted = None if head[2] is None else re.sub(r"\\(.)", r"\1", head[2])
            subsection = quoted if quoted is not None else inner if dot else None
            place = head.end()
        else:
            key = _KEY.match(text, place)
            if key is None:
                return
            value, end = _value(text, key.end()) if key[2] else (None, _line_end(text, key.end()))
            yield GitSetting(section, subsection, key[1].lower(), value, place, end)
            place = end


def _line_end(text: str, place: int) -> int:
    end = text.find("\n", place)
    return len(text) if end < 0 else end


def _value(text: str, place: int) -> tuple[str, int]:
    """Return a value, and where it ends."""
    read: list[str] = []
    is_quoted = False
    while place < len(text) and text[place] != "\n":
        char = text[place]
        if char == "\\" and place + 1 < len(text):
            follows = text[place + 1 : place + 3]
            place += 3 if follows == "\r\n" else 2
            if not follows.startswith(("\n", "\r\n")):
                read.append(_ESCAPED.get(follows[0], follows[0]))
            continue
        if char in "#;" and not is_quoted:
            return "".join(read).strip(), _line_end(text, place)
        if char == '"':
            is_quoted = not is_quoted
        else:
            read.append(char)
        place += 1
    return "".join(read).strip(), place
