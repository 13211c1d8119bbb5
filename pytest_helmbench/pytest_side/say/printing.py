"""The lines of a session where they are printed: in the terminal's width, in pytest's own colours."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from io import StringIO
from pathlib import Path
from typing import Any

from pytest_helmbench.core.scrub import quoted, scrub
from pytest_helmbench.reports.tables import broken

_MARKS = {"✓ HOLDS": "green", "✗ FAILS": "red", "? INCONCLUSIVE": "yellow"}


def in_ci() -> bool:
    """Return whether this is a CI machine: its logs get no texts and no live progress."""
    return bool(os.environ.get("CI"))


def in_github_actions() -> bool:
    """Return whether this is a job of GitHub Actions, which shows a summary and annotations."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def shown_path(path: Path, start: Path) -> str:
    """Return a path as seen from the folder where pytest was started; one elsewhere in full."""
    path = path.absolute()
    return str(path.relative_to(start) if path.is_relative_to(start) else path)


class Line(str):
    """A line with the names of the markup that a terminal shows it in: `bold`, `light`."""

    markup: tuple[str, ...]

    def __new__(cls, text: str, *markup: str) -> Line:
        """Return the line."""
        made = super().__new__(cls, text)
        made.markup = markup
        return made


def width_of(writer: Any) -> int | None:
    """Return the columns that pytest prints in; None where no terminal and no `COLUMNS` bounds a line."""
    file: Any = getattr(writer, "_file", None)
    on_a_terminal = hasattr(file, "isatty") and file.isatty()
    if not (on_a_terminal or (os.environ.get("COLUMNS") and not isinstance(file, StringIO))):
        return None
    width: int = writer.fullwidth
    return width


def printed(writer: Any, lines: Iterable[str]) -> Iterator[str]:
    """Yield lines as a writer of pytest prints them: quoted, broken, with markup where it shows any."""
    for line in lines:
        markup = dict.fromkeys(getattr(line, "markup", ()), True)
        mark = next((mark for mark in _MARKS if line.startswith(mark)), "")
        for part in (
            quoted(part) for one in scrub(line).split("\n") for part in broken(one, width_of(writer))
        ):
            if mark:
                shown = writer.markup(mark, bold=True, **{_MARKS[mark]: True})
                yield shown + writer.markup(part.removeprefix(mark), bold=True)
                mark, markup = "", {"bold": True}
            else:
                yield writer.markup(part, **markup)
