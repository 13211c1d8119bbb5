"""The summary of a CI job, and the annotations beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.reports.comparison_lines import comparison_markdown
from pytest_helmbench.reports.markdown import failure_rows, markdown_report
from pytest_helmbench.reports.tables import folded, pipe_table, plain
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import ReportedRuns

LONGEST_SUMMARY = 65_000
"""Bytes. GitHub drops a step's summary of more than 1 MiB whole, and a comment of more than 65,536 characters."""

_FAILURES = 5
_HALF = LONGEST_SUMMARY // 2
_HEAD = ("case", "model", "points lost", "severity", "rule", "reason", "expected", "observed")


def job_summary(verdicts: Sequence[str], found: ReportedRuns) -> str:
    """Return verdicts, comparisons, the worst failures, then everything else behind a click; no prompts or replies.

    Args:
        verdicts: The last lines of the session, one per run.
        found: Its runs, with their comparisons.

    Returns:
        At most `LONGEST_SUMMARY` bytes: tables are cut, and the breakdowns left out where even so there is no room.
    """
    lines = ["## helmbench", "", *(f"- {plain(line)}" for line in verdicts), ""]
    comparisons = [report.comparison for report in found.runs if report.comparison is not None]
    compared = comparison_markdown(comparisons)
    if len(compared.encode()) > _HALF:
        compared = "The comparisons are too long for this page: `helmbench compare` prints them.\n"
    lines += [compared] if comparisons else []
    lines += _worst(found.runs)
    first = "\n".join(lines)
    room = LONGEST_SUMMARY - len(first.encode()) - 200
    rest = replace(found, runs=tuple(replace(report, comparison=None) for report in found.runs))
    whole = markdown_report(rest, longest=room) if found.runs else ""
    if not whole or len(whole.encode()) > room:
        return first + "\n"
    return (
        "\n".join([first, *folded("Scores by part, all failures, costs, settings", whole.split("\n"))]) + "\n"
    )


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
