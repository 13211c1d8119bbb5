"""The summary of a CI job in Markdown: the verdict first, what it rests on behind it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pytest_helmbench.core.case import at_risk
from pytest_helmbench.reports.comparison_markdown import comparison_markdown
from pytest_helmbench.reports.markdown import failure_rows, markdown_report
from pytest_helmbench.reports.markup import folded, pipe_table, plain
from pytest_helmbench.results.run_report import RunReport
from pytest_helmbench.results.standings import ReportedRuns

__all__ = ["LONGEST_SUMMARY", "job_summary"]

LONGEST_SUMMARY = 65_000
"""Bytes. GitHub drops a step's summary of more than 1 MiB whole, and a comment of more than 65,536 characters."""

_FAILURES = 5
_HALF = LONGEST_SUMMARY // 2
_HEAD = ("case", "model", "severity", "rule", "reason", "expected", "observed")


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
    failed = [(report, row) for report in reports for row in report.failures if not row.neutral]
    if not failed:
        return
    worst = sorted(failed, key=lambda one: -at_risk(one[1].severity, one[1].difficulty))[:_FAILURES]
    rows = [
        (case, plain(report.detail.summary.model), *cells)
        for report, row in worst
        for case, *cells, _ in failure_rows(row)
    ]
    count = f"{len(failed)} case{'' if len(failed) == 1 else 's'} failed"
    yield f"**{count}**{', the worst' if len(failed) > _FAILURES else ''}:"
    yield ""
    yield from pipe_table(
        _HEAD, rows, left=("case", "model", "rule", "reason", "expected", "observed"), most=len(rows)
    )
    yield ""
