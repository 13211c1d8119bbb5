"""Commands that run: they choose the options and let pytest do the rest."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any

import click

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackOutline
from pytest_helmbench.benchmarks.packs.format.pack_loader import Pack
from pytest_helmbench.benchmarks.scenario_trees.tree import ScenarioTree
from pytest_helmbench.cli.hosted import find_scenario, first_scenarios, manifest_of
from pytest_helmbench.cli.output import CommandError, complain, db_option, say
from pytest_helmbench.cli.packs import find_row, first_rows
from pytest_helmbench.cli.project import Project
from pytest_helmbench.cli.trees import (
    AnyBenchmark,
    benchmark_option,
    benchmark_table,
    nearest,
    read_benchmarks,
)
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.engine.job import escaped_id

__all__ = ["run_all", "run_batch", "run_single"]

_USAGE = 2  # pytest's exit codes from here on say that the session itself failed
_SHOWN = 300


@dataclass(frozen=True, slots=True)
class _Wanted:
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


def _run_options(command: Callable[..., Any]) -> Callable[..., Any]:
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
def run_single(**options: Any) -> int:
    """Run the first case of each scenario; of packs the first row of each family, of Bench Packs of each category."""
    wanted = _Wanted(**options)
    project = Project.at(Path.cwd())
    return _run_first(project, wanted, _loaded(project, wanted))


@click.command("run-batch")
@click.option("--scenario", "scenarios", metavar="CODE", multiple=True, help="Scenario to run; repeatable.")
@click.option("--all-scenarios", is_flag=True, help="Run everything.")
@_run_options
def run_batch(scenarios: tuple[str, ...], *, all_scenarios: bool, **options: Any) -> int:
    """Run all cases of one scenario, or of all."""
    if bool(scenarios) is all_scenarios:
        raise CommandError(
            "run-batch needs --scenario CODE or --all-scenarios, and not both\n"
            "  hint: `helmbench list` shows the codes"
        )
    wanted = _Wanted(**options)
    project = Project.at(Path.cwd())
    loaded = _loaded(project, wanted)
    named = [node_id for code in scenarios if (node_id := _named(project, loaded, code)) is not None]
    if named and len(named) == len(scenarios):
        return _run(wanted, named)
    trees = [item for item in loaded if isinstance(item, ScenarioTree)]
    selection = _known(scenarios, trees)
    return _run(wanted, _paths(project, trees if selection else loaded), selection)


def _named(project: Project, loaded: Sequence[AnyBenchmark], code: str) -> str | None:
    """Return the node id of a row, or of a scenario of a Bench Pack; None for any other code."""
    row = find_row([item for item in loaded if isinstance(item, Pack)], code)
    if row is not None:
        return _node_id(project, row[1].path, code)
    found = find_scenario([item for item in loaded if isinstance(item, BenchPackOutline)], code)
    return None if found is None else _node_id(project, manifest_of(found[0]), code)


@click.command("run-all")
@_run_options
def run_all(**options: Any) -> int:
    """List the scenarios, run the first case of each, then run everything.

    The exit code is that of the last run; a session that itself fails ends the command.
    """
    wanted = _Wanted(**options)
    project = Project.at(Path.cwd())
    loaded = _loaded(project, wanted)
    no_context = project.settings().add_no_context
    for benchmark in loaded:
        say(*benchmark_table(benchmark, add_no_context=no_context))
    code = _run_first(project, wanted, loaded)
    return code if code >= _USAGE else _run(wanted, _paths(project, loaded))


def _loaded(project: Project, wanted: _Wanted) -> list[AnyBenchmark]:
    return read_benchmarks(project, wanted.path)


def _run_first(project: Project, wanted: _Wanted, loaded: Sequence[AnyBenchmark]) -> int:
    """Run little of everything; what no selection by code knows is named by its id."""
    trees = [item for item in loaded if isinstance(item, ScenarioTree)]
    rows = []
    for item in loaded:
        if isinstance(item, Pack):
            rows += [_node_id(project, ref.path, ref.id) for ref in first_rows(item)]
        elif isinstance(item, BenchPackOutline):
            rows += [_node_id(project, manifest_of(item), found.id) for found in first_scenarios(item)]
    code = 0
    if trees:
        code = _run(wanted, _paths(project, trees), _first_cases(trees))
    if rows and code < _USAGE:
        code = max(code, _run(wanted, rows))
    return code


def _node_id(project: Project, path: Path, code: str) -> str:
    return f"{_relative(path, project.start)}::{escaped_id(code)}"


def _paths(project: Project, loaded: Iterable[AnyBenchmark]) -> list[str]:
    return [str(_relative(item.root, project.start)) for item in loaded]


def _run(wanted: _Wanted, places: Sequence[str], selection: Sequence[str] = ()) -> int:
    """Run pytest on paths and node ids, and return its exit code."""
    arguments = [*places]
    arguments += [
        f"--helmbench-model={model.strip()}" for model in (wanted.models or "").split(",") if model.strip()
    ]
    if selection:
        arguments.append(f"--helmbench-select={','.join(selection)}")
    if wanted.dry_run:
        arguments.append("--helmbench-dry-run")
    if wanted.db is not None:
        arguments.append(f"--helmbench-db={wanted.db}")
    arguments += wanted.pytest_args
    complain(f"helmbench: {excerpt(' '.join(['pytest', *arguments]), _SHOWN)}")
    # Named by its entry point, the plugin also loads where autoload is switched off.
    return _exit_code([sys.executable, "-m", "pytest", "-p", "helmbench", *arguments])


def _first_cases(loaded: Iterable[ScenarioTree]) -> list[str]:
    """Return the code of the first case of each scenario; of a broken one its own, since it must not vanish."""
    codes: list[str] = []
    for benchmark in loaded:
        codes += [next(scenario.combinations()).code for scenario in benchmark.scenarios.values()]
        codes += [code for code in benchmark.broken.values() if code.count("-") == 2]
    return list(dict.fromkeys(codes))


def _known(scenarios: Sequence[str], loaded: Iterable[ScenarioTree]) -> Sequence[str]:
    codes = {
        code
        for benchmark in loaded
        for code in (*(item.code for item in benchmark.scenarios.values()), *benchmark.broken.values())
    }
    for scenario in scenarios:
        if scenario not in codes:
            raise CommandError(f"there is no scenario {scenario}\n  hint: {nearest(scenario, sorted(codes))}")
    return scenarios


def _relative(path: Path, start: Path) -> Path:
    return path.relative_to(start) if path.is_relative_to(start) else path


def _exit_code(command: Sequence[str]) -> int:
    """Run a command in the foreground; its own handling of Ctrl-C decides, and a stop is passed on to it."""
    sys.stdout.flush()
    with subprocess.Popen(command) as process:

        def stop(number: int, _frame: FrameType | None) -> None:
            process.send_signal(number)

        before = signal.signal(signal.SIGTERM, stop)
        try:
            while True:
                try:
                    code = process.wait()
                    break
                except KeyboardInterrupt:
                    continue  # the terminal has told pytest, too
        finally:
            signal.signal(signal.SIGTERM, before)
    return 128 - code if code < 0 else code
