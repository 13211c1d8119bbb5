"""Finding question packs: a manifest with an id and a version, and rows beside it; or task folders. Reads no YAML."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from pytest_helmbench.benchmarks.kind import KindPlaces
from pytest_helmbench.core.codes import natural_key
from pytest_helmbench.core.json_types import JsonValue

MANIFEST_NAMES = ("manifest.yaml", "manifest.yml", "manifest.json")
FOREIGN_VERSION = "2.0"
"""A `schema_version` that is another format."""

TASK_FILE = "task.toml"
"""The file that every task folder has."""

_INSTRUCTION = "instruction.md"
_NO_TASKS = frozenset({"node_modules", "__pycache__", "site-packages", "venv", "env"})
_LOOKED_AT = 64  # folders in one that may hold task folders
_TABLE_SUFFIXES = (".csv", ".tsv", ".jsonl", ".json", ".parquet")
_ROWS = "tasks.jsonl"
_LARGEST = 1_000_000  # bytes of a manifest that are looked at
_FACT = re.compile(
    r"""^([ ]*)["']?(id|version|schema_version|rows)["']?[ \t]*:(?:[ \t]+|$)(.*)$""", re.MULTILINE
)
_JSON_FACT = re.compile(r'"(id|version|schema_version)"\s*:\s*("[^"\n]*"|[-+]?[0-9]+(?![.\w]))')
_FIRST_KEY = re.compile(r"^([ ]*)[^\s#%\-]", re.MULTILINE)
_WHOLE = re.compile(r"[-+]?[0-9]{1,100}\Z")
_NO_TEXT = re.compile(r"[-+.]?[0-9][0-9._eE+-]*|~|null|true|false|yes|no|on|off|[\[{].*", re.IGNORECASE)


def is_table_name(name: str) -> bool:
    """Return whether a file is a table by its name."""
    return name.lower().endswith(_TABLE_SUFFIXES)


def is_pack(path: Path) -> bool:
    """Return whether a folder is a pack: a manifest with text `id` and whole `version`, and rows; or a table is one.

    Rows are a `*.jsonl`, or a table that the manifest names. A folder of task folders is a pack without a manifest,
    and so is a task folder elsewhere. Tables and task folders in a pack are part of that.

    The manifest is looked at without a YAML parser, so that asking costs nothing; a manifest that is not
    valid YAML can still be a pack, whose loading then says what is wrong. One of the other format
    (`schema_version: "2.0"`) counts too, so that loading it can say so.
    """
    if is_table_name(path.name) and path.is_file():
        return path.name not in MANIFEST_NAMES and not any(map(is_pack, path.parents))
    return _has_manifest(path) or (_has_tasks(path) and not any(map(is_pack, path.parents)))


def _has_manifest(path: Path) -> bool:
    manifests = manifests_of(path)
    if not manifests:
        return False
    facts = manifest_start(manifests[0])
    if "rows" not in facts and not row_files_of(path):
        return False
    has_version = type(facts.get("version")) is int or str(facts.get("schema_version")) == FOREIGN_VERSION
    return isinstance(facts.get("id"), str) and has_version


def _has_tasks(path: Path) -> bool:
    """Return whether a folder is a task folder, or most folders in it are.

    One without a task.toml counts by its instruction. A folder of other things may hold one task folder.
    """
    if _has(path, TASK_FILE):
        return True
    looked_at = [*islice(_folders(path), _LOOKED_AT)]
    is_one = any(_has(folder, TASK_FILE) for folder in looked_at)
    return is_one and 2 * sum(map(_is_meant_as_task, looked_at)) > len(looked_at)


def task_files_of(path: Path) -> list[Path]:
    """Return the task.toml of each task folder of a pack without a manifest, there or not; none for other folders."""
    if _has_manifest(path) or not _has_tasks(path):
        return []
    folders = [path] if _has(path, TASK_FILE) else map(Path, filter(_is_meant_as_task, _folders(path)))
    return [folder / TASK_FILE for folder in sorted(folders, key=lambda one: natural_key(one.name))]


