"""`helmbench run-single`, `run-batch` and `run-all`: pytest, called for a command."""

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

from pytest_helmbench.benchmarks.authoring import CaseRef, ReadBenchmark
from pytest_helmbench.cli.lookup import benchmark_option, listing_lines, nearest, readings
from pytest_helmbench.cli.output import CommandError, complain, db_option, say
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.job import escaped_id

_PYTEST_FAILED = 2
"""pytest's exit codes from here on say that the session itself failed."""

_SHOWN = 300
_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")


@dataclass(frozen=True, slots=True)
class _Wish:
    """The options of all run commands; None where one was not given."""

    path: Path | None
    models: str | None
    dry_run: bool
    db: Path | None
    pytest_args: tuple[str, ...]

    def readings(self) -> list[ReadBenchmark]:
        """Return the benchmarks that are to be run."""
        project = Project.at(Path.cwd())
        return readings(project, project.settings(), self.path)


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
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


@click.command("run-single")
@_run_options
def run_single_command(**options: Any) -> int:
    """Run the first case of each scenario.

    In a pack it is the first row of each family, in a Bench Pack the first scenario of each category.
    """
    wish = _Wish(**options)
    return _run_first_cases(wish, wish.readings())


@click.command("run-batch")
@click.option("--scenario", "scenarios", metavar="CODE", multiple=True, help="Scenario to run; repeatable.")
@click.option("--all-scenarios", is_flag=True, help="Run everything.")
@_run_options
def run_batch_command(scenarios: tuple[str, ...], *, all_scenarios: bool, **options: Any) -> int:
    """Run all cases of one scenario, or of all.

    A provider's batches are another matter: `-- --helmbench-batch`.
    """
    if bool(scenarios) is all_scenarios:
        raise CommandError(
            "run-batch needs --scenario CODE or --all-scenarios, and not both\n"
            "  hint: `helmbench list` shows the codes"
        )
    wish = _Wish(**options)
    loaded = wish.readings()
    if not scenarios:
        return _run_pytest(wish, _paths_of(loaded))
    named = [_node_id(ref) for code in scenarios if (ref := _named(loaded, code)) is not None]
    if len(named) == len(scenarios):
        return _run_pytest(wish, named)
    by_code = [reading for reading in loaded if reading.is_selected_by_code]
    _refuse_unknown(scenarios, by_code)
    return _run_pytest(wish, _paths_of(by_code), scenarios)


def _named(loaded: Iterable[ReadBenchmark], code: str) -> CaseRef | None:
    """Return what is named by its id; None for any other code."""
    found = (reading.find(code) for reading in loaded if not reading.is_selected_by_code)
    return next((ref for ref in found if ref is not None), None)


def _refuse_unknown(scenarios: Iterable[str], loaded: Sequence[ReadBenchmark]) -> None:
    """Let no misspelled code pass for one that selects nothing.

    Raises:
        CommandError: A scenario that is in no benchmark at hand.
    """
    for scenario in scenarios:
        if all(reading.find(scenario) is None for reading in loaded):
            known = sorted(code for reading in loaded for code in reading.scenario_codes())
            raise CommandError(f"there is no scenario {scenario}\n  hint: {nearest(scenario, known)}")


@click.command("run-all")
@_run_options
def run_all_command(**options: Any) -> int:
    """Run the first case of each scenario, then everything.

    The exit code is that of the last run; a session that itself fails ends the command.
    """
    wish = _Wish(**options)
    loaded = wish.readings()
    for reading in loaded:
        say(*listing_lines(reading.listing()))
    code = _run_first_cases(wish, loaded)
    return code if code >= _PYTEST_FAILED else _run_pytest(wish, _paths_of(loaded))


def _run_first_cases(wish: _Wish, loaded: Sequence[ReadBenchmark]) -> int:
    """Run little of everything; what no selection by code knows is named by its id."""
    by_code = [reading for reading in loaded if reading.is_selected_by_code]
    by_id = [reading for reading in loaded if not reading.is_selected_by_code]
    named = [_node_id(ref) for reading in by_id for ref in reading.first_cases()]
    code = 0
    if by_code:
        codes = dict.fromkeys(ref.code for reading in by_code for ref in reading.first_cases())
        code = _run_pytest(wish, _paths_of(by_code), list(codes))
    if named and code < _PYTEST_FAILED:
        code = max(code, _run_pytest(wish, named))
    return code


def _node_id(ref: CaseRef) -> str:
    """Return pytest's id of all items of a case."""
    return f"{_relative(ref.path)}::{escaped_id(ref.code)}"


def _paths_of(loaded: Iterable[ReadBenchmark]) -> list[str]:
    """Return the folders of benchmarks as arguments of pytest."""
    return [str(_relative(reading.root)) for reading in loaded]


def _run_pytest(wish: _Wish, places: Sequence[str], selection: Sequence[str] = ()) -> int:
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


def _relative(path: Path) -> Path:
    start = Path.cwd()
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
