"""Destinations of a command's report: stdout, a file, a browser; and of which cases it holds texts."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from pytest_helmbench.cli.output import CommandError, complain, say_whole, write_file
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import ShownTexts
from pytest_helmbench.reports.session_reports import size_note

__all__ = ["ReportOutput", "report_options"]

_Command = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class ReportOutput:
    """Where a report goes.

    Args:
        file: None for stdout.
        texts: Of which cases it holds texts.
        opens: Show it in a browser; where nobody sits before one, that is said instead.
    """

    file: Path | None
    texts: ShownTexts
    opens: bool

    def only_for_pages(self, form: str) -> None:
        """Refuse what only a page can do.

        Raises:
            CommandError: Another format was to be opened.
        """
        if self.opens:
            raise CommandError(f"--open shows no {form}\n  hint: --format html writes a page for a browser")

    def write(self, text: str, name: str, *, is_page: bool) -> None:
        """Print a report, or write it to a file and say so.

        Args:
            text: The report.
            name: What it is.
            is_page: It is for a browser, so it never goes to a terminal; the name of its file says when it holds texts.

        Raises:
            CommandError: The file cannot be written.
        """
        file = self.file
        if file is None and is_page and (self.opens or sys.stdout.isatty()):
            file = Path("report-with-texts.html" if self.texts.any else "report.html")
        if file is None:
            say_whole(text.removesuffix("\n"), is_page=is_page)
            return
        write_file(file, text)
        complain(f"{name} in {file}{size_note(text)}")
        if self.opens and (os.environ.get("CI") or not sys.stdout.isatty()):
            complain("not opened: --open needs a terminal, and no CI")
        elif self.opens:
            webbrowser.open(file.resolve().as_uri())


def report_options(command: _Command) -> _Command:
    """Add `--output`, `--text`, `--with-text` and `--open`; the command gets them as `to`, a `ReportOutput`."""

    @wraps(command)
    def told(
        *args: object, output: Path | None, text: str | None, with_text: bool, opens: bool, **options: object
    ) -> object:
        return command(
            *args, to=ReportOutput(output, _shown_texts(text, with_text=with_text), opens), **options
        )

    wrapped: _Command = told
    for option in (
        click.option(
            "--open", "opens", is_flag=True, help="Write the page to a file and open it in a browser."
        ),
        click.option(
            "--text",
            type=click.Choice([texts.value for texts in ShownTexts]),
            help="Of which cases a page holds prompts and replies (default: none).",
        ),
        click.option(
            "--with-text", is_flag=True, help="Also prompts, replies and the judge's words: --text=all."
        ),
        click.option(
            "--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout."
        ),
    ):
        wrapped = option(wrapped)
    return wrapped


def _shown_texts(text: str | None, *, with_text: bool) -> ShownTexts:
    if with_text and text not in (None, ShownTexts.ALL):
        raise CommandError(
            f"--with-text and --text={text} are not the same\n  hint: --with-text is --text=all; give one of them"
        )
    return ShownTexts(text or (ShownTexts.ALL if with_text else ShownTexts.NONE))
