"""The report files of a session, made from its database."""

from __future__ import annotations

import pytest

from pytest_helmbench.core.whole_file import try_place
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.reports.formats import PAGE, wanted_reports, write_reports
from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.results.run_report import run_report, shown_texts
from pytest_helmbench.results.standings import ReportedRuns
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.store.fault import StoreError


def refuse_unwritable(settings: Settings) -> None:
    """Check that every report can be written, as far as its folder shows.

    Raises:
        pytest.UsageError: A report cannot be written.
    """
    for path in wanted_reports(settings):
        try:
            try_place(path)
        except OSError as error:
            raise pytest.UsageError(
                f"{path}: the report cannot be written: {error.strerror}; nothing was called\n"
                "  hint: make its folder, or name another file"
            ) from error


def write_report_files(coordinator: Coordinator, headline: Headline | None, *, is_refused: bool) -> None:
    """Write the reports of a session; its summary notes those that cannot be written.

    Args:
        headline: Headline of the session. Where no case ran, the Markdown report has nothing else.
        is_refused: The session ends with exit code 4, whose Markdown report is written elsewhere.
    """
    settings, runs = coordinator.settings, coordinator.runs
    wanted = wanted_reports(settings)
    if not wanted:
        return
    if not runs.tallies:
        has_text = headline is not None or is_refused
        written = {path: name for path, name in wanted.items() if name == "markdown" and has_text}
        if names := " and ".join(str(path) for path in wanted if path not in written):
            coordinator.note(f"{names}: not written, since nothing was run")
        wanted = {} if is_refused else written
    try:
        places = [(runs.db, run_id) for run_id in runs.tallies]
        texts = shown_texts(places, settings.shown_texts if "with-text" in settings.stated else None)
        reports = session_reports(coordinator, with_text=texts.any, all_cases=PAGE in wanted.values())
        coordinator.files.extend(write_reports(wanted, reports, coordinator.note, texts, headline))
    except StoreError as error:
        coordinator.note(f"no report: {error}")


def session_reports(
    coordinator: Coordinator, *, with_text: bool = False, all_cases: bool = False
) -> ReportedRuns:
    """Return the runs of a session as reports, with their comparisons.

    Raises:
        StoreError: The file cannot be read.
    """
    runs = coordinator.runs
    found = [
        run_report(runs.db, run_id, with_text=with_text, all_cases=all_cases, scored=runs.scored.get(run_id))
        for run_id in runs.tallies
    ]
    return ReportedRuns.of(
        report.compared(coordinator.comparisons.get(report.detail.id))
        for report in found
        if report is not None
    )
