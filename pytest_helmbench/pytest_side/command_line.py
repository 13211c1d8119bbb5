"""The words of the command line: folders, archives, ids of items, and files of benchmarks that decide nothing here."""

from __future__ import annotations

import copy
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.places import (
    ARCHIVES,
    archive_of,
    benchmark_root,
    closed_files,
)
from pytest_helmbench.core.problem import HelmbenchError, UnreadableBenchmarkError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.job import escaped_id
from pytest_helmbench.options.trust import check_conftests, check_ini, trusted_roots


def refuse_files_of_benchmarks(
    config: pytest.Config,
    parser: pytest.Parser,
    arguments: Sequence[str],
    paths: Iterable[Path],
    *,
    named: bool,
) -> None:
    """Refuse an ini file and a conftest.py that are not the user's, before either has had any effect.

    Args:
        config: As it is before the first conftest.py is loaded.
        parser: Of the command line.
        arguments: The command line.
        paths: What pytest starts from.
        named: Whether the command line names them; else what runs is chosen later.

    Raises:
        pytest.UsageError: There is one.
    """
    try:
        if config.inipath is not None and not _is_named(config, config.inipath, parser, arguments):
            check_ini(config.inipath, config.invocation_params.dir)
    except HelmbenchError as error:
        raise pytest.UsageError(scrub(str(error))) from error
    refuse_conftests(config, paths, below=named)


def refuse_conftests(config: pytest.Config, paths: Iterable[Path], *, below: bool) -> None:
    """Refuse a conftest.py inside a benchmark that is not trusted.

    Raises:
        pytest.UsageError: There is one.
    """
    try:
        check_conftests(paths, trusted_benchmarks(config), below=below)
    except HelmbenchError as error:
        raise pytest.UsageError(scrub(str(error))) from error


def trusted_benchmarks(config: pytest.Config) -> tuple[Path, ...]:
    """Return the benchmarks that the user's ini file lists as trusted."""
    return trusted_roots(config.getini("helmbench_trusted"), config.inipath, config.invocation_params.dir)


def _is_named(config: pytest.Config, ini: Path, parser: pytest.Parser, arguments: Sequence[str]) -> bool:
    """Return whether the user's own words name an ini file or its folder; `addopts` in it are not asked.

    A worker has what its controller was told in `config.option`.
    """
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *arguments]
    told = parser.parse_known_args(words, namespace=copy.copy(config.option))
    start = config.invocation_params.dir
    if told.inifilename:
        named = start / str(told.inifilename)
        return named.resolve() == ini.resolve()
    if told.rootdir:
        root = start / os.path.expandvars(str(told.rootdir))
        return root.resolve() == ini.parent.resolve()
    return False


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


def print_ids(config: pytest.Config) -> None:
    """Give items that the command line names in files of benchmarks their printed form, the one that items have."""
    start = config.invocation_params.dir
    for place, argument in enumerate(config.args):
        path, colons, item = argument.partition("::")
        if item and not path.endswith(".py") and benchmark_root(start / path) is not None:
            config.args[place] = f"{path}{colons}{escaped_id(item)}"
