"""Walking down a pack's folders without ever following a link."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.path_rules import path_fault
from pytest_helmbench.benchmarks.packs.task import MaterializationError, PathPolicyError, PlannedFile

__all__ = ["descend", "facts_of", "tree"]


def descend(root: Path, path: str) -> tuple[Path, str]:
    """Walk down from a pack's root; return the place and why it cannot be used."""
    place = root
    for part in path.split("/"):
        place /= part
        try:
            facts = place.lstat()
        except FileNotFoundError:
            return place, "does not exist"
        except OSError as error:
            return place, f"cannot be read: {error.strerror or error}"
        if stat.S_ISLNK(facts.st_mode):
            return place, "is or passes a symbolic link"
    if not place.resolve().is_relative_to(root.resolve()):  # junctions of Windows are no links to lstat
        return place, "leads out of the pack"
    return place, ""


def tree(source: Path, target: str, *, read_only: bool) -> Iterator[PlannedFile]:
    """Yield a file, or a folder and everything in it, outer before inner.

    Raises:
        PathPolicyError: A link or a name that leads elsewhere.
        MaterializationError: Something that is no file and no folder, or cannot be read.
    """
    waiting = [(source, target)]
    while waiting:
        place, name = waiting.pop()
        facts = facts_of(place)
        if stat.S_ISLNK(facts.st_mode):
            raise PathPolicyError(f"holds {name!r}, a symbolic link")
        is_folder = stat.S_ISDIR(facts.st_mode)
        if not is_folder and not stat.S_ISREG(facts.st_mode):
            raise MaterializationError(f"holds {name!r}, which is no file and no folder")
        if not os.access(place, os.R_OK | os.X_OK if is_folder else os.R_OK):
            raise MaterializationError(f"holds {name!r}, which cannot be read")
        mode = stat.S_IMODE(facts.st_mode) & 0o777  # no setuid
        yield PlannedFile(place, name, mode, 0 if is_folder else facts.st_size, is_folder, read_only)
        if is_folder:
            waiting.extend(_inside(place, name))


def _inside(place: Path, name: str) -> Iterator[tuple[Path, str]]:
    try:
        with os.scandir(place) as entries:
            names = sorted((entry.name for entry in entries), reverse=True)
    except OSError as error:
        raise MaterializationError(f"cannot be read: {error.strerror or error}") from error
    for inner in names:
        if path_fault(inner) is not None:
            raise PathPolicyError(f"holds {inner!r}, whose name is no plain name")
        yield place / inner, inner if name == "." else f"{name}/{inner}"


def facts_of(place: Path) -> os.stat_result:
    """Return what the system says of a file, of a link itself.

    Raises:
        MaterializationError: It says nothing.
    """
    try:
        return place.lstat()
    except OSError as error:
        raise MaterializationError(f"cannot be read: {error.strerror or error}") from error
