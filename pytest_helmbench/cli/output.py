"""Output of commands: scrubbed lines on stdout, JSON, errors that end them; `--json` and `--db`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import quoted, scrub
from pytest_helmbench.core.whole_file import put_in_place
from pytest_helmbench.reports.readable_json import readable_json

__all__ = [
    "CommandError",
    "as_json_option",
    "complain",
    "db_option",
    "no_db_option",
    "say",
    "say_json",
    "say_whole",
    "unprotected_option",
    "write_file",
]

_Command = TypeVar("_Command", bound=Callable[..., Any])
_Decorator = Callable[[_Command], _Command]


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
    """Print a text of a form of its own, such as Markdown or CSV, to stdout, as `say` does.

    Args:
        text: Without the break at its end.
        is_page: It is a page for a browser, where such commands stand for something else.
    """
    click.echo(scrub(text) if is_page else quoted(text))


def say_json(value: object) -> None:
    """Print a value as indented JSON."""
    click.echo(readable_json(value, indent=2))


def complain(lines: Iterable[str] | str) -> None:
    """Print lines to stderr, as `say` does to stdout."""
    for line in [lines] if isinstance(lines, str) else lines:
        click.echo(quoted(line), err=True)


def write_file(path: Path, content: str | bytes) -> None:
    """Write what a command made, as a whole; folders above it are made.

    Raises:
        CommandError: It cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        put_in_place(path, content)
    except OSError as error:
        raise CommandError(
            f"{path}: cannot be written: {error.strerror}\n  hint: name another file"
        ) from error


def as_json_option(command: _Command) -> _Command:
    """Add `--json` to a command that prints a table."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON instead of a table.")(command)


def db_option(command: _Command) -> _Command:
    """Add `--db` to a command that uses the results database."""
    text = "Results database (default: helmbench.db of the project)."
    return click.option("--db", type=click.Path(path_type=Path), metavar="PATH", help=text)(command)


def unprotected_option(command: _Command) -> _Command:
    """Add `--unprotected`."""
    text = "Run Bench Packs with your rights where there is no sandbox for them."
    return click.option("--unprotected", is_flag=True, help=text)(command)


def no_db_option(command: _Command) -> _Command:
    """Let a command that needs no database take `--db` as all others do."""
    return click.option("--db", metavar="PATH", expose_value=False, hidden=True)(command)
