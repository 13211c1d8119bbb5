"""`helmbench list`: what stands in the benchmarks at hand."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_helmbench.cli.at_hand import benchmark_option, listing_lines, readings
from pytest_helmbench.cli.output import (
    as_json_option,
    no_db_option,
    say,
    say_json,
    unprotected_option,
)
from pytest_helmbench.cli.project import Project

__all__ = ["command"]


@click.command("list")
@click.argument("place", type=click.Path(path_type=Path), metavar="[PATH]", required=False)
@benchmark_option
@as_json_option
@no_db_option
@unprotected_option
def command(place: Path | None, path: Path | None, *, as_json: bool, unprotected: bool) -> None:
    """List what stands in the benchmark at PATH: scenarios with their behaviour, evaluation family and number of cases;
    of packs, the rows; of Bench Packs, their scenarios."""
    project = Project.at(Path.cwd())
    settings = project.settings(unprotected=unprotected or None)
    listings = [reading.listing() for reading in readings(project, settings, place or path)]
    if as_json:
        say_json([record for listing in listings for record in listing.records])
        return
    for listing in listings:
        say(*listing_lines(listing))
