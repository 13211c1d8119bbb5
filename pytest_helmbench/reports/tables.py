"""Plain-text tables: columns under a head, texts to the left, numbers to the right."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from fractions import Fraction

from pytest_helmbench.core.scrub import excerpt

__all__ = ["UNKNOWN", "number", "seconds", "share", "table"]

UNKNOWN = "unknown"
_WIDEST = 60


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, left: Collection[str]) -> list[str]:
    """Return aligned lines; cells are scrubbed, put on one line and cut.

    Args:
        head: Column titles.
        rows: As many cells each.
        left: Titles of the columns that hold text; the others hold numbers.
    """
    cells = [[_cell(cell) for cell in row] for row in rows]
    widths = [max(len(row[index]) for row in (list(head), *cells)) for index in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if title in left else cell.rjust(width)
            for title, cell, width in zip(head, row, widths, strict=True)
        ).rstrip()
        for row in (list(head), *cells)
    ]


def number(value: float | None) -> str:
    """Return a count or amount; None is unknown, never 0."""
    return UNKNOWN if value is None else f"{value:g}" if isinstance(value, float) else str(value)


def seconds(ms: float | None) -> str:
    """Return a duration for people; a dash for one that nobody knows."""
    if ms is None:
        return "-"
    return f"{ms:.3g} ms" if ms < 1000 else f"{ms / 1000:.3g} s"


def share(value: float | Fraction | None) -> str:
    """Return a fraction in per cent; None is a dash, since there is no such number yet.

    What is not all is never shown as `100.0 %`.
    """
    if value is None:
        return "-"
    return f"{99.9 if 0.9990 < value < 1 else 100 * float(value):.1f} %"


def _cell(text: str) -> str:
    indent = len(text) - len(text.lstrip(" "))
    return " " * indent + excerpt(" ".join(text.split()), _WIDEST)
