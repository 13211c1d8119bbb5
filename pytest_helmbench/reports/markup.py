"""Markdown in which foreign text cannot act: it formats, links and mentions nothing."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.reports.tables import display_width

_TICKS = re.compile("`+")
# Characters that format within a line, and those that make a bare address a link.
_SPECIAL = re.compile(r"[\\`*\[\]~$]|(?<![^\W_])_|_(?![^\W_])|:(?=//)|(?<=www)\.", re.IGNORECASE)
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_HTML = re.compile("[&<>]")
# "@name" notifies a person and "#12" leaves a trace in another thread, escaped or not: only a gap stops them.
_CALLS = re.compile("[@#]")
_GAP = "\N{ZERO WIDTH SPACE}"
_BAR = "\\|"
_WIDEST_CODE = 40
_NOTHING = ("", "-")
_MARKS = re.compile(r"<br>|[`*\\]|\s+")
_BLANK = "\N{NO-BREAK SPACE}"


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
    """Return lines behind a click; nothing in the summary, which is trusted text, is escaped."""
    return ["<details>", f"<summary>{summary}</summary>", "", *lines, "", "</details>", ""]


def pipe_table(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: Collection[str], most: int | None = None
) -> list[str]:
    """Return a table with a line about what was left out of it; columns that say nothing are not in it.

    Browsers break codes at hyphens, so blanks in the head keep the first text as wide as its longest code.

    Args:
        rows: Cells in Markdown.
        left: Titles of the columns with text; the others have numbers.
        most: Most rows to show; None for all.
    """
    shown = [
        index for index in range(len(head)) if not rows or any(row[index] not in _NOTHING for row in rows)
    ]
    titles = [head[index] for index in shown]
    sides = [":--" if title in left else "--:" for title in titles]
    if ":--" in sides:
        first = sides.index(":--")
        titles[first] += _blanks(titles[first], [row[shown[first]] for row in rows[:most]])
    lines = [_line(titles), _line(sides), *(_line([row[index] for index in shown]) for row in rows[:most])]
    if most is not None and len(rows) > most:
        lines += ["", f"… and {len(rows) - most} more rows (`helmbench report --format json` has all)"]
    return lines


def _blanks(title: str, cells: Iterable[str]) -> str:
    """Return what makes a title as wide as the longest word with a hyphen below it."""
    words = (word for cell in cells for word in _MARKS.split(cell) if "-" in word)
    missing = min(max(map(display_width, words), default=0), _WIDEST_CODE) - len(title)
    # A blank is half as wide as a letter; the last is an entity, because some programs strip cells.
    return _BLANK * 2 * missing + "&nbsp;" if missing > 0 else ""


def _line(cells: Iterable[str]) -> str:
    # Cells are split before anything else is read: a pipe needs its backslash even within code.
    return f"| {' | '.join(cell.replace('|', _BAR) for cell in cells)} |"
