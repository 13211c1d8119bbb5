"""What pip has installed, read once per process.

Every session of pytest reads the entry points of all distributions twice, and what files those with plugins have:
a third of what a session with one case costs, with the 170 distributions that the tests bring.
"""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Iterator
from functools import cache, cached_property
from pathlib import Path
from typing import Any

__all__ = ["remember_distributions"]

_READ = ("entry_points", "files", "metadata")
_Folders = tuple[tuple[str, int], ...]
_find = importlib.metadata.distributions


def remember_distributions() -> None:
    """Have `importlib.metadata` read a distribution once, as long as the folders of `sys.path` stay as they are."""
    if importlib.metadata.distributions is _found:
        return
    for name in _READ:
        read = cached_property(getattr(importlib.metadata.PathDistribution, name).fget)
        read.__set_name__(importlib.metadata.PathDistribution, name)
        setattr(importlib.metadata.PathDistribution, name, read)
    importlib.metadata.distributions = _found


def _found(**criteria: Any) -> Iterator[importlib.metadata.Distribution]:
    return iter(_find(**criteria) if criteria else _found_in(tuple(_folders())))


def _folders() -> Iterator[tuple[str, int]]:
    """Return where distributions may stand, and when each folder last got one."""
    for folder in map(Path, sys.path):
        if folder.exists():
            yield str(folder.absolute()), folder.stat().st_mtime_ns


@cache
def _found_in(_: _Folders) -> list[importlib.metadata.Distribution]:
    return list(_find())
