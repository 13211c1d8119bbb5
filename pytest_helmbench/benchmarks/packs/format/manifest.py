"""The manifest of a pack, and the environments that it and its rows name."""

from __future__ import annotations

from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.path_rules import overlap, path_fault, trimmed
from pytest_helmbench.benchmarks.packs.format.row_fields import object_in, text_in
from pytest_helmbench.benchmarks.packs.format.table_columns import FIELDS, NO_WISHES, Tables, TableWishes
from pytest_helmbench.benchmarks.packs.places import (
    FOREIGN_VERSION,
    MANIFEST_NAMES,
    TABLE_SUFFIXES,
    is_table_name,
    manifests_of,
)
from pytest_helmbench.benchmarks.packs.task import ANSWER_FORMS, UnreadablePackError
from pytest_helmbench.core.codes import image_fault
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.files.field_values import (
    RowFaults,
    check_seconds,
    check_text,
    check_unknown,
    kind_of,
    named,
)
from pytest_helmbench.files.source import Fault, Reader
from pytest_helmbench.files.strict_json import NotJSONError, StrictJSON, texts
from pytest_helmbench.files.yaml_text import Document, json_lines, parse_yaml

ENVIRONMENT_KEYS = ("image", "workdir", "timeout_seconds", "materialize_workdir_from_image", "repository")
_PUBLIC_ROOT = "assets"
_EVAL_ROOT = "hidden"
_KEYS = (
    "id",
    "version",
    "defaults",
    "asset_roots",
    "asset_defaults",
    "cluster",
    "name",
    "description",
    "schema_version",
    "answer_form",
    "rows",
    "columns",
    "rubric",
    "hidden",
    "note",
)


@dataclass(frozen=True, slots=True)
class Manifest:
    """A manifest with the defaults of the keys that it leaves out.

    Args:
        path: The file.
        id: Of the pack.
        version: Counts up.
        description: For people; empty where there is none.
        family: Default of the rows; None where there is none, empty where it is no text.
        environment: Default of the rows, as written.
        public_root: Folder of public files, relative.
        eval_root: Folder of the evaluator's files, relative.
        read_only: Default of the rows' files.
        cluster: Metadata key whose rows stand or fall together; None where rows are independent.
        answer_form: Default of the rows; None where there is none.
        rows: Tables beside the manifest that hold the rows; none where they are JSONL lines of the format itself.
        table: What it says of them.
        hidden: What `eval` holds is kept from everything that leaves the evaluator.
        note: What the first line of a session says besides; empty for nothing.
    """

    path: Path
    id: str
    version: int
    description: str
    family: str | None
    environment: JsonObject
    public_root: str = _PUBLIC_ROOT
    eval_root: str = _EVAL_ROOT
    read_only: bool = True
    cluster: str | None = None
    answer_form: str | None = None
    rows: tuple[str, ...] = ()
    table: TableWishes = NO_WISHES
    hidden: bool = True
    note: str = ""

    def tables(self, wishes: TableWishes) -> Tables | None:
        """Return the tables that hold the rows, with what the user says of them; None where none do."""
        if not self.rows:
            return None
        return Tables(self.path.parent, self.rows, wishes.before(self.table))


def load_manifest(reader: Reader, root: Path) -> Manifest:
    """Read a manifest, filing what is wrong with it.

    After an error the manifest that comes back is good only for looking at the rows.

    Raises:
        UnreadablePackError: There is none, it is of another format, or nothing in it can be read.

    Source:
        Benchmark packs, section 1.
    """
    if root.is_file():  # a table that is named itself: its owner sees all of it
        return Manifest(root, root.name, 1, "", None, {}, rows=(root.name,), hidden=False)
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
    document = _document(path, text) if text is not None else Document(None)
    if text is None or not isinstance(document.data, dict):
        if text is not None and not document.faults:
            message = f"manifest: this is {kind_of(document.data)}, not a mapping"
            document = Document(None, {}, (Fault(1, message, "write lines such as 'id: my-pack'"),))
        reader.findings.add(path, *document.faults)
        raise UnreadablePackError(tuple(reader.findings.problems))
    if str(document.data.get("schema_version")) == FOREIGN_VERSION:
        line = document.line("schema_version")
        message = f"schema_version: '{FOREIGN_VERSION}' is another format of packs, which is not read here"
        raise UnreadablePackError((Problem(path, line, message),))
    return _manifest(reader, path, document)


def check_environment(faults: RowFaults, where: str, data: JsonObject) -> None:
    """File what is wrong with an environment; unknown keys are warnings, empty values say nothing."""
    for key in ("image", "workdir", "repository"):
        if data.get(key) is not None:
            check_text(faults, f"{where}.{key}", data[key])
    image, repository = data.get("image"), data.get("repository")
    no_image = image_fault(image) if isinstance(image, str) and image.strip() else ""
    if no_image:
        faults.error(f"{where}.image", no_image, "write name, name:tag or name@digest")
    fault = path_fault(repository) if isinstance(repository, str) and repository.strip() else None
    if fault:
        faults.error(f"{where}.repository", f"the path {fault}", "write a path below the public root")
    if data.get("timeout_seconds") is not None:
        check_seconds(faults, f"{where}.timeout_seconds", data["timeout_seconds"])
    copies = data.get("materialize_workdir_from_image")
    if copies is not None and not isinstance(copies, bool):
        message = f"this is {kind_of(copies)}, not true or false"
        faults.error(f"{where}.materialize_workdir_from_image", message)
    check_unknown(faults, where, data, ENVIRONMENT_KEYS, usable=True)


