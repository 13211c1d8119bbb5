"""`helmbench packs install`: install what a benchmark needs before it can run."""

from __future__ import annotations

import os
from pathlib import Path

import click

from pytest_helmbench.benchmarks.archives import opened
from pytest_helmbench.benchmarks.kind import Installer
from pytest_helmbench.benchmarks.registry import authoring_at, places_of
from pytest_helmbench.cli.output import (
    CommandError,
    no_db_option,
    say,
)

__all__ = ["command"]


@click.group("packs")
def command() -> None:
    """Prepare Bench Packs that are run here."""


@command.command()
@click.argument("path", type=click.Path(path_type=Path))
@click.option("--build", is_flag=True, help="Then run the pack's build script, in a sandbox without network.")
@no_db_option
def install(path: Path, *, build: bool) -> None:
    """Install the npm packages of the Bench Pack at PATH into your cache folder, without running their scripts.

    These are the `dependencies` of its package.json, with zod and smol-toml, which hosts of Bench Packs offer. Nothing
    is written into the pack. Needs npm and its registry. With --build the pack's own script `build` is run on a copy of
    it, and what that makes beside the entry is put into the pack. Without it no script of a pack is ever run.
    """
    path = opened(path, os.environ)
    root = path.parent if path.is_file() else path
    places = places_of(root)
    authoring = None if places is None else authoring_at(root)
    if not isinstance(authoring, Installer):
        raise CommandError(
            f"no Bench Pack at {path}\n  hint: a Bench Pack is a folder with benchlocal.pack.json"
        )
    say(*authoring.install(root, os.environ))
    if build:
        say(*authoring.build(root, os.environ))
