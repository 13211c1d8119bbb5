"""The summary of a CI job, and the annotations beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.reports.headline import Headline
from pytest_helmbench.reports.markdown import LONGEST, failure_rows, opening, run_tables
from pytest_helmbench.reports.tables import folded, pipe_table, plain
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import ReportedRuns

_FAILURES = 5
_HEAD = ("case", "model", "points lost", "severity", "rule", "reason", "expected", "observed")


def job_summary(top: Headline | None, found: ReportedRuns) -> str:
    """Return headline, comparisons, the worst failures, then everything else behind a click; no prompts or replies.

    Args:
        top: Of the session.
        found: Its runs, with their comparisons.

    Returns:
        At most `LONGEST` bytes: tables are cut, and the breakdowns left out where even so there is no room.
    """
    first = opening(found, top) + "".join(f"{line}\n" for line in _worst(found.runs))
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
    count = f"{len(failed)} case{'' if len(failed) == 1 else 's'} failed"
    yield from (f"**{count}**{', the worst' if len(failed) > _FAILURES else ''}:", "")
    yield from pipe_table(_HEAD, rows, left=("case", "model", "rule", "reason", "expected", "observed"))
    yield ""


MOST_ANNOTATIONS = 10
"""GitHub shows no more errors of one step."""

_LONGEST = 300
_ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})
_IN_PROPERTIES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A", ":": "%3A", ",": "%2C"})


@dataclass(frozen=True, slots=True)
class Annotation:
    """An error that is shown beside a job, and beside a file where it has one.

    Args:
        title: Short.
        message: A sentence.
        path: Relative to the repository's folder; empty for none.
        line: From 1.
    """

    title: str
    message: str
    path: str = ""
    line: int = 1

    def command(self) -> str:
        """Return the line that says it. It counts only where it stands at the start of a line of its own.

        Source: https://docs.github.com/actions/reference/workflow-commands-for-github-actions
        """
        place = f"file={self.path.translate(_IN_PROPERTIES)},line={self.line}," if self.path else ""
        title = excerpt(self.title, _LONGEST).translate(_IN_PROPERTIES)
        return f"::error {place}title={title}::{excerpt(self.message, _LONGEST).translate(_ESCAPES)}"
