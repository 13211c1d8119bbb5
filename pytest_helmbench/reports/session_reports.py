"""The reports that a session was asked for, as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.core.whole_file import put_in_place
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.reports.formats import FORMATS, ReportFormat
from pytest_helmbench.results.run_report import RunReport

__all__ = ["size_note", "wanted_reports", "write_reports"]

_LARGE_BYTES = 50_000_000


def wanted_reports(settings: Settings) -> Mapping[Path, ReportFormat]:
    """Return the formats that a session is to be reported in, by file."""
    wanted = ((getattr(settings, form.setting), form) for form in FORMATS if form.setting)
    return {path: form for path, form in wanted if path is not None}


def write_reports(
    wanted: Mapping[Path, ReportFormat],
    reports: Sequence[RunReport],
    note: Callable[[str], None],
    *,
    texts: ShownTexts,
) -> None:
    """Write the reports of a session.

    Args:
        wanted: See `wanted_reports`.
        reports: Of its runs.
        note: Says something in the summary.
        texts: Of which cases prompts and replies are shown.
    """
    for path, form in wanted.items():
        if form.report is None:
            continue
        try:
            text = form.report(reports, texts=texts)
            put_in_place(path, text)
        except OSError as error:
            note(f"{path}: the report cannot be written: {error.strerror}")
        except HelmbenchError as error:
            note(f"{path}: not written: {error}")
        else:
            note(f"report: {path.resolve().as_uri()}{size_note(text)}")


def size_note(text: str) -> str:
    """Return a warning about a report that is too large to be sent; empty for others."""
    if len(text) < _LARGE_BYTES:
        return ""
    return f" ({len(text) / 1_000_000:.0f} MB: without the texts of all cases it is smaller)"
