"""The reports that a session was asked for, as files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.reports.formats import FORMATS, ReportFormat
from pytest_helmbench.session.run_report import RunReport
from pytest_helmbench.session.settings import Settings

__all__ = ["wanted_reports", "write_reports"]


def wanted_reports(settings: Settings) -> Mapping[Path, ReportFormat]:
    """Return the formats that a session is to be reported in, by file."""
    wanted = ((getattr(settings, form.setting), form) for form in FORMATS if form.setting)
    return {path: form for path, form in wanted if path is not None}


def write_reports(
    wanted: Mapping[Path, ReportFormat],
    reports: Sequence[RunReport],
    note: Callable[[str], None],
    *,
    with_text: bool,
) -> None:
    """Write the reports of a session.

    Args:
        wanted: See `wanted_reports`.
        reports: Of its runs.
        note: Says something in the summary.
        with_text: Also prompts and replies of failures.
    """
    try:
        for path, form in wanted.items():
            if form.report is not None:
                path.write_text(form.report(reports, with_text=with_text), encoding="utf-8", newline="\n")
                note(f"report in {path}")
    except OSError as error:
        note(f"{error.filename}: the report cannot be written: {error.strerror}")
