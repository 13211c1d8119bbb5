"""Statements: rows that a kind of benchmark keeps of a case or a run beside verdict and score."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, TypeAlias

__all__ = ["CaseStatement", "Cell", "RunStatement"]

Cell: TypeAlias = "str | int | float | bytes | None"
"""What one column of a row holds."""


class RunStatement(Protocol):
    """What a kind makes of a whole run."""

    @property
    def table(self) -> str:
        """The table of the kind that keeps it, one row per run, whose primary key is `run_id`."""

    def cells(self) -> Mapping[str, Cell]:
        """Return its row by column, the key apart."""


class CaseStatement(Protocol):
    """What a kind says of one outcome."""

    @property
    def table(self) -> str:
        """The table of the kind that keeps it, one row per result, whose primary key is `result_id`."""

    def cells(self) -> Mapping[str, Cell]:
        """Return its row by column, the key apart."""

    def for_item(self) -> CaseStatement:
        """Return what an item shows of it: what only the record keeps is left out, since thousands may wait."""
