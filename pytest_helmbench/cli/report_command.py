"""`helmbench report`: a run as Markdown or JSON."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_helmbench.cli.output import (
    CommandError,
    complain,
    db_option,
    say,
)
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.reports.formats import REPORTS
from pytest_helmbench.session.run_report import run_report

__all__ = ["command"]


@click.command("report")
@click.argument("run", default="last")
@click.option("--format", "form", type=click.Choice(list(REPORTS)), default="markdown", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout.")
@click.option("--with-text", is_flag=True, help="Also prompts, replies and the judge's words of failures.")
@db_option
def command(run: str, form: str, output: Path | None, db: Path | None, *, with_text: bool) -> None:
    """Report a run: Markdown that pastes into a pull request, or JSON (`helmbench schema report`)."""
    path = database_of(db)
    run_id = run_of(path, run).summary.id
    found = run_report(path, run_id, with_text=with_text)
    text = REPORTS[form]([found] if found is not None else [], with_text=with_text)
    if output is None:
        say(text.removesuffix("\n"))
        return
    try:
        output.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise CommandError(
            f"{output}: cannot be written: {error.strerror}\n  hint: name another file"
        ) from error
    complain(f"report of run {run_id} in {output}")
