"""What tests need and nobody changes: made once for all workers of pytest-xdist."""

from __future__ import annotations

import fcntl
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

__all__ = ["found_once", "made_once"]

_T = TypeVar("_T")


def made_once(factory: pytest.TempPathFactory, name: str, make: Callable[[Path], None]) -> Path:
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


def found_once(factory: pytest.TempPathFactory, name: str, find: Callable[[], _T]) -> _T:
    """Return a value that can be pickled; the first worker that asks finds it."""

    def make(target: Path) -> None:
        target.write_bytes(pickle.dumps(find()))

    found: _T = pickle.loads(made_once(factory, name, make).read_bytes())
    return found
