"""Test files of a fresh checkout, read once for all workers.

pytest rewrites the assertions of each test file and keeps what it has written; workers of pytest-xdist that start
together would all do it, for several seconds each.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path

from inner_pytest import forked_pytest

__all__ = ["collect_once"]


def collect_once(groups: Iterable[Sequence[Path]], asked: Sequence[str]) -> None:
    """Collect folders that nobody has collected yet, each group in a process of its own.

    Args:
        groups: Folders of tests.
        asked: What the session collects: what is not in it is left alone.
    """
    named = [Path(name).resolve() for name in asked]
    running = [
        subprocess.Popen(
            [*forked_pytest(), "--collect-only", "-q", *map(str, new)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for group in groups
        if (new := [folder for folder in group if _is_new(folder) and _is_in(folder, named)])
    ]
    for process in running:
        process.wait()


def _is_new(folder: Path) -> bool:
    return next(folder.rglob("__pycache__/test_*"), None) is None


def _is_in(folder: Path, named: Iterable[Path]) -> bool:
    return any(folder.is_relative_to(name) for name in named)
