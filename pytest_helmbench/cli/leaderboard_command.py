"""`helmbench leaderboard`: models side by side, benchmark by benchmark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path

import click

from pytest_helmbench.cli.output import CommandError, db_option
from pytest_helmbench.cli.recorded import database_of
from pytest_helmbench.cli.report_output import ReportOutput, report_options
from pytest_helmbench.core.uncollected import uncollected
from pytest_helmbench.reports.formats import BOARDS, runs_page
from pytest_helmbench.results.board_choice import chosen, named
from pytest_helmbench.results.run_report import run_report
from pytest_helmbench.results.standings import Board, boards

__all__ = ["command"]

_HTML = "html"
_FORMS = (*BOARDS, _HTML)


def _switches(command: Callable[..., object]) -> Callable[..., object]:
    """Add `--markdown` and the others, each of which is `--format` with its name."""

    @wraps(command)
    def told(*, form: str | None, **options: object) -> object:
        wanted = {name for name in _FORMS if options.pop(f"as_{name}", False)}
        wanted |= set() if form is None else {form}
        if len(wanted) > 1:
            raise CommandError(
                f"{' and '.join(sorted(wanted))}: one form at a time\n  hint: leave one of them"
            )
        return command(form=next(iter(wanted), "text"), **options)

    wrapped: Callable[..., object] = told
    for name in _FORMS[:0:-1]:
        wrapped = click.option(f"--{name}", f"as_{name}", is_flag=True, help=f"--format {name}.")(wrapped)
    return click.option("--format", "form", type=click.Choice(_FORMS), help="Default: text.")(wrapped)


@click.command("leaderboard")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@report_options
@db_option
@_switches
def command(runs: tuple[str, ...], form: str, to: ReportOutput, db: Path | None) -> None:
    """Show models side by side: score with interval, cost, speed, and which pairs are told apart.

    A RUN is a number, `last`, FILE.db or FILE.db#3; `last` and a file stand for their session. Without one, the newest
    complete run of every model and benchmark of the database is taken.

    csv is a line per run, latex needs no package, html is the page of these runs with all their cases.
    """
    if form != _HTML:
        to.only_for_pages(form)
    path = database_of(db)
    standings = named(runs, path, Path.cwd()) if runs else chosen(path)
    if not standings:
        raise CommandError(
            f"{path} holds no run with a score\n  hint: pytest benchmark --helmbench-model=baseline/lexical makes one"
        )
    with uncollected():
        found = boards(standings)
        text = _page(found, to) if form == _HTML else BOARDS[form](found)
    to.write(text, f"leaderboard of {len(standings)} run{'s' * (len(standings) != 1)}", is_page=form == _HTML)


def _page(found: Sequence[Board], to: ReportOutput) -> str:
    refs = [one.ref for board in found for one in board.standings]
    reports = [run_report(ref.path, ref.run_id, with_text=to.texts.any, all_cases=True) for ref in refs]
    return runs_page([report for report in reports if report is not None], to.texts, found)
