"""Fixtures and marks of all tests; `pytester` runs pytest inside pytest."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from forked import share_server
from provider import Provider

pytest_plugins = ["pytester", "engines"]

_TESTS = Path(__file__).parent / "tests"
_MARKS = {"fast": "fast", "sessions": "session", "system": "system"}
_SLOWEST_FIRST = {"system": 1, "sessions": 2, "fast": 3}
_TIMEOUTS_S = {"fast": 30}
_TIMEOUT_S = 120

# Else each of the tests' many sessions compiles the whole plugin anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)


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
        # Whoever is done takes over what others have left: let it be short.
        items.sort(key=lambda item: _SLOWEST_FIRST.get(_folder(item.path) or "", 0))


@cache
def _folder(path: Path) -> str | None:
    """Return the folder of `tests` that a file stands in."""
    return path.relative_to(_TESTS).parts[0] if path.is_relative_to(_TESTS) else None


@pytest.hookimpl(optionalhook=True)  # it may be switched off
def pytest_xdist_setupnodes() -> None:
    """Have all workers fork from one server."""
    if hasattr(os, "fork"):
        share_server()


@pytest.fixture
def provider() -> Iterator[Provider]:
    """A real OpenAI-compatible HTTP server in a thread."""
    with Provider() as running:
        yield running
