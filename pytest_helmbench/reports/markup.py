"""Markdown in which foreign text cannot act: it formats, links and mentions nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from pytest_helmbench.core.scrub import excerpt, scrub

_TICKS = re.compile("`+")
# Characters that format within a line, and those that make a bare address a link.
_SPECIAL = re.compile(r"[\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HTML = re.compile("[&<>]")
# "@name" notifies a person and "#12" leaves a trace in another thread, escaped or not: only a gap stops them.
_CALLS = re.compile("[@#]")
_GAP = "\N{ZERO WIDTH SPACE}"
_BAR = "\\|"


def plain(text: str) -> str:
    """Return foreign text for the middle of a line: it shows as it is, and formats, links and mentions nothing."""
    line = _HTML.sub(lambda found: _ENTITIES[found[0]], " ".join(scrub(text).split()))
    return _CALLS.sub(lambda found: found[0] + _GAP, _SPECIAL.sub(lambda found: f"\\{found[0]}", line))


def code_span(text: str, limit: int = 200) -> str:
    """Return foreign text as code on one line, cut: nothing in it acts, not even in a table cell."""
    shown = excerpt(" ".join(scrub(text[: 10 * limit]).split()), limit)
    if not shown:
        return ""
    fence = "`" * (1 + max((len(run) for run in _TICKS.findall(shown)), default=0))
    space = " " if shown.startswith("`") or shown.endswith("`") else ""
    return f"{fence}{space}{shown}{space}{fence}"


def fenced(text: str, limit: int) -> list[str]:
    """Return foreign text as a block of code, cut."""
    shown = excerpt(text, limit)
    fence = "`" * max(3, 1 + max((len(run) for run in _TICKS.findall(shown)), default=0))
    return [f"{fence}text", *shown.split("\n"), fence]


def folded(summary: str, lines: Iterable[str]) -> list[str]:
    """Return lines behind a click.

    Args:
        summary: Trusted text: nothing in it is escaped.
    """
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>", ""]


def pipe_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[str], most: int | None = None
) -> list[str]:
    """Return a table with a line about what was left out of it.

    Args:
        rows: Cells in Markdown.
        left: Titles of the columns with text; the others have numbers.
        most: Most rows to show; None for all.
    """
    lines = [_line(head), _line([":--" if title in left else "--:" for title in head])]
    lines += [_line(row) for row in rows[:most]]
    if most is not None and len(rows) > most:
        lines += ["", f"… and {len(rows) - most} more rows (`helmbench report --format json` has all)"]
    return lines


def _line(cells: Iterable[str]) -> str:
    # Cells are split before anything else is read: a pipe needs its backslash even within code.
    return f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |"
