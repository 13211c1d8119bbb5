"""The command line: node ids in their printed form, and no settings or code from files of benchmarks."""

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
    """Refuse an ini file or a conftest.py that is not the user's, before it has any effect.

    Args:
        config: As it is before the first conftest.py is loaded.
        named: Whether the command line names them.

    Raises:
        pytest.UsageError: There is such a file.
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
        pytest.UsageError: There is such a file.
    """
    try:
        trusted = trusted_roots(
            config.getini("helmbench_trusted"), config.inipath, config.invocation_params.dir
        )
        check_conftests(paths, trusted, benchmark_folders(), below=below, ini=config.inipath)
    except HelmbenchError as error:
        raise pytest.UsageError(scrub(str(error))) from error


def _is_named(config: pytest.Config, ini: Path, parser: pytest.Parser, arguments: Sequence[str]) -> bool:
    """Return whether the command line or PYTEST_ADDOPTS names an ini file or its folder.

    In a worker `config.option` has the options of its controller.
    """
    words = [*shlex.split(os.environ.get("PYTEST_ADDOPTS", "")), *arguments]
    given = parser.parse_known_args(words, namespace=copy.copy(config.option))
    start = config.invocation_params.dir
    if given.inifilename:
        named = start / str(given.inifilename)
        return named.resolve() == ini.resolve()
    if given.rootdir:
        root = start / os.path.expandvars(str(given.rootdir))
        return root.resolve() == ini.parent.resolve()
    return False


def escape_item_ids(config: pytest.Config) -> None:
    """Escape the node ids of cases on the command line as the ids of items are escaped."""
    start = config.invocation_params.dir
    for place, argument in enumerate(config.args):
        path, colons, item = argument.partition("::")
        if item and not path.endswith(".py") and benchmark_root(start / path) is not None:
            config.args[place] = f"{path}{colons}{escaped_id(item)}"
