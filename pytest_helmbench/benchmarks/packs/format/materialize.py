"""Planned files, copied to their place: all is checked before the first byte is written, links are never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.file_walk import facts_of
from pytest_helmbench.benchmarks.packs.task import MaterializationError, PathPolicyError, PlannedFile

__all__ = ["materialize"]

_CHUNK = 1024 * 1024
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def materialize(plan: Sequence[PlannedFile], into: Path) -> None:
    """Copy planned files; modes and empty folders survive.

    Everything is checked before the first byte is written: the sources are as they were planned, and nothing
    in the target stands in the way. A file that is already there is replaced; links are never followed.

    Args:
        plan: Of `plan_assets` or `plan_evaluator`.
        into: Folder; made when it is missing.

    Raises:
        PathPolicyError: A link stands where something is to be laid out.
        MaterializationError: A source has changed, something stands in the way, or the disk refuses.
    """
    for item in plan:
        _check_source(item)
        _check_target(into, item)
    try:
        into.mkdir(parents=True, exist_ok=True)
        for item in plan:
            target = into / item.target
            if item.is_folder:
                target.mkdir(mode=0o700, parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(item, target)
        for item in reversed(plan):
            if item.is_folder:
                (into / item.target).chmod(item.mode)
    except OSError as error:
        raise MaterializationError(f"files cannot be laid out: {error.strerror or error}") from error


def _check_source(item: PlannedFile) -> None:
    facts = facts_of(item.source)
    as_planned = (
        stat.S_ISDIR(facts.st_mode)
        if item.is_folder
        else stat.S_ISREG(facts.st_mode) and facts.st_size == item.size
    )
    if not as_planned:
        raise MaterializationError(f"the file for {item.target!r} has changed since it was planned")


def _check_target(into: Path, item: PlannedFile) -> None:
    """Refuse a target that is, or lies behind, a link, or that is of another kind."""
    parts = [] if item.target == "." else item.target.split("/")
    place = into
    for depth in range(len(parts) + 1):
        if depth:
            place /= parts[depth - 1]
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return
        except OSError as error:
            raise MaterializationError(
                f"{item.target!r} cannot be laid out: {error.strerror or error}"
            ) from error
        if stat.S_ISLNK(mode):
            raise PathPolicyError(f"{item.target!r} would be laid out through a symbolic link")
        wants_folder = depth < len(parts) or item.is_folder
        if wants_folder != stat.S_ISDIR(mode):
            raise MaterializationError(f"{item.target!r} cannot be laid out: something else is in its place")


def _copy(item: PlannedFile, target: Path) -> None:
    target.unlink(missing_ok=True)
    reading = os.open(item.source, os.O_RDONLY | _NO_FOLLOW | _BINARY)
    with os.fdopen(reading, "rb") as source:
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY, 0o600)
        with os.fdopen(writing, "wb") as copy:
            left = item.size
            while left and (chunk := source.read(min(left, _CHUNK))):
                copy.write(chunk)
                left -= len(chunk)
    target.chmod(item.mode)