def strangers_among(path: Path) -> list[str]:
    """Return the folders and Python tests beside task folders that pytest does not run."""
    folders = (Path(folder) for folder in _folders(path) if not _is_meant_as_task(folder))
    return sorted(one.name for one in (*folders, *path.glob("test_*.py"), *path.glob("*_test.py")))


def _folders(path: Path) -> Iterator[str]:
    """Yield the folders in a folder that are not hidden."""
    try:
        with os.scandir(path) as entries:
            for entry in entries:
                if not entry.name.startswith(".") and entry.name not in _NO_TASKS and entry.is_dir():
                    yield entry.path
    except OSError:
        return


def _is_meant_as_task(folder: str) -> bool:
    return _has(folder, TASK_FILE) or _has(folder, _INSTRUCTION)


def _has(folder: Path | str, name: str) -> bool:
    return os.path.isfile(f"{folder}/{name}")  # noqa: PTH113 - half the time of a walk is making paths


def manifests_of(path: Path) -> list[Path]:
    """Return the manifests of a folder; more than one is a fault of the pack."""
    return [path / name for name in MANIFEST_NAMES if _has(path, name)]


def row_files_of(path: Path) -> list[Path]:
    """Return `tasks.jsonl`, else every `*.jsonl` of a folder in natural order."""
    if _has(path, _ROWS):
        return [path / _ROWS]
    try:
        with os.scandir(path) as entries:
            names = [entry.name for entry in entries if entry.name.endswith(".jsonl") and entry.is_file()]
    except OSError:
        return []
    return [path / name for name in sorted(names, key=natural_key)]


def _files(path: Path) -> list[Path]:
    """Return the manifest, for its problems, then the files with rows; a table alone is both."""
    if path.is_file():
        return [path]
    if tasks := task_files_of(path):
        return tasks
    manifests = manifests_of(path)
    facts = manifest_start(manifests[0]) if manifests else {}
    if "rows" not in facts:
        return [*manifests, *row_files_of(path)]
    return [*manifests, *sorted({one for one in path.iterdir() if is_table_name(one.name)} - {*manifests})]


def _is_meant(path: Path) -> bool:
    """A pack without id or version."""
    return bool(manifests_of(path) and row_files_of(path))


PLACES = KindPlaces(
    name="pack",
    module="pytest_helmbench.benchmarks.packs.loading",
    authoring="pytest_helmbench.benchmarks.packs.authoring",
    signs=(*MANIFEST_NAMES, TASK_FILE),
    is_signed_below=True,
    detect=is_pack,
    files=_files,
    is_data=True,
    manifests=manifests_of,
    is_meant=_is_meant,
    schemas=("pack",),
    fetch=("hf:/", "pytest_helmbench.benchmarks.packs.format.hub"),
)


def manifest_start(path: Path) -> dict[str, JsonValue]:
    """Return `id`, `version` and `schema_version` as far as they are there; empty where it cannot be read."""
    try:
        with path.open("rb") as file:
            text = file.read(_LARGEST).decode("utf-8-sig", "replace").replace("\r\n", "\n")
    except OSError:
        return {}
    if text.lstrip()[:1] == "{":
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):  # broken, which loading reports
            return {match[1]: _scalar(match[2]) for match in _JSON_FACT.finditer(text)}
        return found if isinstance(found, dict) else {}
    first = _FIRST_KEY.search(text)
    indent = first[1] if first is not None else ""
    return {match[2]: _scalar(match[3]) for match in reversed([*_FACT.finditer(text)]) if match[1] == indent}


def _scalar(written: str) -> str | int | None:
    """Return text or a whole number as YAML would; None for anything else."""
    if written[:1] in ("'", '"'):
        text, closed, _ = written[1:].partition(written[0])
        return text if closed else None
    written = written.replace("\t", " ").partition(" #")[0].strip()
    if _WHOLE.match(written):
        return int(written)
    return None if not written or _NO_TEXT.fullmatch(written) else written
