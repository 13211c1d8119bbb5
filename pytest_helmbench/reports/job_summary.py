"""The summary of a CI job."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.reports.markdown import LONGEST, failure_rows, report_head, run_tables
from pytest_helmbench.reports.markup import folded, pipe_table, plain
from pytest_helmbench.reports.tables import count_text
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import ReportedRuns

_FAILURES = 5
_HEAD = ("case", "model", "points lost", "severity", "rule", "reason", "expected", "observed")


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
    rows = [
        (case, plain(report.detail.model), *cells)
        for report, row in failed[:_FAILURES]
        for case, *cells, _ in failure_rows(row, report)
    ]
    count = f"{count_text(len(failed), 'case')} failed"
    yield from (f"**{count}**{', the worst' if len(failed) > _FAILURES else ''}:", "")
    yield from pipe_table(_HEAD, rows, left=("case", "model", "rule", "reason", "expected", "observed"))
    yield ""
