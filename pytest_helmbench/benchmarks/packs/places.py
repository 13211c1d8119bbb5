"""Finding question packs: a manifest with an id and a version, and rows beside it. Reads no YAML."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from pytest_helmbench.benchmarks.kind import KindPlaces
from pytest_helmbench.core.codes import natural_key

__all__ = ["FOREIGN_VERSION", "MANIFEST_NAMES", "PLACES", "is_pack", "manifests_of", "row_files_of"]

MANIFEST_NAMES = ("manifest.yaml", "manifest.yml", "manifest.json")
FOREIGN_VERSION = "2.0"
"""A `schema_version` that is another format."""

_ROWS = "tasks.jsonl"


def is_pack(path: Path) -> bool:
    """Return whether a folder is a pack: a manifest with text `id` and whole `version`, and a `*.jsonl`.

    The manifest is looked at without a YAML parser, so that asking costs nothing; a manifest that is no
    valid YAML can still be a pack, whose loading then says what is wrong. One of the other format
    (`schema_version: "2.0"`) counts too, so that loading it can say so.
    """
    manifests = manifests_of(path)
    if not manifests or not row_files_of(path):
        return False
    from pytest_helmbench.benchmarks.packs.format.manifest_start import (
        manifest_start,  # where there is a manifest
    )

    facts = manifest_start(manifests[0])
    has_version = type(facts.get("version")) is int or str(facts.get("schema_version")) == FOREIGN_VERSION
    return isinstance(facts.get("id"), str) and has_version


def manifests_of(path: Path) -> list[Path]:
    """Return the manifests of a folder; more than one is a fault of the pack."""
    return [path / name for name in MANIFEST_NAMES if _is_file(path / name)]


def row_files_of(path: Path) -> list[Path]:
    """Return `tasks.jsonl`, else every `*.jsonl` of a folder in natural order."""
    if _is_file(path / _ROWS):
        return [path / _ROWS]
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".jsonl") and entry.is_file()]
    except OSError:
        return []
    return [path / name for name in sorted(names, key=natural_key)]


def _is_file(path: Path) -> bool:
    try:
        return stat.S_ISREG(path.stat().st_mode)
    except (OSError, ValueError):
        return False


def _files(path: Path) -> list[Path]:
    """Return the manifest, for its problems, then the files with rows."""
    return [*manifests_of(path), *row_files_of(path)]


def _is_meant(path: Path) -> bool:
    """A pack without id or version."""
    return bool(manifests_of(path) and row_files_of(path))


PLACES = KindPlaces(
    name="pack",
    module="pytest_helmbench.benchmarks.packs.kind",
    authoring="pytest_helmbench.benchmarks.packs.authoring",
    signs=MANIFEST_NAMES,
    detect=is_pack,
    files=_files,
    is_data=True,
    manifests=manifests_of,
    is_meant=_is_meant,
)
