"""The manifest of a pack, and the settings that a row may say otherwise."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.benchmarks.packs.families.registry import FOLDER_FAMILY
from pytest_helmbench.benchmarks.packs.format.path_rules import overlap, path_fault, trimmed
from pytest_helmbench.benchmarks.packs.format.table_columns import NO_TABLE_OPTIONS, TableOptions
from pytest_helmbench.benchmarks.packs.places import (
    FOREIGN_VERSION,
    MANIFEST_NAMES,
    is_table_name,
    manifests_of,
    row_files_of,
    strangers_among,
    task_files_of,
)
from pytest_helmbench.benchmarks.packs.task import UnreadablePackError
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.files.field_values import RowFaults
from pytest_helmbench.files.source import Fault, Reader
from pytest_helmbench.files.strict_json import a_mapping, a_text, a_whole_number, texts
from pytest_helmbench.files.validation import FormatSchema, shipped_schema, validate
from pytest_helmbench.files.yaml_text import Document, parse_json, parse_yaml

_PUBLIC_ROOT = "assets"
_EVAL_ROOT = "hidden"


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest with the defaults of the keys that it leaves out.

    Args:
        path: The file; the table where that alone is the pack.
        version: Counts up.
        description: For people; empty where there is none.
        family: Default of the rows; None where there is none, empty where it is not a name.
        environment: Default of the rows, as written.
        row_files: In order: lines of the format itself, or tables.
        has_tables: Whether they are tables.
        has_folders: Whether they are task folders, each by its task.toml.
        table: What it says of the tables.
        public_root: Folder of public files, relative.
        eval_root: Folder of the evaluator's files, relative.
        read_only: Default of the rows' files.
        cluster: Metadata key whose rows stand or fall together; None where rows are independent.
        answer_form: Default of the rows; None where there is none.
        hidden: What `eval` holds is kept from everything that leaves the evaluator.
        note: What the first line of a session says besides; empty for nothing.
    """

    path: Path
    id: str
    version: int
    description: str
    family: str | None
    environment: JsonObject
    row_files: tuple[Path, ...]
    has_tables: bool
    has_folders: bool = False
    table: TableOptions = NO_TABLE_OPTIONS
    public_root: str = _PUBLIC_ROOT
    eval_root: str = _EVAL_ROOT
    read_only: bool = True
    cluster: str | None = None
    answer_form: str | None = None
    hidden: bool = True
    note: str = ""


def load_manifest(reader: Reader, root: Path) -> Manifest:
    """Read a manifest and find the files with the rows, filing what is wrong with them.

    After an error the manifest that comes back is good only for looking at the rows.

    Raises:
        UnreadablePackError: There is none, it is of another format, or nothing in it can be read.

    Source:
        Benchmark packs, section 1.
    """
    if root.is_file():  # a table that is named itself: its owner sees all of it
        return Manifest(root, root.name, 1, "", None, {}, (root,), has_tables=True, hidden=False)
    if tasks := task_files_of(root):
        if strangers := strangers_among(root) if root not in (one.parent for one in tasks) else []:
            what = f"pytest runs nothing in {', '.join(strangers)}: this is a folder of tasks"
            reader.findings.add(root, Fault(None, what, "move them elsewhere", usable=True))
        return Manifest(
            root, root.name, 1, "", FOLDER_FAMILY, {}, (*tasks,), has_tables=False, has_folders=True
        )
    found = manifests_of(root)
    if not found:
        hint = f"a pack has a {MANIFEST_NAMES[0]} with 'id' and 'version'"
        raise UnreadablePackError((Problem(root, None, "there is no manifest", hint),))
    path = found[0]
    for other in found[1:]:
        message = f"there is {path.name} as well"
        reader.findings.add(other, Fault(None, f"manifest: {message}", "keep one of them"))
    if path.is_symlink():
        message, hint = "manifest: the file is a symbolic link", "copy the file to its place"
        reader.findings.add(path, Fault(None, message, hint))
    text = reader.text(path)
    document = Document(None)
    if text is not None:
        is_json = path.suffix == ".json"
        document = parse_json(text) if is_json else parse_yaml(text, keep_keys=True)
        reader.findings.add(path, *validate(document, PACK_SCHEMA))
    if str(document.mapping().get("schema_version")) == FOREIGN_VERSION:
        line = document.line("schema_version")
        message = f"schema_version: '{FOREIGN_VERSION}' is another format of packs, which is not read here"
        raise UnreadablePackError((Problem(path, line, message),))
    if not isinstance(document.data, dict):
        raise UnreadablePackError(tuple(reader.findings.problems))
    return _manifest(reader, path, document)


def check_settings(faults: RowFaults, row: JsonObject) -> None:
    """File what is wrong with the settings of a row that its manifest may say for all rows."""
    document = Document(dict(row), {(): faults.line})
    for fault in validate(document, _ROW_SETTINGS):
        (faults.warnings if fault.usable else faults.errors).append(fault)


def _manifest(reader: Reader, path: Path, document: Document) -> Manifest:
    data = document.mapping()
    defaults, roots = a_mapping(data.get("defaults")), a_mapping(data.get("asset_roots"))
    public_root = _root(roots.get("public"), _PUBLIC_ROOT)
    eval_root = _root(roots.get("eval"), _EVAL_ROOT)
    if overlap(public_root, eval_root):
        message = f"asset_roots: the public root {public_root!r} and the eval root {eval_root!r} overlap"
        hint = "a model would see the evaluator's files: keep them apart"
        reader.findings.add(path, Fault(document.line("asset_roots", "eval"), message, hint))
    tables = texts(data.get("rows"))
    beside = tuple(path.parent / name for name in tables if not _table_fault(name))  # no other file is opened
    row_files = beside if tables else tuple(row_files_of(path.parent))
    if not row_files and not tables:
        hint = "write one JSON object per line into tasks.jsonl"
        reader.findings.add(path, Fault(None, "rows: there is no *.jsonl beside the manifest", hint))
    family = defaults.get("family")
    return Manifest(
        path=path,
        id=a_text(data.get("id")) or "",
        version=a_whole_number(data.get("version")) or 0,
        description=str(data.get("description") or ""),
        family=None if family is None and defaults == data.get("defaults", {}) else _name(family) or "",
        environment=a_mapping(defaults.get("environment")),
        row_files=row_files,
        has_tables=bool(tables),
        table=TableOptions(
            {name: str(column) for name, column in a_mapping(data.get("columns")).items()},
            a_text(data.get("rubric")),
        ),
        public_root=public_root,
        eval_root=eval_root,
        read_only=a_mapping(data.get("asset_defaults")).get("read_only") is not False,
        cluster=_name(data.get("cluster")),
        answer_form=a_text(data.get("answer_form")),
        hidden=data.get("hidden") is not False,
        note=a_text(data.get("note")) or "",
    )


def _name(value: JsonValue) -> str | None:
    return (a_text(value) or "").strip() or None


def _root(value: JsonValue, default: str) -> str:
    """Return an asset root without its slash; the default where none is given, or a wrong one."""
    return trimmed(value) if isinstance(value, str) and not path_fault(value) else default


def _table_fault(name: str) -> str:
    is_beside = not path_fault(name) and "/" not in name
    return "" if is_beside and is_table_name(name) else "is not a table beside the manifest"


PACK_SCHEMA = shipped_schema("pack", __name__, {"pack path": path_fault, "table": _table_fault})
_ROW_SETTINGS = FormatSchema(
    "row",
    lambda: {"properties": {name: PACK_SCHEMA.part(name) for name in ("environment", "answer_form")}},
    PACK_SCHEMA.checks,
)
