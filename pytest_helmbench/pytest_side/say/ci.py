"""Detection of CI machines."""

from __future__ import annotations

import os


def in_ci() -> bool:
    """Return whether this is a CI machine: its logs get no texts and no live progress."""
    return bool(os.environ.get("CI"))


def in_github_actions() -> bool:
    """Return whether this is a job of GitHub Actions, which shows a summary and annotations."""
    return os.environ.get("GITHUB_ACTIONS") == "true"
