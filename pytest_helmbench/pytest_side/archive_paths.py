"""Archives among the paths to run: the benchmark in one stands in its place, and its items are called by its name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.places import ARCHIVES, archive_of, closed_files
from pytest_helmbench.core.problem import UnreadableBenchmarkError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.pytest_side.own_files import refuse_conftests

_UNPACKED: pytest.StashKey[dict[Path, Path]] = pytest.StashKey()
"""The archive of each folder that one was unpacked to."""

_UNREAD = (".zip", ".tar", ".tar.bz2", ".tar.xz", ".tar.zst", ".tbz2", ".txz", ".7z")


def unpack_archives(config: pytest.Config) -> None:
    """Put the benchmark that an archive holds in its place among the paths to run.

    Raises:
        pytest.UsageError: It cannot be read, or brings a conftest.py, which nobody has looked for yet.
    """
    start = config.invocation_params.dir
    for argument in config.args:
        if argument.lower().endswith(_UNREAD) and (start / argument).is_file():
            raise pytest.UsageError(
                f"{scrub(argument)}: this form of archive is not read\n"
                f"  hint: {' and '.join(ARCHIVES)} are; or unpack it and give the folder"
            )
    archives = {argument: archive_of(start / argument.partition("::")[0]) for argument in config.args}
    if not any(archives.values()):
        return
    from pytest_helmbench.benchmarks.archives import opened  # few sessions have one

    try:
        folders = {
            archive: opened(archive, os.environ) for archive in archives.values() if archive is not None
        }
    except UnreadableBenchmarkError as error:
        raise pytest.UsageError(
            scrub("\n".join(problem.text(start) for problem in error.problems))
        ) from error
    refuse_conftests(config, folders.values(), below=True)
    # Archives that hold the same share a folder: the first one names it.
    config.stash[_UNPACKED] = {folder: archive for archive, folder in reversed(folders.items())}
    config.args[:] = [
        argument if archive is None else _inside(start, argument, archive, folders[archive])
        for argument, archive in ((argument, archives[argument]) for argument in config.args)
    ]


def id_in_archive(config: pytest.Config, path: Path) -> str | None:
    """Return the id of a file of an archive, `pack.tgz/benchlocal.pack.json`; None for a file of none."""
    for folder, archive in config.stash.get(_UNPACKED, {}).items():
        if path.is_relative_to(folder):
            return Path(os.path.relpath(archive, config.rootpath), path.relative_to(folder)).as_posix()
    return None


def _inside(start: Path, argument: str, archive: Path, folder: Path) -> str:
    """Return an argument in an archive as one in its folder; an item needs no file where there is only one."""
    path, colons, item = argument.partition("::")
    place = folder / (start / path).relative_to(archive)
    files = closed_files(folder) if item and place == folder else ()
    return f"{files[0] if len(files) == 1 else place}{colons}{item}"
