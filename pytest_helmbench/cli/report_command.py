"""`helmbench report`: runs as Markdown, JSON or a page for a browser."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path

import click

from pytest_helmbench.cli.output import (
    CommandError,
    complain,
    db_option,
    say,
    text_option,
)
from pytest_helmbench.cli.recorded import database_of, run_of
from pytest_helmbench.core.shown_texts import ShownTexts
from pytest_helmbench.reports.formats import REPORTS
from pytest_helmbench.reports.report_file import put_in_place, size_note
from pytest_helmbench.session.run_report import RunReport, run_report

__all__ = ["command", "page_file", "shown_texts", "written"]


@click.command("report")
@click.argument("runs", nargs=-1, metavar="[RUN]...")
@click.option("--format", "form", type=click.Choice(list(REPORTS)), default="markdown", show_default=True)
@click.option("--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout.")
@click.option("--with-text", is_flag=True, help="Also prompts, replies and the judge's words of failures.")
@text_option
@click.option("--open", "opens", is_flag=True, help="Write the page to a file and open it in a browser.")
@db_option
def command(
    runs: tuple[str, ...],
    form: str,
    output: Path | None,
    text: str | None,
    db: Path | None,
    *,
    with_text: bool,
    opens: bool,
) -> None:
    """Report runs (numbers; the last one unless named): Markdown that pastes into a pull request, JSON (`helmbench
    schema report`), or one HTML page for a browser."""
    texts = shown_texts(text, with_text=with_text)
    chosen = REPORTS[form]
    is_page = chosen.all_cases
    if opens and not is_page:
        raise CommandError(f"--open shows no {form}\n  hint: --format html writes a page for a browser")
    path = database_of(db)
    ids = dict.fromkeys(run_of(path, run).summary.id for run in runs or ("last",))
    found = [run_report(path, run_id, with_text=texts.any, all_cases=chosen.all_cases) for run_id in ids]
    reports: list[RunReport] = [report for report in found if report is not None]
    if is_page:
        output = page_file(output, texts, opens=opens)
    shown = "" if chosen.report is None else chosen.report(reports, texts=texts)
    numbers = f"run{'s' if len(ids) > 1 else ''} {', '.join(map(str, ids))}"
    written(shown, output, f"report of {numbers}", opens=opens)


def shown_texts(text: str | None, *, with_text: bool = False) -> ShownTexts:
    """Return of which cases texts are shown.

    Args:
        text: What `--text` says; None for nothing.
        with_text: `--with-text` was given, which is `--text=all`.

    Raises:
        CommandError: Both were given, and are not the same.
    """
    if with_text and text not in (None, ShownTexts.ALL):
        raise CommandError(
            f"--with-text and --text={text} are not the same\n  hint: --with-text is --text=all; give one of them"
        )
    return ShownTexts(text or (ShownTexts.ALL if with_text else ShownTexts.NONE))


def page_file(output: Path | None, texts: ShownTexts, *, opens: bool) -> Path | None:
    """Return where a page goes: never to a terminal; a name says when it holds texts."""
    if output is not None or not (opens or sys.stdout.isatty()):
        return output
    return Path("report-with-texts.html" if texts.any else "report.html")


def written(text: str, output: Path | None, name: str, *, opens: bool = False) -> None:
    """Print a report, or write it to a file and say so.

    Args:
        text: The report.
        output: None for stdout.
        name: What it is.
        opens: Show it in a browser; where nobody sits before one, that is said instead.

    Raises:
        CommandError: The file cannot be written.
    """
    if output is None:
        say(text.removesuffix("\n"))
        return
    try:
        put_in_place(output, text)
    except OSError as error:
        raise CommandError(
            f"{output}: cannot be written: {error.strerror}\n  hint: name another file"
        ) from error
    complain(f"{name} in {output}{size_note(text)}")
    if not opens:
        return
    if os.environ.get("CI") or not sys.stdout.isatty():
        complain("not opened: --open needs a terminal, and no CI")
    else:
        webbrowser.open(output.resolve().as_uri())
