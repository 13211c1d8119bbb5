"""Planned files, copied to their place: all is checked before the first byte is written, links are never followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.pack_files import (
    KEEP_SMALL,
    PackBounds,
    PackFiles,
    descend,
    facts_of,
    tree,
)
from pytest_helmbench.benchmarks.packs.format.path_rules import clashes, mount_fault, path_fault, trimmed
from pytest_helmbench.benchmarks.packs.task import (
    Asset,
    MaterializationError,
    PathPolicyError,
    PlannedFile,
    Visibility,
)

_CHUNK = 1024 * 1024
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)


def materialize(plan: Sequence[PlannedFile], into: Path) -> None:
    """Copy planned files; modes and empty folders survive.

    Everything is checked before the first byte is written: the sources are as they were planned, and nothing
    in the target stands in the way. A file that is already there is replaced; links are never followed.

    Args:
        plan: Of `plan_assets` or `plan_checker_files`.
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


def plan_assets(files: PackFiles, assets: Sequence[Asset]) -> tuple[PlannedFile, ...]:
    """Return what files of a row become, checked whole; two of them never overlap.

    Raises:
        PathPolicyError: A path or mount leads where it must not.
        MaterializationError: A file is missing, cannot be read, or there is too much of it.
    """
    sources = [checked_source(files, asset) for asset in assets]
    for outer, inner in clashes([asset.mount for asset in assets]):
        raise PathPolicyError(f"the mounts {assets[outer].mount!r} and {assets[inner].mount!r} overlap")
    planned: list[PlannedFile] = []
    for asset, source in zip(assets, sources, strict=True):
        planned.extend(contents(asset, source, trimmed(asset.mount)))
    return bounded(files.bounds, tuple(planned))


def contents(asset: Asset, source: Path, target: str) -> Iterator[PlannedFile]:
    """Yield what an asset becomes; what is wrong inside is told with the asset's path."""
    try:
        yield from tree(source, target, read_only=asset.read_only)
    except MaterializationError as error:
        raise type(error)(f"the path {asset.path!r} {error}") from error


def bounded(bounds: PackBounds, planned: tuple[PlannedFile, ...]) -> tuple[PlannedFile, ...]:
    """Return a plan that keeps within its bounds on number and size.

    Raises:
        MaterializationError: There is too much of it.
    """
    fault = bounds.exceeded(len(planned), sum(item.size for item in planned))
    if fault:
        raise MaterializationError(f"what is laid out {fault}\n  hint: {KEEP_SMALL}")
    return planned


def checked_source(files: PackFiles, asset: Asset) -> Path:
    """Return an asset's source after holding path and mount to the policy once more."""
    public = asset.visibility is Visibility.PUBLIC
    fault = path_fault(asset.path)
    if fault:
        raise PathPolicyError(f"the path {asset.path!r} {fault}")
    fault = mount_fault(asset.mount) if public else path_fault(asset.mount)
    if fault:
        raise PathPolicyError(f"the mount {asset.mount!r} {fault}")
    if asset.source is None:
        raise MaterializationError(f"the file {asset.path!r} belongs to no pack")
    root = files.public_root if public else files.eval_root
    place, fault = descend(files.root, f"{root}/{trimmed(asset.path)}")
    if fault == "does not exist":
        raise MaterializationError(f"the file {asset.path!r} {fault}")
    if fault:
        raise PathPolicyError(f"the path {asset.path!r} {fault}")
    return place
