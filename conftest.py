"""Fixtures and marks of all tests; `pytester` runs pytest inside pytest."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import fork_server
import pytest
from provider import Provider

pytest_plugins = ["pytester", "engines"]
pytest_xdist_setupnodes = fork_server.pytest_xdist_setupnodes

_TESTS = Path(__file__).parent / "tests"
_MARKS = {"fast": "fast", "sessions": "session", "system": "system"}
_TIMEOUT_S = 300  # what hangs is ended; a test takes ten seconds at most, and more beside other work

# Tests do not depend on the language, colours and git settings of the person who runs them.
for _name in ("LANGUAGE", "LC_ALL", "LC_MESSAGES", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"):
    os.environ.pop(_name, None)
os.environ |= {"LANG": "C.UTF-8", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test by the folder that it stands in, and end it when it hangs.

    No setting of pytest-timeout says so: the demo in the README runs in this folder without that plugin.
    """
    for item in items:
        folder = _folder(item.path)
        if folder is not None:
            if item.get_closest_marker("timeout") is None:
                item.add_marker(pytest.mark.timeout(_TIMEOUT_S))
            mark = _MARKS.get(folder)
            if mark is not None:
                item.add_marker(mark)


@cache
def _folder(path: Path) -> str | None:
    """Return the folder of `tests` that a file stands in."""
    return path.relative_to(_TESTS).parts[0] if path.is_relative_to(_TESTS) else None


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A real OpenAI-compatible HTTP server in a thread."""
    with Provider() as running:
        yield running
