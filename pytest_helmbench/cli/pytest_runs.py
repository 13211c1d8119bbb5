"""Running pytest for a command: its arguments, and its exit code."""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

import click

from pytest_helmbench.benchmarks.authoring import CaseRef, Reading
from pytest_helmbench.cli.at_hand import benchmark_option
from pytest_helmbench.cli.output import (
    complain,
    db_option,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.job import escaped_id

__all__ = ["PYTEST_FAILED", "RunWish", "node_id", "paths_of", "run_first_cases", "run_options", "run_pytest"]


PYTEST_FAILED = 2
"""pytest's exit codes from here on say that the session itself failed."""

_SHOWN = 300
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(frozen=True, slots=True)
class RunWish:
    """What all run commands are told.

    Args:
        path: At or inside a benchmark; None to look as pytest does.
        models: Comma-separated ids; None for models.yml.
        dry_run: Compose and price only.
        db: Results file; None for the project's.
        pytest_args: What stands behind `--`.
    """

    path: Path | None
    models: str | None
    dry_run: bool
    db: Path | None
    pytest_args: tuple[str, ...]


def run_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add what all run commands take."""
    text = "Models under test, comma-separated (default: models.yml)."
    for decorator in (
        click.argument("pytest_args", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST_ARGS]"),
        db_option,
        click.option("--dry-run", is_flag=True, help="Compose and price every case, call nothing."),
        click.option("--models", metavar="A,B", help=text),
        benchmark_option,
    ):
        command = decorator(command)
    return command


def run_first_cases(project: Project, wish: RunWish, loaded: Sequence[Reading]) -> int:
    """Run little of everything; what no selection by code knows is named by its id."""
    by_code = [reading for reading in loaded if reading.is_selected_by_code]
    named = [
        node_id(project, ref)
        for reading in loaded
        if not reading.is_selected_by_code
        for ref in reading.first_cases()
    ]
    code = 0
    if by_code:
        codes = dict.fromkeys(ref.code for reading in by_code for ref in reading.first_cases())
        code = run_pytest(wish, paths_of(project, by_code), list(codes))
    if named and code < PYTEST_FAILED:
        code = max(code, run_pytest(wish, named))
    return code


def node_id(project: Project, ref: CaseRef) -> str:
    """Return pytest's id of all items of a case."""
    return f"{_relative(ref.path, project.start)}::{escaped_id(ref.code)}"


def paths_of(project: Project, loaded: Iterable[Reading]) -> list[str]:
    """Return the folders of benchmarks as pytest is told of them."""
    return [str(_relative(reading.root, project.start)) for reading in loaded]


def run_pytest(wish: RunWish, places: Sequence[str], selection: Sequence[str] = ()) -> int:
    """Run pytest on paths and node ids, and return its exit code."""
    arguments = [*places]
    arguments += [
        f"--helmbench-model={model.strip()}" for model in (wish.models or "").split(",") if model.strip()
    ]
    if selection:
        arguments.append(f"--helmbench-select={','.join(selection)}")
    if wish.dry_run:
        arguments.append("--helmbench-dry-run")
    if wish.db is not None:
        arguments.append(f"--helmbench-db={wish.db}")
    arguments += wish.pytest_args
    complain(f"helmbench: {excerpt(shlex.join(['pytest', *arguments]), _SHOWN)}")
    # Named by its entry point, the plugin also loads where autoload is switched off.
    return _exit_code([sys.executable, "-m", "pytest", "-p", "helmbench", *arguments])


def _relative(path: Path, start: Path) -> Path:
    return path.relative_to(start) if path.is_relative_to(start) else path


def _exit_code(command: Sequence[str]) -> int:
    """Run a command in the foreground; how it handles the signals that end this one decides.

    Each is passed on: a terminal sends Ctrl-C to both, but not who sends it to this process alone. To pytest two of
    them at once are one.
    """
    sys.stdout.flush()
    with subprocess.Popen(command) as process:

        def stop(number: int, _frame: FrameType | None) -> None:
            with suppress(ValueError):  # Windows, where the console tells all of its processes
                process.send_signal(number)

        numbers = [
            getattr(signal, name) for name in _ENDING if hasattr(signal, name)
        ]  # Windows has no SIGHUP
        before = {number: signal.getsignal(number) for number in numbers}
        try:
            for number, handler in before.items():
                if handler is not signal.SIG_IGN:  # `nohup`
                    signal.signal(number, stop)
            code = process.wait()
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    return 128 - code if code < 0 else code