def _document(path: Path, text: str) -> Document:
    if path.suffix != ".json":
        return parse_yaml(text, keep_keys=True)
    try:
        data, flaws = StrictJSON().decode(text)
    except NotJSONError as error:
        return Document(None, {}, (Fault(error.line, f"manifest: this is no valid JSON: {error}"),))
    lines = json_lines(text)
    document = Document(data, lines)
    faults = tuple(
        Fault(document.line(*flaw.place), f"{'.'.join(map(str, flaw.place))}: {flaw.message}", flaw.hint)
        for flaw in flaws
    )
    return Document(data, lines, faults)


def _manifest(reader: Reader, path: Path, document: Document) -> Manifest:
    data = document.mapping()
    faults = RowFaults(1, lambda where: document.line(*where.removeprefix("manifest.").split(".")))
    _check_identity(faults, data)
    check_unknown(faults, "manifest", data, _KEYS, usable=True)
    defaults, asset_defaults = _mapping(faults, data, "defaults"), _mapping(faults, data, "asset_defaults")
    check_unknown(faults, "defaults", defaults, ("family", "environment"), usable=True)
    check_unknown(faults, "asset_defaults", asset_defaults, ("read_only",), usable=True)
    for where, value in (("defaults.family", defaults.get("family")), ("cluster", data.get("cluster"))):
        if value is not None:
            check_text(faults, where, value)
    environment = _mapping(faults, defaults, "environment", "defaults.environment")
    check_environment(faults, "defaults.environment", environment)
    roots = _roots(faults, _mapping(faults, data, "asset_roots"))
    read_only = asset_defaults.get("read_only", True)
    if not isinstance(read_only, bool):
        faults.error("asset_defaults.read_only", f"this is {kind_of(read_only)}, not true or false")
    check_answer_form(faults, data)
    _check_table(faults, data)
    found = [*document.faults, *faults.errors, *faults.warnings]
    reader.findings.add(path, *sorted(found, key=lambda fault: fault.line or 0))
    family = defaults.get("family", None if isinstance(data.get("defaults"), dict | None) else "")
    version = data.get("version")
    return Manifest(
        path=path,
        id=text_in(data, "id") or "",
        version=version if type(version) is int else 0,
        description=str(data.get("description") or ""),
        family=None if family is None else (text_in(defaults, "family") or "").strip(),
        environment=environment,
        public_root=roots[0],
        eval_root=roots[1],
        read_only=read_only is not False,
        cluster=(text_in(data, "cluster") or "").strip() or None,
        answer_form=text_in(data, "answer_form"),
        rows=texts(data.get("rows")),
        table=TableWishes(
            {name: str(column) for name, column in object_in(data, "columns").items()},
            text_in(data, "rubric"),
        ),
        hidden=data.get("hidden") is not False,
        note=text_in(data, "note") or "",
    )


def _check_table(faults: RowFaults, data: JsonObject) -> None:
    """File what is wrong with the keys of a pack whose rows are a table."""
    names = data.get("rows", [])
    for name in names if isinstance(names, list) else [names]:
        if not isinstance(name, str) or path_fault(name) or "/" in name or not is_table_name(name):
            faults.error("rows", f"{named(name)} is no table beside the manifest", ", ".join(TABLE_SUFFIXES))
    check_unknown(faults, "columns", _mapping(faults, data, "columns"), [*FIELDS])
    if not isinstance(data.get("hidden", True), bool):
        faults.error("hidden", f"this is {kind_of(data['hidden'])}, not true or false")


def _mapping(faults: RowFaults, data: JsonObject, key: str, where: str = "") -> JsonObject:
    """Return the mapping at a key; empty where there is none, or something else."""
    found = data.get(key)
    if found is not None and not isinstance(found, dict):
        faults.error(where or key, f"this is {kind_of(found)}, not a mapping")
    return object_in(data, key)


def check_answer_form(faults: RowFaults, data: JsonObject) -> None:
    """File a form of answers that is none."""
    if data.get("answer_form", ANSWER_FORMS[0]) not in ANSWER_FORMS:
        faults.error("answer_form", "this is no form of an answer", f"one of {', '.join(ANSWER_FORMS)}")


def _check_identity(faults: RowFaults, data: JsonObject) -> None:
    identity, version = data.get("id"), data.get("version")
    if "id" not in data:
        faults.error("manifest", "there is no 'id'", "add 'id: my-pack'")
    elif not isinstance(identity, str):
        hint = "write one name" if isinstance(identity, list | dict) else "put it in quotes"
        faults.error("id", f"this is {kind_of(identity)}, not text", hint)
    else:
        check_text(faults, "id", identity)
    if "version" not in data:
        faults.error("manifest", "there is no 'version'", "add 'version: 1'")
    elif type(version) is not int:
        shown = named(version) if isinstance(version, str | float) else "this"
        faults.error(
            "version", f"{shown} is no whole number", "the version counts up, without quotes: 1, 2, 3"
        )


def _roots(faults: RowFaults, data: JsonObject) -> tuple[str, str]:
    """Return the public root and the eval root without their slashes."""
    check_unknown(faults, "asset_roots", data, ("public", "eval"), usable=True)
    roots: list[str] = []
    for key, default in (("public", _PUBLIC_ROOT), ("eval", _EVAL_ROOT)):
        value = default if data.get(key) is None else data[key]
        fault = path_fault(value) if isinstance(value, str) else f"is {kind_of(value)}, not text"
        if fault:
            shown = named(value) if isinstance(value, str) else "this"
            faults.error(
                f"asset_roots.{key}", f"{shown} {fault}", "write a relative POSIX path such as 'assets/'"
            )
        roots.append(trimmed(value) if isinstance(value, str) and not fault else default)
    if overlap(*roots):
        message = f"the public root {roots[0]!r} and the eval root {roots[1]!r} overlap"
        faults.error("asset_roots.eval", message, "a model would see the evaluator's files: keep them apart")
    return roots[0], roots[1]
