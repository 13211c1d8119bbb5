"""Detection of CI machines."""

from __future__ import annotations

import os


def in_ci() -> bool:
    """Return whether this is a CI machine: texts stay out of its logs, and it gets no live progress."""
    return bool(os.environ.get("CI"))


def in_github_actions() -> bool:
    """Return whether this is a job of GitHub Actions: it takes a summary, and annotations from the log."""
    return os.environ.get("GITHUB_ACTIONS") == "true"
