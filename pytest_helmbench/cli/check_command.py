"""`helmbench check`: every problem of a benchmark, without asking a model."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import click

from pytest_helmbench.benchmarks.authoring import Checked, counted
from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.benchmarks.places import absolute, benchmark_root
from pytest_helmbench.benchmarks.registry import authoring_at, meant_places
from pytest_helmbench.cli.lookup import kept_values
from pytest_helmbench.cli.output import (
    as_json_option,
    say,
    say_json,
    unprotected_option,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError, Problem, UnreadableBenchmarkError, without_effects
from pytest_helmbench.files.anchors_file import anchors_path
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.run.judge_check import anchored_rules
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.targets import odd_models
from pytest_helmbench.scoring.changes import LEAST_CHANGED
from pytest_helmbench.scoring.intervals import CaseStake, Precision, precision
from pytest_helmbench.scoring.rows import exact


@dataclass(frozen=True, slots=True)
class _Found:
    """All that was found in one benchmark, and what its kind says of it: None where it cannot be read."""

    root: Path
    checked: Checked | None
    errors: tuple[Problem, ...]
    warnings: tuple[Problem, ...]


@click.command("check")
@click.argument("path", type=click.Path(path_type=Path), required=False)
@as_json_option
@unprotected_option
@click.option("--attack", is_flag=True, help="Try what solves nothing on each row of packs: none may pass.")
def check_command(path: Path | None, *, as_json: bool, unprotected: bool, attack: bool) -> int:
    """Report every problem of a benchmark by file and line.

    No model is called. The rows of a pack are tried with their own answers: right ones must pass, wrong ones must
    fail. Node loads a Bench Pack and lists its scenarios.

    For a tree the command prints the effective numbers of perturbations and cases, and where one more helps most.

    The exit code is 1 when there are errors. Warnings never change it.
    """
    settings = Project.at(Path.cwd()).settings(unprotected=unprotected or None)
    with kept_values(settings) as values:
        session = replace(values, attacks=attack)
        found = [_checked(root, session, _anchor_problems(root, settings)) for root in _places(path)]
    if as_json:
        say_json([entry for item in found for entry in _records(item)])
    else:
        for item in found:
            say(*_report(item))
    return 1 if any(item.errors for item in found) else 0


def _places(path: Path | None) -> tuple[Path, ...]:
    if path is not None and benchmark_root(absolute(path)) is None and meant_places(path) is not None:
        return (path,)  # its files tell that it was meant as a benchmark; its kind says what is wrong with it
    return Project.at(Path.cwd()).benchmarks(path)


def _checked(root: Path, session: SessionValues, anchors: tuple[Problem, ...]) -> _Found:
    """Check a benchmark, or what was meant as one."""
    models, odd_models = _models_problems(root)
    models += anchors
    authoring = authoring_at(root)
    try:
        found = authoring.check(root, session)
    except UnreadableBenchmarkError as error:
        return _Found(root, None, (*error.problems, *models), odd_models)
    errors = without_effects(found.errors, found.errors)
    return _Found(root, found, (*errors, *models), (*found.warnings, *odd_models))


def _anchor_problems(root: Path, settings: Settings) -> tuple[Problem, ...]:
    """Return what is wrong with the anchors of a benchmark."""
    path = anchors_path(root)
    if path is None:
        return ()
    library = Library(settings, os.environ, lambda _sentence: None)
    try:
        anchored_rules(library.load(root))
    except UnreadableBenchmarkError as error:
        return tuple(problem for problem in error.problems if problem.path == path)
    except HelmbenchError:
        return ()  # problems of the benchmark itself are reported beside this
    finally:
        library.end()
    return ()


def _models_problems(root: Path) -> tuple[tuple[Problem, ...], tuple[Problem, ...]]:
    """Return the errors of models.yml, and ids that need a base URL on the command line to work."""
    path = next((path for path in (root / "models.yml", root / "models.yaml") if path.is_file()), None)
    if path is None:
        return (), ()
    try:
        return (), tuple(odd_models(path))
    except UnreadableBenchmarkError as error:
        return error.problems, ()


def _report(item: _Found) -> Iterator[str]:
    base = Path.cwd()
    for label, problems in (("error", item.errors), ("warning", item.warnings)):
        for problem in problems:
            yield replace(problem, message=f"{label}: {problem.message}").text(base)
    counts = f"{counted(len(item.errors), 'error')}, {counted(len(item.warnings), 'warning')}"
    checked = item.checked
    if checked is None:
        yield f"{item.root}: cannot be read; {counts}"
        return
    yield f"{checked.healthy}; {counts}"
    if checked.attacks:
        yield checked.attacks
    if checked.broken:
        yield f"{checked.broken}: they count as planned and not judged"
    stakes = (CaseStake(one.behaviour, exact(one.weight), one.unit, one.points) for one in checked.stakes)
    found = precision(stakes)
    if found is not None:
        yield _precision_line(found)


def _precision_line(found: Precision) -> str:
    line = (
        f"effective: {found.effective_units:.1f} of {counted(found.units, 'perturbation')},"
        f" {found.effective_cases:.1f} of {counted(found.cases, 'case')};"
        f" add perturbations to {found.best} first (one more: {found.then:.1f})"
    )
    if found.units < LEAST_CHANGED:
        line += f"; no regression of the run can be shown: {LEAST_CHANGED} perturbations are needed"
    return line


def _records(item: _Found) -> Iterator[dict[str, object]]:
    for label, problems in (("error", item.errors), ("warning", item.warnings)):
        for problem in problems:
            told = {key: getattr(problem, key) for key in ("line", "message", "hint")}
            yield {"level": label, "path": str(problem.path), **told}
