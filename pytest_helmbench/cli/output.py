"""Output of commands: scrubbed lines, JSON, errors that end them, files, a browser, and the options for it."""

from __future__ import annotations

import os
import sys
import webbrowser
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from shutil import get_terminal_size
from typing import Any

import click

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import ShownTexts, quoted, quoted_page
from pytest_helmbench.core.whole_file import write_atomically
from pytest_helmbench.reports.formats import size_note
from pytest_helmbench.reports.tables import readable_json


class CommandError(HelmbenchError):
    """A command that cannot do what it was asked.

    Args:
        message: A sentence, and a hint on a line of its own.
        code: 2 for a question that has no answer, 1 for something that was found to be wrong.
    """

    def __init__(self, message: str, code: int = 2) -> None:
        self.code = code
        super().__init__(message)


def say(*lines: str) -> None:
    """Print lines to stdout, without control characters, and without commands for the log of a CI."""
    for line in lines:
        click.echo(quoted(line))


def say_whole(text: str, *, is_page: bool = False) -> None:
    """Print a text of a form of its own, such as Markdown or CSV, without its last break; our code begins a page."""
    click.echo(quoted_page(text) if is_page else quoted(text))


def say_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(readable_json(value, indent=2))


def complain(lines: Iterable[str] | str) -> None:
    """Print lines to stderr, as `say` does to stdout."""
    for line in [lines] if isinstance(lines, str) else lines:
        click.echo(quoted(line), err=True)


def terminal_width(elsewhere: int = 100) -> int:
    """Return the columns of the terminal, or those for output that goes elsewhere."""
    return get_terminal_size((elsewhere, 24)).columns


def refuse_unused(hint: str, **options: object) -> None:
    """Refuse options that would have no effect, by name with underscores; a false value is one that was not given.

    Raises:
        CommandError: One was given.
    """
    given = [f"--{name.replace('_', '-')}" for name, value in options.items() if value]
    if given:
        raise CommandError(f"{' and '.join(given)} would have no effect here\n  hint: {hint}")


@contextmanager
def writing(path: Path, hint: str = "name another file") -> Iterator[None]:
    """Say in a sentence that a file cannot be written.

    Raises:
        CommandError: The block could not write it.
    """
    try:
        yield
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror}\n  hint: {hint}") from error


def write_file(path: Path, content: str | bytes) -> None:
    """Write what a command made, as a whole; folders above it are made.

    Raises:
        CommandError: It cannot be written.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, content)


as_json_option = click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")
db_option = click.option(
    "--db",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Results database (default: helmbench.db of the project).",
)
texts_option = click.option(
    "--with-text",
    type=click.Choice([texts.value for texts in ShownTexts]),
    help="Cases whose prompts, replies and judge's words are shown (default: none; all where the data are your own).",
)
unprotected_option = click.option(
    "--unprotected", is_flag=True, help="Run Bench Packs with your rights where there is no sandbox for them."
)


@dataclass(frozen=True, slots=True)
class ReportOutput:
    """Where a report goes.

    Args:
        asked: Of which cases it is to hold texts; None where nothing was said.
        opens: Show it in a browser; where there is no desktop, the command says so instead.
    """

    file: Path | None
    asked: ShownTexts | None
    opens: bool

    def only_for_pages(self, form: str) -> None:
        """Refuse what only a page can do.

        Raises:
            CommandError: Another format was to be opened.
        """
        if self.opens:
            raise CommandError(f"--open shows no {form}\n  hint: --format html writes a page for a browser")

    def write(self, text: str, name: str, texts: ShownTexts, *, is_page: bool) -> None:
        """Print a report, or write it to a file and say so; the name of a page's file says when it holds texts.

        Args:
            texts: Of which cases it holds texts.
            is_page: It is for a browser, so it never goes to a terminal.

        Raises:
            CommandError: The file cannot be written.
        """
        file = self.file
        if file is None and is_page and (self.opens or sys.stdout.isatty()):
            file = Path("report-with-texts.html" if texts.any else "report.html")
        if file is None:
            say_whole(text.removesuffix("\n"), is_page=is_page)
            return
        write_file(file, text)
        complain(f"{name} in {file}{size_note(text)}")
        if self.opens and (os.environ.get("CI") or not sys.stdout.isatty()):
            complain("not opened: --open needs a terminal, and no CI")
        elif self.opens:
            webbrowser.open(file.resolve().as_uri())


def report_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--output`, `--with-text` and `--open`; the command gets them as `to`, a `ReportOutput`."""

    @wraps(command)
    def told(
        *args: object, output: Path | None, with_text: str | None, opens: bool, **options: object
    ) -> object:
        asked = None if with_text is None else ShownTexts(with_text)
        return command(*args, to=ReportOutput(output, asked, opens), **options)

    wrapped: Callable[..., Any] = told
    for option in (
        click.option(
            "--open", "opens", is_flag=True, help="Write the page to a file and open it in a browser."
        ),
        texts_option,
        click.option(
            "--output", "-o", type=click.Path(path_type=Path), metavar="FILE", help="Default: stdout."
        ),
    ):
        wrapped = option(wrapped)
    return wrapped
