"""A benchmark pack as every room may know it: what it is, and where its rows stand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PackOutline", "RowRef"]


@dataclass(frozen=True, slots=True)
class RowRef:
    """Where a healthy row stands; its text is read again when it is needed.

    Args:
        id: Unique in the pack.
        path: Row file.
        line: 1-based; blank lines count.
        offset: Of its first byte in the file.
        length: Bytes, line end included.
        family: A family's name, or one that is not known here.
        skip_reason: Why it cannot be run, in a sentence; None for a row that can.
        groups: Short values of its metadata that it shares with other rows: `(("subject", "algebra"),)`.
        judged: Its rubric is in words: a marking model decides.
    """

    id: str
    path: Path
    line: int
    offset: int
    length: int
    family: str
    skip_reason: str | None
    groups: tuple[tuple[str, str], ...]
    judged: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class PackOutline:
    """A pack as the record keeps it.

    Args:
        root: The folder.
        name: The manifest's `id`.
        version: The manifest's, as text.
        description: Empty where there is none.
        hash: SHA-256 (hex) over everything that can change a case or a verdict.
        rows: Healthy rows by id.
    """

    root: Path
    name: str
    version: str
    description: str
    hash: str
    rows: Mapping[str, RowRef]
    kind: str = "pack"
