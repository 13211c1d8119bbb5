"""Folders and values that the first worker of pytest-xdist makes, and all workers read."""

from __future__ import annotations

import fcntl
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

__all__ = ["shared_folder", "shared_installation", "shared_value"]

_T = TypeVar("_T")
_PIP = (
    *("-m", "pip", "install", "-q", "--disable-pip-version-check"),
    "--no-deps",
    "--no-compile",
    "--target",
)
"""Sessions compile what they import; compiling everything costs more than installing it."""


def shared_folder(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
    """Return a folder that all workers share; the first that asks makes it.

    Args:
        factory: Whose folder all workers of this run share.
        name: Of the folder.
        make: Fills the folder, which is not there yet; is called again where it has raised.
    """
    base = factory.getbasetemp()
    shared = base.parent if base.name.startswith("popen-") else base
    target, done = shared / name, shared / f"{name}.done"
    with (shared / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not done.exists():
            make(target)
            done.touch()
    return target


def shared_value(factory: pytest.TempPathFactory, name: str, find: Callable[[], _T]) -> _T:
    """Return a value that can be pickled; the first worker that asks finds it."""

    def make(target: Path) -> None:
        target.write_bytes(pickle.dumps(find()))

    found: _T = pickle.loads(shared_folder(factory, name, make).read_bytes())
    return found


def shared_installation(factory: pytest.TempPathFactory, name: str, *words: str) -> Path:
    """Return the folder of a `pip install`; the first worker that asks installs.

    Args:
        factory: Whose folder all workers of this run share.
        name: Of the folder.
        words: What follows `pip install`.
    """

    def install(target: Path) -> None:
        subprocess.run([sys.executable, *_PIP, str(target), *words], check=True, capture_output=True)

    return shared_folder(factory, name, install)
