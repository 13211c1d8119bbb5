"""The `helmbench` command: the group, its commands in the order of a day's work, and how errors end it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from io import TextIOWrapper

import click

from pytest_helmbench.cli.output import CommandError, complain
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.store.fault import StoreError

_COMMANDS = {
    "init": "authoring_commands",
    "check": "authoring_commands",
    "list": "authoring_commands",
    "prompt": "authoring_commands",
    "run-single": "run_commands",
    "run-batch": "run_commands",
    "run-all": "run_commands",
    "runs": "reading_commands",
    "show": "reading_commands",
    "query": "query_command",
    "compare": "report_commands",
    "judge": "judge_commands",
    "rescore": "judge_commands",
    "report": "report_commands",
    "view": "view_command",
    "export": "exchange_commands",
    "import": "exchange_commands",
    "merge": "exchange_commands",
    "spread": "spread_command",
    "schema": "authoring_commands",
}
"""In the order of a day's work, with the module of each: `run-all` is `run_all_command` there."""

_OTHER_WORDS = {
    "costs": "query",
    "board": "report RUN RUN",
    "gate": "report --gate X",
    "leaderboard": "report RUN RUN --format html -o FILE",
    "run": "run-all",
    "score": "report",
    "serve": "view",
}
"""Names of commands in other programs and earlier versions, with ours."""

_PLACE = "pytest_helmbench.cli"
_USAGE = 2
_INTERRUPTED = 130


class _Commands(click.Group):
    """Imports a command when it is asked for."""

    def list_commands(self, _context: click.Context) -> list[str]:
        """Return the names in order."""
        return list(_COMMANDS)

    def get_command(self, _context: click.Context, name: str) -> click.Command | None:
        """Return a command; None for an option.

        Raises:
            CommandError: There is no command of that name.
        """
        if name.startswith("-"):
            return None
        if name not in _COMMANDS:
            near = _OTHER_WORDS.get(name) or next(iter(get_close_matches(name, _COMMANDS, 1)), "")
            hint = f"did you mean `helmbench {near}`?" if near else "`helmbench --help` says what it takes"
            raise CommandError(f"No such command {name!r}.\n  hint: {hint}")
        module = import_module(f"{_PLACE}.{_COMMANDS[name]}")
        command: click.Command = getattr(module, f"{name.replace('-', '_')}_command")
        return command


@click.group(
    cls=_Commands, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(version("pytest-helmbench"), prog_name="helmbench")
@click.pass_context
def helmbench(context: click.Context) -> None:
    """LLM benchmarks: write them, run them with pytest, read the results."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 for findings, 2 for usage, pytest's for runs.

    Args:
        arguments: Without the program's name; None for those of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a terminal shows an escape where it lacks a character
            stream.reconfigure(errors="backslashreplace")
    try:
        code = helmbench.main(arguments, prog_name="helmbench", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        # Python would complain once more when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except click.Abort:
        return _INTERRUPTED
    except click.ClickException as error:
        complain(_usage_text(error))
        return _USAGE
    except StoreError as error:
        hint = error.hint.replace("--helmbench-db=PATH", "--db PATH")
        complain(f"helmbench: {error.path}: {error.problem}\n  hint: {hint}")
        return _USAGE
    except HelmbenchError as error:
        complain(f"helmbench: {error}")
        return error.code if isinstance(error, CommandError) else _USAGE
    return code if isinstance(code, int) else 0


def _usage_text(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context is not None else "helmbench"
    hint = f"`{command} --help` says what it takes"
    if not isinstance(error, click.NoSuchOption) or context is None:
        return f"helmbench: {error.format_message()}\n  hint: {hint}"
    name = error.option_name.lstrip("-").removeprefix("helmbench-")
    params = {param.name: param for param in context.command.params}
    form = params.get("form")
    known = [option for param in params.values() for option in param.opts if option.startswith("--")]
    near = get_close_matches(f"--{name}", known, 1) if name != "db" else ["--output"] * ("--output" in known)
    if form is not None and name in getattr(form.type, "choices", ()):
        hint = f"did you mean `--format {name} -o FILE`?"
    elif near:
        hint = f"did you mean {near[0]!r}?"
    elif name == "db":
        hint = f"`{command}` does not use a results database"
    elif error.option_name.startswith("--helmbench-"):
        hint = "PYTEST_ADDOPTS or an ini file gives options of pytest"
    return f"helmbench: {error.message}\n  hint: {hint}"
