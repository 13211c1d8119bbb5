"""Detection of CI machines."""

from __future__ import annotations

import os

__all__ = ["in_ci"]


def in_ci() -> bool:
    """Return whether this is a CI machine: texts stay out of its logs, and it gets no live progress."""
    return bool(os.environ.get("CI"))
