"""The words of the command line: folders, ids of items, and files of benchmarks that decide nothing here."""

from __future__ import annotations

import copy
import os
import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.places import benchmark_folders, benchmark_root
from pytest_helmbench.core.problem import HelmbenchError
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
        paths: What pytest starts from.
        named: Whether the command line names them.

    Raises:
        pytest.UsageError: There is one.
    """
    try:
        if config.inipath is not None and not _is_named(config, config.inipath, parser, arguments):
            check_ini(config.inipath, config.invocation_params.dir, benchmark_folders())
    except HelmbenchError as error:
        raise pytest.UsageError(scrub(str(error))) from error
    refuse_conftests(config, paths, below=named)


def refuse_conftests(config: pytest.Config, paths: Iterable[Path], *, below: bool) -> None:
    """Refuse a conftest.py inside a benchmark that is not trusted.

    Raises:
        pytest.UsageError: There is one.
    """
    try:
        check_conftests(paths, trusted_benchmarks(config), benchmark_folders(), below=below)
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


def escape_item_ids(config: pytest.Config) -> None:
    """Give items that the command line names in files of benchmarks their printed form, the one that items have."""
    start = config.invocation_params.dir
    for place, argument in enumerate(config.args):
        path, colons, item = argument.partition("::")
        if item and not path.endswith(".py") and benchmark_root(start / path) is not None:
            config.args[place] = f"{path}{colons}{escaped_id(item)}"
