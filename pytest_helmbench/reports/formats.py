"""The forms that recorded runs are written in: one object per format, with all that is known of it.

Commands and sessions take their formats from here. A format of its own is a module with its text, and a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Protocol

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.reports.exports.csv_export import csv_export
from pytest_helmbench.reports.exports.every_eval_ever import eee_export
from pytest_helmbench.reports.exports.exported import Export
from pytest_helmbench.reports.exports.inspect_export import inspect_export
from pytest_helmbench.reports.exports.json_export import export_schema, json_export
from pytest_helmbench.reports.json_report import json_report, report_schema
from pytest_helmbench.reports.leaderboard.board_records import board_csv, board_json, board_schema
from pytest_helmbench.reports.leaderboard.board_texts import board_lines, board_markdown
from pytest_helmbench.reports.markdown import markdown_report
from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import Board, Standing, boards

__all__ = [
    "BOARDS",
    "EXPORTS",
    "FORMATS",
    "PAGES",
    "REPORTS",
    "SCHEMAS",
    "ReportFormat",
    "comparison_page",
    "runs_page",
]


class _Report(Protocol):
    def __call__(self, reports: Sequence[RunReport], /, *, texts: ShownTexts) -> str: ...


@dataclass(frozen=True, slots=True)
class ReportFormat:
    """A form that recorded runs are written in.

    Args:
        name: As `--format` takes it.
        report: Writes runs with their numbers; None where the format has no such thing.
        export: Writes runs with every result; None where the format has no such thing.
        all_cases: It needs every case with its calls, not the failures alone.
        setting: The setting that names the file a session reports to; empty for none.
        schemas: JSON Schemas of what it writes, as `helmbench schema` names them.
    """

    name: str
    report: _Report | None = None
    export: Export | None = None
    all_cases: bool = False
    setting: str = ""
    schemas: Mapping[str, Callable[[], dict[str, JsonValue]]] = field(default_factory=dict)


def _markdown(reports: Sequence[RunReport], *, texts: ShownTexts) -> str:
    return markdown_report(reports, with_text=texts.any)


def _json(reports: Sequence[RunReport], *, texts: ShownTexts) -> str:
    return json_report(reports, with_text=texts.any)


def _html(reports: Sequence[RunReport], *, texts: ShownTexts) -> str:
    return runs_page(reports, texts, side_by_side(reports))


def side_by_side(reports: Sequence[RunReport]) -> Sequence[Board]:
    """Return what some runs are beside each other; nothing for one alone."""
    standings = [Standing.of(report, report.path) for report in reports if report.path is not None]
    return boards(standings) if len(standings) > 1 else ()


def runs_page(reports: Sequence[RunReport], texts: ShownTexts, found: Sequence[Board]) -> str:
    """Return the page of some runs, with what they are side by side."""
    from pytest_helmbench.reports.page.document import run_page

    return run_page(reports, texts, found)


def comparison_page(found: Sequence[RunComparison], texts: ShownTexts) -> str:
    """Return the page of some comparisons, with the cases of both runs where their results are at hand.

    Args:
        found: Of runs with their baselines.
        texts: Whose texts are shown.

    Raises:
        StoreError: A results file cannot be read.
    """
    from pytest_helmbench.reports.page.document import page_of
    from pytest_helmbench.reports.page.parts import PagePart

    return page_of([PagePart.compared(comparison, texts) for comparison in found], texts)


FORMATS = (
    ReportFormat("markdown", report=_markdown, setting="markdown_report"),
    ReportFormat("csv", export=csv_export),
    ReportFormat("inspect", export=inspect_export),
    ReportFormat("eee", export=eee_export),
    ReportFormat(
        "json",
        report=_json,
        export=json_export,
        setting="json_report",
        schemas={"export": export_schema, "report": report_schema},
    ),
    ReportFormat("html", report=_html, all_cases=True, setting="html_report"),
)

REPORTS = {form.name: form.report for form in FORMATS if form.report is not None}
"""What `helmbench report` writes, by name."""

PAGES = frozenset(form.name for form in FORMATS if form.all_cases)
"""Those among them that are for a browser and need every case."""

BOARDS: Mapping[str, Callable[[Sequence[Board]], str]] = {
    "text": lambda found: "\n".join(board_lines(found)).rstrip("\n") + "\n",
    "markdown": board_markdown,
    "csv": board_csv,
    "json": board_json,
}
"""What `helmbench leaderboard` writes, by name; a page is `REPORTS["html"]` of its runs."""

EXPORTS = {form.name: form.export for form in FORMATS if form.export is not None}
"""What `helmbench export` writes, by name."""

SCHEMAS = {
    "leaderboard": board_schema,
    **{name: schema for form in FORMATS for name, schema in form.schemas.items()},
}
"""The JSON Schemas of our own outputs, by name."""
