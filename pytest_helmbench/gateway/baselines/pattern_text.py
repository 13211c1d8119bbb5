"""Texts that match a regular expression, for the strings of a schema with a `pattern`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from string import ascii_letters, digits

from pytest_helmbench.core.foreign_patterns import PatternError, found

__all__ = ["matching_texts", "searches"]

_SAMPLES = ("ok", "a", "0", "1", "a1", "A1", "aA1!aA1!", "2024-01-01", "12:00", "a-b", "a b", "a@example.org")
_ALPHABET = "aA0 _-.,:;/@#+()!?*'\"=&%$<>[]{}\\^|~`\n" + ascii_letters + digits
_LONGEST = 100_000  # characters of a text that is made
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")
_REPEAT = re.compile(r"([?*+]|\{(\d+)(,(\d*))?\})\??")


def searches(pattern: str, text: str) -> bool:
    """Return whether the pattern is found in the text; never for a pattern that Python cannot read."""
    try:
        return found(pattern, text)
    except PatternError:
        return False


def matching_texts(pattern: str, extra: int) -> Iterator[str]:
    """Yield texts that match a regular expression; `extra` repetitions where it leaves the number open.

    Reads literals, classes, groups, alternatives and counts; behind what it cannot read stand samples.
    """
    try:
        text, end = _alternatives(pattern, 0, extra)
    except (IndexError, RecursionError, re.error):
        text, end = "", -1
    made = [text] if end == len(pattern) else []
    yield from (sample for sample in (*made, *_SAMPLES) if searches(pattern, sample))


def _alternatives(pattern: str, position: int, extra: int) -> tuple[str, int]:
    """Read up to a closing parenthesis; return a text for the first alternative, and where it ended."""
    first: str | None = None
    text = ""
    while position < len(pattern) and pattern[position] != ")":
        if pattern[position] == "|":
            first = text if first is None else first
            text = ""
            position += 1
            continue
        piece, position = _atom(pattern, position, extra)
        repeat = _REPEAT.match(pattern, position)
        count = 1
        if repeat is not None:
            position = repeat.end()
            count = _count(repeat, extra)
        if len(piece) * count + len(text) > _LONGEST:
            raise IndexError(count)
        text += piece * count
    return (text if first is None else first), position


def _count(repeat: re.Match[str], extra: int) -> int:
    if repeat[1] in "?*+":
        return {"?": min(extra, 1), "*": extra, "+": 1 + extra}[repeat[1]]
    least = int(repeat[2])
    if repeat[3] is None:
        return least
    return min(least + extra, int(repeat[4])) if repeat[4] else least + extra


def _atom(pattern: str, position: int, extra: int) -> tuple[str, int]:
    character = pattern[position]
    if character in "^$":
        return "", position + 1
    if character == "(":
        opened = re.compile(r"\((?:\?(?::|P?<\w+>))?").match(pattern, position)
        text, end = _alternatives(pattern, opened.end() if opened else position + 1, extra)
        if pattern[end] != ")":
            raise IndexError(end)
        return text, end + 1
    if character == "[":
        members = _CLASS.match(pattern, position)
        if members is None:
            raise IndexError(position)
        return _member(members[0]), members.end()
    if character == "\\":
        escape = pattern[position : position + 2]
        return ("" if escape in (r"\b", r"\B", r"\A", r"\Z") else _member(escape)), position + 2
    return ("a" if character == "." else character), position + 1


def _member(atom: str) -> str:
    compiled = re.compile(atom)
    for character in _ALPHABET:
        if compiled.fullmatch(character):
            return character
    raise IndexError(atom)
