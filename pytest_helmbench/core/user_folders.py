"""Folders of the user that hold what can be made again."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path


def user_cache(environ: Mapping[str, str]) -> Path:
    """Return the folder for caches of programs; it need not exist."""
    stated = Path(environ.get("XDG_CACHE_HOME", ""))
    if stated.is_absolute():
        return stated
    home = Path.home()
    if sys.platform == "darwin":
        return home / "Library" / "Caches"
    if sys.platform == "win32":
        return Path(environ.get("LOCALAPPDATA", home / "AppData" / "Local"))
    return home / ".cache"
