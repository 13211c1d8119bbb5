"""The `helmbench` command: the group, its commands in the order of a day's work, and how errors end it."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.metadata import version
from typing import TextIO

import click

from pytest_helmbench.cli.authoring import check, init, print_schema
from pytest_helmbench.cli.install_packages import packs
from pytest_helmbench.cli.output import CommandError, complain
from pytest_helmbench.cli.records import export, list_runs, show, show_costs
from pytest_helmbench.cli.running import run_all, run_batch, run_single
from pytest_helmbench.cli.scoring import gate, report, rescore_run, score
from pytest_helmbench.cli.trees import list_scenarios, prompt
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.store.fault import StoreError

__all__ = ["main"]

_COMMANDS = (
    init,
    check,
    list_scenarios,
    prompt,
    run_single,
    run_batch,
    run_all,
    list_runs,
    show,
    show_costs,
    score,
    gate,
    rescore_run,
    report,
    export,
    print_schema,
    packs,
)
_USAGE = 2
_INTERRUPTED = 130


class _InOrder(click.Group):
    """Lists its commands as they were added."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's
        """Return the names in order."""
        return list(self.commands)


@click.group(
    cls=_InOrder, invoke_without_command=True, context_settings={"help_option_names": ["-h", "--help"]}
)
@click.version_option(version("pytest-helmbench"), prog_name="helmbench")
@click.pass_context
def helmbench(context: click.Context) -> None:
    """LLM benchmarks: write them, run them with pytest, read the record."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


for _command in _COMMANDS:
    helmbench.add_command(_command)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 for findings, 2 for usage, pytest's for runs.

    Args:
        arguments: Without the program's name; None for those of the process.
    """
    for stream in (sys.stdout, sys.stderr):
        _never_fail_to_encode(stream)
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
    except CommandError as error:
        complain(f"helmbench: {error}")
        return error.code
    except StoreError as error:
        hint = error.hint.replace("--helmbench-db=PATH", "--db PATH")
        complain(f"helmbench: {error.path}: {error.problem}\n  hint: {hint}")
        return _USAGE
    except HelmbenchError as error:
        complain(f"helmbench: {error}")
        return _USAGE
    return code if isinstance(code, int) else 0


def _usage_text(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    command = context.command_path if context is not None else "helmbench"
    return f"helmbench: {error.format_message()}\n  hint: `{command} --help` says what it takes"


def _never_fail_to_encode(stream: TextIO) -> None:
    """A terminal in another encoding shows an escape where it lacks a character."""
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
