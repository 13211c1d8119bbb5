"""`helmbench packs install`: install what a Bench Pack needs from npm."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from pytest_helmbench.benchmarks.bench_packs.package_install import InstalledPackages, install_packages
from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST, is_bench_pack
from pytest_helmbench.cli.output import CommandError, no_db_option, say

__all__ = ["packs"]


@click.group()
def packs() -> None:
    """Prepare Bench Packs that are run here."""


@packs.command()
@click.argument("path", type=click.Path(path_type=Path))
@no_db_option
def install(path: Path) -> None:
    """Install the npm packages of the Bench Pack at PATH into your cache folder, without running their scripts.

    These are the `dependencies` of its package.json, with zod and smol-toml, which hosts of Bench Packs offer. Nothing
    is written into the pack. Needs npm and its registry.
    """
    root = path.parent if path.name == MANIFEST else path
    if not is_bench_pack(root):
        raise CommandError(f"no Bench Pack at {path}\n  hint: a Bench Pack is a folder with {MANIFEST}")
    say(*_report(install_packages(root, os.environ)))


def _report(done: InstalledPackages) -> Iterator[str]:
    listed = ", ".join(f"{name} {version}" for name, version in done.versions.items())
    yield f"{'installed before' if done.before else 'installed'}: {listed}"
    yield f"  in {done.folder}" + (" (remove it to install anew)" if done.before else "")
    for name, source in done.needs.left_out:
        yield f"left out: {name} ({source}): only packages of a registry are installed; bundle it with the pack"
