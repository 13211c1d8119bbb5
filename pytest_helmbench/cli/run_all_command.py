"""`helmbench run-all`: list, try the first case of everything, then run everything."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from pytest_helmbench.cli.at_hand import listing_lines, readings
from pytest_helmbench.cli.output import (
    say,
)
from pytest_helmbench.cli.project import Project
from pytest_helmbench.cli.pytest_runs import (
    PYTEST_FAILED,
    RunWish,
    paths_of,
    run_first_cases,
    run_options,
    run_pytest,
)

__all__ = ["command"]


@click.command("run-all")
@run_options
def command(**options: Any) -> int:
    """List the scenarios, run the first case of each, then run everything.

    The exit code is that of the last run; a session that itself fails ends the command.
    """
    wish = RunWish(**options)
    project = Project.at(Path.cwd())
    loaded = readings(project, project.settings(), wish.path)
    for reading in loaded:
        say(*listing_lines(reading.listing()))
    code = run_first_cases(project, wish, loaded)
    return code if code >= PYTEST_FAILED else run_pytest(wish, paths_of(project, loaded))
