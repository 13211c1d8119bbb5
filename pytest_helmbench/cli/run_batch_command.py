"""`helmbench run-batch`: all cases of some scenarios, or of all."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from pytest_helmbench.benchmarks.authoring import CaseRef, Reading
from pytest_helmbench.cli.at_hand import nearest, readings
from pytest_helmbench.cli.output import (
    CommandError,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.cli.pytest_runs import (
    RunWish,
    node_id,
    paths_of,
    run_options,
    run_pytest,
)

__all__ = ["command"]


@click.command("run-batch")
@click.option("--scenario", "scenarios", metavar="CODE", multiple=True, help="Scenario to run; repeatable.")
@click.option("--all-scenarios", is_flag=True, help="Run everything.")
@run_options
def command(scenarios: tuple[str, ...], *, all_scenarios: bool, **options: Any) -> int:
    """Run all cases of one scenario, or of all."""
    if bool(scenarios) is all_scenarios:
        raise CommandError(
            "run-batch needs --scenario CODE or --all-scenarios, and not both\n"
            "  hint: `helmbench list` shows the codes"
        )
    wish = RunWish(**options)
    project = Project.at(Path.cwd())
    loaded = readings(project, project.settings(), wish.path)
    if not scenarios:
        return run_pytest(wish, paths_of(project, loaded))
    named = [node_id(project, ref) for code in scenarios if (ref := _named(loaded, code)) is not None]
    if len(named) == len(scenarios):
        return run_pytest(wish, named)
    by_code = [reading for reading in loaded if reading.is_selected_by_code]
    _refuse_unknown(scenarios, by_code)
    return run_pytest(wish, paths_of(project, by_code), scenarios)


def _named(loaded: Iterable[Reading], code: str) -> CaseRef | None:
    """Return what is named by its id; None for any other code."""
    found = (reading.find(code) for reading in loaded if not reading.is_selected_by_code)
    return next((ref for ref in found if ref is not None), None)


def _refuse_unknown(scenarios: Iterable[str], loaded: Sequence[Reading]) -> None:
    """Let no misspelled code pass for one that selects nothing.

    Raises:
        CommandError: A scenario that is in no benchmark at hand.
    """
    for scenario in scenarios:
        if all(reading.find(scenario) is None for reading in loaded):
            known = sorted(code for reading in loaded for code in reading.scenario_codes())
            raise CommandError(f"there is no scenario {scenario}\n  hint: {nearest(scenario, known)}")
