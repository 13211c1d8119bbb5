"""What is a Bench Pack: a folder with the manifest of the desktop app."""

from __future__ import annotations

import stat
from pathlib import Path

__all__ = ["MANIFEST", "is_bench_pack"]

MANIFEST = "benchlocal.pack.json"


def is_bench_pack(path: Path) -> bool:
    """Return whether a folder is a Bench Pack; what its manifest says, loading tells."""
    try:
        return stat.S_ISREG((path / MANIFEST).stat().st_mode)
    except (OSError, ValueError):
        return False
