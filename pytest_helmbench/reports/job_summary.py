"""The summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_helmbench.reports.cards import WORST_SHOWN
from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.reports.markdown import FAILURE_HEAD, LONGEST, failure_cells, report_head, run_tables
from pytest_helmbench.reports.markup import folded, pipe_table
from pytest_helmbench.reports.tables import count_text
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import ReportedRuns


def job_summary(headline: Headline | None, found: ReportedRuns) -> str:
    """Return headline, comparisons, the worst failures, then everything else behind a click; no prompts or replies.

    Returns:
        At most `LONGEST` bytes: tables are cut, and the breakdowns left out where even so there is no room.
    """
    first = report_head(found, headline) + "".join(f"{line}\n" for line in _worst(found.runs))
    room = LONGEST - len(first.encode()) - 200
    tables = run_tables(found, room) if found.runs else ""
    if not tables or len(tables.encode()) > room:
        return first
    rest = folded("Scores by part, all failures, costs, settings", tables.split("\n"))
    return first + "\n".join(rest) + "\n"


def _worst(reports: Sequence[RunReport]) -> Iterator[str]:
    # Each report has its failures by points lost.
    failed = sorted(
        ((report, row) for report in reports for row in report.failures if not row.neutral),
        key=lambda one: -one[0].losses.of(one[1]),
    )
    if not failed:
        return
    several = len(reports) > 1
    rows = [
        failure_cells(row, report, report.opening.get(row.code, ""), report.detail.model if several else "")
        for report, row in failed[:WORST_SHOWN]
    ]
    count = f"{count_text(len(failed), 'case')} failed"
    yield from (f"**{count}**{', the worst' if len(failed) > WORST_SHOWN else ''}:", "")
    yield from pipe_table(FAILURE_HEAD, rows, left=FAILURE_HEAD[:3])
    yield ""
