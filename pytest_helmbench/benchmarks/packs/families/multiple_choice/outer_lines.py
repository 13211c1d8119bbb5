"""Statements of a multiple_choice reply that are lines of their own: a letter, a choice or a list of them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from pytest_helmbench.benchmarks.packs.families.multiple_choice.labels import Choices, read_picks
from pytest_helmbench.benchmarks.packs.families.multiple_choice.statements import SHORT, Statement
from pytest_helmbench.benchmarks.packs.families.text.wording import sentences, unmarked

__all__ = ["LINE", "TICKS", "outer_lines", "whole_line"]

LINE = re.compile(r"[^\n]+")
TICKS = "✓✔✅☑"
_MOST_LINES = 64
"""So many lines are enough to see that they list choices."""
_ASIDE = re.compile(r"\s\([^()]{0,80}\)")


def outer_lines(text: str, choices: Choices) -> list[Statement]:
    """Return the statements of the first and the last line that is not blank."""
    lines = [
        (found.start(), line) for found in LINE.finditer(text) if (line := unmarked(found[0]).strip(" \t*"))
    ]
    if not lines:
        return []
    statements: list[Statement] = []
    first = _block(lines, choices)
    if first is not None:
        statements.append(first[0])
        if first[1] == len(lines):
            return statements
    elif (opening := _opening(lines, choices)) is not None:
        statements.append(Statement(lines[0][0], lines[0][0] + 1, opening, "first_line"))
    last = _block(lines[: -_MOST_LINES - 1 : -1], choices) if len(lines) > 1 else None
    return statements if last is None else [*statements, last[0]]


def _block(lines: Sequence[tuple[int, str]], choices: Choices) -> tuple[Statement, int] | None:
    """Return the statement of the lines at the start that are choices and nothing else, and their number.

    Several such lines name several choices, unless some of them are ticked: then these.
    """
    named: frozenset[int] = frozenset()
    ticked: frozenset[int] = frozenset()
    count = 0
    for _, line in lines[:_MOST_LINES]:
        picks = whole_line(line, choices)
        if picks is None:
            break
        named |= picks
        if any(tick in line for tick in TICKS):
            ticked |= picks
        count += 1
    if not count:
        return None
    begin, end = sorted((lines[0], lines[count - 1]))
    return Statement(begin[0], end[0] + len(end[1]), ticked or named, "line"), count


def whole_line(line: str, choices: Choices) -> frozenset[int] | None:
    """Return the picks of a line that is nothing but a letter, a choice or a list of them."""
    if len(line) > choices.longest + 60:
        return None
    if "|" in line:
        cells = [cell.strip() for cell in line.split("|")]
        named = [picks for cell in cells if cell and (picks := whole_line(cell, choices)) is not None]
        return named[0] if len(named) == 1 and whole_line(cells[-1] or " ", choices) is not None else None
    collapsed = " ".join(line.split())
    read = read_picks(collapsed, choices)
    if read is None or collapsed[read.end :].strip(" .,;:!)]\"'" + TICKS):
        return None
    return read.indices


def _opening(lines: Sequence[tuple[int, str]], choices: Choices) -> frozenset[int] | None:
    """Return the picks of a first line that begins with a letter, or is a choice's text in its first sentence.

    Not when another line begins with another letter: that is a walk through the choices.
    """
    pattern = _opening_pattern(choices.letters)
    found = pattern.match(lines[0][1])
    if found is None:
        first = next(iter(sentences(lines[0][1][: 2 * choices.longest + SHORT])), "")
        more = len(first) < len(lines[0][1]) and first.endswith((".", "!"))
        return whole_line(_ASIDE.sub("", first), choices) if more else None
    letter = found["label"].strip("()[]")
    for _, line in lines[1:]:
        other = pattern.match(line)
        if other is not None and other["label"].strip("()[]") != letter:
            return None
    picks = read_picks(found["label"], choices)
    return None if picks is None else picks.indices


@lru_cache(maxsize=26)
def _opening_pattern(letters: str) -> re.Pattern[str]:
    return re.compile(
        rf"(?P<label>[(\[][{letters}][)\]]|[{letters}](?=\)|[.:,]\s+(?![a-zа-я]\w* [a-zа-я])|[.:,]?\s+[-=]|"
        r"[,.]?\s+(?i:because|since|as|is (?:the )?(?:correct|right|answer|best)|weil|porque|parce|потому|option|"
        r"would be|for the|makes sense|seems|i think)\b))"
    )
