"""Links that lead nowhere, where a part of a tree could stand."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.files.source import Fault

LEADS_NOWHERE = Fault(
    None, "the link leads nowhere, so nobody can tell what it stands for", "mend or remove the link"
)


def leads_nowhere(path: Path) -> bool:
    """Return whether a path is a link to what is not there, or to itself; hidden ones are locks of editors."""
    return path.is_symlink() and not path.name.startswith(".") and not _is_there(path)


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, RuntimeError):
        return False
