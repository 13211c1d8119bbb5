"""`helmbench report`: runs as Markdown, JSON or a page for a browser."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_helmbench.cli.output import db_option
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.cli.report_output import ReportOutput, report_options
from pytest_helmbench.reports.formats import PAGES, REPORTS
from pytest_helmbench.session.run_report import run_report

__all__ = ["command"]


@click.command("report")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--format", "form", type=click.Choice(list(REPORTS)), default="markdown", show_default=True)
@report_options
@db_option
def command(runs: tuple[str, ...], form: str, to: ReportOutput, db: Path | None) -> None:
    """Report runs (numbers; the last one unless named): Markdown that pastes into a pull request, JSON (`helmbench
    schema report`), or one HTML page for a browser."""
    is_page = form in PAGES
    if not is_page:
        to.only_for_pages(form)
    path = database_of(db)
    ids = dict.fromkeys(run_of(path, run).summary.id for run in runs or ("last",))
    found = [run_report(path, run_id, with_text=to.texts.any, all_cases=is_page) for run_id in ids]
    text = REPORTS[form]([report for report in found if report is not None], texts=to.texts)
    numbers = f"run{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
    to.write(text, f"report of {numbers}", is_page=is_page)
