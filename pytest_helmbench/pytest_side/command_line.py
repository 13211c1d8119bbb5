"""The words of the command line: folders, archives, ids of items, and files of benchmarks that decide nothing here."""

from __future__ import annotations

import copy
import os
import shlex
from collections.abc import Generator, Iterable, Iterator, Sequence
from difflib import get_close_matches
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

import pytest

from pytest_helmbench.benchmarks.places import (
    ARCHIVES,
    absolute,
    archive_of,
    benchmark_root,
    benchmarks_below,
    closed_files,
)
from pytest_helmbench.core.problem import HelmbenchError, UnreadableBenchmarkError
from pytest_helmbench.core.scrub import scrub
from pytest_helmbench.engine.job import escaped_id
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.options.trust import check_conftests, check_ini, trusted_roots
from pytest_helmbench.run.library import Library


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


class NamedFolders:
    """Takes note of which folders of the command line gave items.

    Args:
        config: pytest's.
        library: The benchmarks of the session.
    """

    def __init__(self, config: pytest.Config, library: Library) -> None:
        self._root = config.rootpath
        self._library = library
        self._tests = tuple(config.getini("python_files"))
        named = config.args if config.args_source is pytest.Config.ArgsSource.ARGS else []
        start = config.invocation_params.dir
        places = {argument: absolute(start / argument) for argument in named}
        self._waiting = {argument: place for argument, place in places.items() if place.is_dir()}

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out a link that leads back to a folder it lies in: its benchmarks would come again, 40 levels deep."""
        is_link = collection_path.is_symlink() and collection_path.is_dir()
        leads_back = is_link and collection_path.parent.resolve().is_relative_to(collection_path.resolve())
        return True if leads_back else None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: Sequence[pytest.Item]) -> None:
        """Take note of all items, before some are deselected."""
        self._met({item.path for item in items})

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: Sequence[str]) -> None:
        """Take note of what a worker has to run."""
        self._met({self._root / node_id.partition("::")[0] for node_id in ids})

    def gave_nothing(self) -> list[str]:
        """Return the folders, as they were named, that neither gave an item nor hold a case or a file of tests."""
        return [argument for argument, place in self._waiting.items() if not self._holds_something(place)]

    def _met(self, paths: set[Path]) -> None:
        if not self._waiting:
            return
        folders = {folder.resolve() for folder in {path.parent for path in paths}}
        self._waiting = {
            argument: place
            for argument, place in self._waiting.items()
            if not any(folder.is_relative_to(place.resolve()) for folder in folders)
            and not any(path.is_relative_to(place) for path in paths)
        }

    def _holds_something(self, place: Path) -> bool:
        inside = benchmark_root(place)
        roots = [*([inside] if inside is not None else []), *benchmarks_below(place)]
        return any(map(self._has_cases, roots)) or any(
            fnmatch(file.name, pattern) for file in place.rglob("*.py") for pattern in self._tests
        )

    def _has_cases(self, root: Path) -> bool:
        try:
            loaded = self._library.load(root)
        except HelmbenchError:
            return True  # its own item errs
        return bool(loaded.count() or loaded.broken)


FOLDERS: pytest.StashKey[NamedFolders] = pytest.StashKey()


_MOST_SHOWN = 3
_LEAST_ALIKE = 0.5


class TypedIds:
    """Items that the command line names in files of benchmarks.

    Args:
        config: Of the session; its arguments get the names in their printed form, the one that items have.
        settings: Of the session.
        library: The benchmarks.
    """

    def __init__(self, config: pytest.Config, settings: Settings, library: Library) -> None:
        self._settings = settings
        self._library = library
        self._typed: list[tuple[Path, str]] = []
        config.args[:] = [self._printed(config.invocation_params.dir, argument) for argument in config.args]

    def _printed(self, start: Path, argument: str) -> str:
        """Return an argument with the printed name of the item that it names, if it names one of ours."""
        path, colons, item = argument.partition("::")
        place = start / path
        if not item or place.suffix == ".py" or benchmark_root(place) is None:
            return argument
        self._typed.append((place, item))
        return f"{path}{colons}{escaped_id(item)}"

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Say which codes are near where an item is not found."""
        try:
            return (yield)
        except pytest.UsageError as error:
            near = [*self._near()]
            if not near or not any("not found: " in str(part) for part in error.args):
                raise
            raise pytest.UsageError(*error.args[:-1], "\n".join((str(error.args[-1]), *near))) from None

    def _near(self) -> Iterator[str]:
        for path, item in self._typed:
            try:
                loaded = self._library.of_file(path)
            except HelmbenchError:
                continue
            if loaded is None:
                continue
            jobs = [*loaded.jobs(path, "", self._settings.repeat)]
            names = {job.code: f"{job.code}[{job.model_id}]" for job in reversed(jobs)}
            if any(job.name == escaped_id(item) for job in jobs) or ("[" not in item and item in names):
                continue
            codes = (item, item.rpartition("[")[0] or item)
            near = [code for code in codes if code in names][:1]
            near = near or get_close_matches(codes[1], names, _MOST_SHOWN, _LEAST_ALIKE)
            if near:
                shown = " or ".join(repr(scrub(names[one])) for one in near)
                yield f"  hint: did you mean {shown}?"
