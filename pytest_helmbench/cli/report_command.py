"""`helmbench report`: runs as Markdown, JSON or a page for a browser."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, db_option
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.cli.report_output import ReportOutput, report_options
from pytest_helmbench.core.uncollected import uncollected
from pytest_helmbench.reports.formats import PAGES, REPORTS
from pytest_helmbench.results.baselines import parse_limits
from pytest_helmbench.results.comparing import RunComparison
from pytest_helmbench.results.run_addresses import resolve
from pytest_helmbench.results.run_report import RunReport, run_report
from pytest_helmbench.results.stored_comparisons import comparison_of_session, comparison_with
from pytest_helmbench.store.run_queries import runs as recorded_runs

__all__ = ["command"]


@click.command("report")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--format", "form", type=click.Choice(list(REPORTS)), default="markdown", show_default=True)
@click.option(
    "--baseline", metavar="RUN", help="Hold the runs against this one (default: as their session did)."
)
@click.option("--max-drop", metavar="X", help="Drop that is allowed: 0.02 or P1-B4=0.05,0.02 (default: 0).")
@report_options
@db_option
def command(
    runs: tuple[str, ...],
    form: str,
    baseline: str | None,
    max_drop: str | None,
    to: ReportOutput,
    db: Path | None,
) -> None:
    """Report runs (numbers; all of the last session unless named): Markdown that pastes into a pull request, JSON
    (`helmbench schema report`), or one HTML page for a browser."""
    is_page = form in PAGES
    if not is_page:
        to.only_for_pages(form)
    path = database_of(db)
    ids = dict.fromkeys(run_of(path, run).summary.id for run in runs) or _of_last_session(path)
    with uncollected():
        found = [run_report(path, run_id, with_text=to.texts.any, all_cases=is_page) for run_id in ids]
        reports = [report for report in found if report is not None]
        compared = _comparisons(path, reports, baseline, max_drop)
        text = REPORTS[form](
            [replace(report, comparison=one) for report, one in zip(reports, compared, strict=True)],
            texts=to.texts,
        )
    numbers = f"run{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
    to.write(text, f"report of {numbers}", is_page=is_page)


def _of_last_session(path: Path) -> dict[int, None]:
    session = run_of(path, "last").summary.session_id
    return dict.fromkeys(run.id for run in recorded_runs(path) if run.session_id == session)


def _comparisons(
    path: Path, reports: Sequence[RunReport], baseline: str | None, max_drop: str | None
) -> Sequence[RunComparison | None]:
    """Return the comparison of each run: with the baseline that is named, or that of its session."""
    if baseline is None:
        if max_drop is not None:
            raise CommandError(
                "--max-drop says how far a score may drop, but not below which run\n  hint: add --baseline RUN"
            )
        return [comparison_of_session(path, report.detail) for report in reports]
    before = resolve(baseline, path, Path.cwd())
    limits = parse_limits(max_drop, "--max-drop")
    beside = [report.detail.summary.key for report in reports]
    return [comparison_with(path, report.detail, before, limits, beside) for report in reports]
