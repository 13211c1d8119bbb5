"""What tests need and nobody changes: made once for all workers of pytest-xdist."""

from __future__ import annotations

import fcntl
from collections.abc import Callable
from pathlib import Path

import pytest

__all__ = ["made_once"]


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
