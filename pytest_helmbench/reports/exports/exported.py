"""The shapes that all exports share: runs and a wish go in, contents of files come out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.results.run_report import RecordedRun

__all__ = ["MAIN", "Export", "ExportError", "ExportWish", "Exported"]

Exported = Mapping[str, str | bytes]
"""Contents of the files of an export: `MAIN`, or several by their paths below a folder."""

MAIN = ""
"""The one file, which the user names, or standard output."""


class ExportError(HelmbenchError):
    """An export that cannot be made; the text says why and what helps."""


@dataclass(frozen=True, slots=True)
class ExportWish:
    """How runs are to be exported.

    Args:
        with_text: Also prompts, replies and the judge's words, which quote replies.
        name: Of the file that is written; empty for standard output.
    """

    with_text: bool = False
    name: str = ""


class Export(Protocol):
    """Writes runs in one format.

    Raises:
        ExportError: These runs, or this file, cannot be written so.
    """

    def __call__(self, runs: Sequence[RecordedRun], wish: ExportWish, /) -> Exported: ...
