"""What pip installs for tests: once for all workers of pytest-xdist."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from once import made_once

__all__ = ["installed_once"]

# Sessions compile what they import; to compile all costs more than to install it.
_PIP = (
    *("-m", "pip", "install", "-q", "--disable-pip-version-check"),
    "--no-deps",
    "--no-compile",
    "--target",
)


def installed_once(factory: pytest.TempPathFactory, name: str, *words: str) -> Path:
    """Return the folder that pip has installed to; the first worker that asks installs.

    Args:
        factory: Whose folder all workers of this run share.
        name: Of the folder.
        words: What follows `pip install`.
    """

    def install(target: Path) -> None:
        subprocess.run([sys.executable, *_PIP, str(target), *words], check=True, capture_output=True)

    return made_once(factory, name, install)
