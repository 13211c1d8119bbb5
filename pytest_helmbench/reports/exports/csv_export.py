"""Runs as a table for spreadsheets."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from io import StringIO

from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.reports.exports.exported import MAIN, Exported, ExportWish
from pytest_helmbench.reports.exports.flat_rows import column_names, flat_rows
from pytest_helmbench.results.run_report import RecordedRun

__all__ = ["csv_export", "spreadsheet_cell"]

_FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r", "＝", "＋", "－", "＠", "|")
_SKIPPED = " \n\u00a0\u200b\u200c\u200d\u2060\u3000\ufeff"
"""What some programs leave out before they look for a formula."""


def csv_export(runs: Sequence[RecordedRun], wish: ExportWish, /) -> Exported:
    """Return one line per evaluation.

    Unknown is an empty cell. A text that a spreadsheet would run as a formula gets an apostrophe before it.
    """
    names = column_names(runs, with_text=wish.with_text)
    stream = StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(names)
    for row in flat_rows(runs, with_text=wish.with_text):
        writer.writerow([spreadsheet_cell(row.get(name)) for name in names])
    return {MAIN: stream.getvalue()}


def spreadsheet_cell(value: object) -> object:
    """Return a value for a cell: a text that a spreadsheet would run as a formula gets an apostrophe before it."""
    if isinstance(value, bool):
        return int(value)
    if not isinstance(value, str):
        return value
    text = scrub(value)
    return f"'{text}" if text.lstrip(_SKIPPED).startswith(_FORMULA_STARTS) else text
