"""`helmbench run-single`: the first case of everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_helmbench.cli.at_hand import readings
from pytest_helmbench.cli.project import Project
from pytest_helmbench.cli.pytest_runs import (
    RunWish,
    run_first_cases,
    run_options,
)

__all__ = ["command"]


@click.command("run-single")
@run_options
def command(**options: Any) -> int:
    """Run the first case of each scenario; of packs the first row of each family, of Bench Packs of each category."""
    wish = RunWish(**options)
    project = Project.at(Path.cwd())
    return run_first_cases(project, wish, readings(project, project.settings(), wish.path))
