"""Plain tables: names to the left, everything else to the right."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["aligned"]


def aligned(table: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows with their columns aligned; all rows have the same number of cells."""
    widths = [max(len(row[index]) for row in table) for index in range(len(table[0]))]
    return [
        "  ".join(
            cell.ljust(width) if index == 0 else cell.rjust(width)
            for index, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in table
    ]
