"""Fixtures and marks of all tests; `pytester` runs pytest inside pytest."""

from __future__ import annotations

import gc
import os
import shlex
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from dealing import dealt, slow_files
from first_collection import collect_once
from forked import forked_python, share_server
from provider import Provider

if TYPE_CHECKING:
    import execnet

pytest_plugins = ["pytester", "engines"]

_TESTS = Path(__file__).parent / "tests"
_MARKS = {"fast": "fast", "sessions": "session", "system": "system"}
_SLOW_FILES = slow_files()
_TIMEOUTS_S = {"fast": 60}
_TIMEOUT_S = 120

# Else each of the tests' many sessions compiles the whole plugin anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


@pytest.hookimpl(tryfirst=True)  # before pytest-xdist reads it
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Run `tests/fast` on all cores where `pytest` is called without any path and without a number of workers."""
    if config.args_source is not pytest.Config.ArgsSource.TESTPATHS or config.option.collectonly:
        return
    is_alone = config.pluginmanager.hasplugin("xdist") and not hasattr(config, "workerinput")
    if is_alone and config.option.numprocesses is None:
        config.option.numprocesses, config.option.dist = "logical", "worksteal"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Look for no garbage while tests are collected: all of it stays to the end, and is looked through no more."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark every test by the folder that it stands in, and end it when it hangs; in workers the slow stand first.

    No setting of pytest-timeout says so: the demo in the README runs in this folder without that plugin.
    """
    for item in items:
        folder = _folder(item.path)
        if folder is not None:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_TIMEOUTS_S.get(folder, _TIMEOUT_S)))
            mark = _MARKS.get(folder)
            if mark is not None:
                item.add_marker(mark)
    if hasattr(config, "workerinput"):
        workers = config.workerinput["workercount"]
        items[:] = dealt(items, workers, file=lambda item: item.path, rank=lambda item: _rank(item.path))


@cache
def _folder(path: Path) -> str | None:
    """Return the folder of `tests` that a file stands in."""
    return path.relative_to(_TESTS).parts[0] if path.is_relative_to(_TESTS) else None


@cache
def _rank(path: Path) -> int | None:
    """Return which files go first: those that are listed, then all that start processes; None for the others."""
    folder = _folder(path)
    among_all = len(_SLOW_FILES) if folder in ("sessions", "system") else None
    return among_all if folder is None else _SLOW_FILES.get(path.relative_to(_TESTS).as_posix(), among_all)


@pytest.hookimpl(optionalhook=True)  # it may be switched off
def pytest_xdist_setupnodes(config: pytest.Config, specs: Sequence[execnet.XSpec]) -> None:
    """Fork all workers, and what they fork, from one server."""
    if hasattr(os, "fork"):
        share_server()
        fast, sessions, system = (_TESTS / folder for folder in _MARKS)
        collect_once([[fast], [sessions, system]], config.args)
        for spec in specs:
            spec.python = shlex.join(forked_python())


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A real OpenAI-compatible HTTP server in a thread."""
    with Provider() as running:
        yield running
