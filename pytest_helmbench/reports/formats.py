"""The forms that recorded runs are written in, and the files of a session's reports.

Commands and sessions take their formats from here. A format of its own is a module with its text, and a line here.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.core.whole_file import write_atomically
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.reports.every_eval_ever import eee_export
from pytest_helmbench.reports.exports import (
    MAIN,
    Export,
    ExportedFiles,
    ExportError,
    csv_export,
    json_export,
)
from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.reports.json_report import json_report
from pytest_helmbench.reports.markdown import markdown_report
from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.results.run_report import RecordedRun
from pytest_helmbench.results.standings import ReportedRuns

_LARGE_BYTES = 50_000_000
_FORMS: Mapping[str, Literal["eval", "json"]] = {".eval": "eval", ".json": "json", "": "json"}


Report = Callable[[ReportedRuns, ShownTexts, Headline | None], str]
"""Writes runs with their numbers."""


def _html(found: ReportedRuns, texts: ShownTexts, _: Headline | None) -> str:
    from pytest_helmbench.reports.page.document import html_page
    from pytest_helmbench.reports.page.parts import PagePart

    return html_page([PagePart.of(report, texts) for report in found.runs], texts, found.boards)


def _inspect(runs: Sequence[RecordedRun], texts: ShownTexts, name: str) -> ExportedFiles:
    """Return a log: a sample per case and repetition (epoch), a score per criterion, our numbers as its metrics.

    Errors and skipped cases are samples with an error and without a score.

    Raises:
        ExportError: inspect-ai is not installed, the runs are several, or the file does not have the name of a log.
    """
    if len(runs) != 1:
        raise ExportError(
            "a log of Inspect holds one run\n  hint: export them one by one; Inspect View shows a whole folder"
        )
    form = _FORMS.get(Path(name).suffix)
    if form is None:
        raise ExportError(f"{name}: Inspect reads no such file\n  hint: name it *.eval or *.json")
    try:
        from inspect_ai.log import write_eval_log

        from pytest_helmbench.reports.inspect_log import inspect_log
    except ImportError as error:
        raise ExportError(
            "Inspect's logs are written by inspect-ai, which is not installed\n"
            "  hint: pip install 'pytest-helmbench[inspect]'"
        ) from error
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, f"log.{form}")
        write_eval_log(inspect_log(runs[0], texts), str(path), format=form)
        return {MAIN: path.read_text(encoding="utf-8") if form == "json" else path.read_bytes()}


def comparison_page(found: Sequence[RunComparison], texts: ShownTexts) -> str:
    """Return the page of some comparisons, with the cases of both runs where their results are at hand.

    Raises:
        StoreError: A results file cannot be read.
    """
    from pytest_helmbench.reports.page.document import html_page
    from pytest_helmbench.reports.page.parts import PagePart

    return html_page([PagePart.compared(comparison, texts) for comparison in found], texts)


PAGE = "html"
"""The one that is for a browser and needs every case."""

REPORTS: Mapping[str, Report] = {
    "markdown": lambda found, texts, headline: markdown_report(found, headline, with_text=texts.any),
    "json": lambda found, texts, _: json_report(found, with_text=texts.any),
    PAGE: _html,
}
"""The formats of `helmbench report`, by name; a session writes NAME to the setting `NAME_report`."""

EXPORTS: Mapping[str, Export] = {
    "csv": csv_export,
    "inspect": _inspect,
    "eee": eee_export,
    "json": json_export,
}
"""The formats of `helmbench export`, by name."""

SCHEMAS = ("export", "report")
"""The names of the JSON Schemas of our own outputs (`own_schema`)."""


def wanted_reports(settings: Settings) -> Mapping[Path, str]:
    """Return the formats that a session is to be reported in, by file."""
    wanted = ((getattr(settings, f"{name}_report"), name) for name in REPORTS)
    return {path: name for path, name in wanted if path is not None}


def write_reports(
    wanted: Mapping[Path, str],
    found: ReportedRuns,
    note: Callable[[str], None],
    texts: ShownTexts,
    headline: Headline | None,
) -> list[Path]:
    """Write the reports of a session, and return their files."""
    written = []
    for path, name in wanted.items():
        try:
            text = REPORTS[name](found, texts, headline)
            write_atomically(path, text)
        except OSError as error:
            note(f"{path}: the report cannot be written: {error.strerror}")
        except HelmbenchError as error:
            note(f"{path}: not written: {error}")
        else:
            written.append(path)
            if large := size_note(text):
                note(f"{path}{large}")
    return written


def size_note(text: str) -> str:
    """Return a warning about a report that is too large to be sent; empty for others."""
    if len(text) < _LARGE_BYTES:
        return ""
    return f" ({len(text) / 1_000_000:.0f} MB: without the texts of all cases it is smaller)"
