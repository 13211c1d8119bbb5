"""Files that a row names, planned: all is checked before the first of them is laid out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.pack_files import (
    KEEP_SMALL,
    PackBounds,
    PackFiles,
    descend,
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
    """Yield what an asset becomes; a fault inside names the asset's path."""
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
