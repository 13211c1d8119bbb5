"""Question packs: from a folder to the rows that can run and the problems of the others. Rows are not kept."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import field, replace
from pathlib import Path

from pytest_helmbench.benchmarks.authoring import counted
from pytest_helmbench.benchmarks.packs.format.compile import RowFacts, RowReader
from pytest_helmbench.benchmarks.packs.format.manifest import Manifest, load_manifest
from pytest_helmbench.benchmarks.packs.format.pack_files import PackFiles, hash_files
from pytest_helmbench.benchmarks.packs.format.row_files import (
    MOST_ROWS,
    Line,
    ReadRow,
    TableError,
    decode_row,
    jsonl_rows,
    unusable,
)
from pytest_helmbench.benchmarks.packs.format.table_columns import (
    NO_TABLE_OPTIONS,
    Columns,
    TableOptions,
    Tables,
)
from pytest_helmbench.benchmarks.packs.format.task_folders import TaskFolders
from pytest_helmbench.benchmarks.packs.task import BrokenRow, ConfigError, PackTask
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import RowRef
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.files.field_values import RowFaults, named
from pytest_helmbench.files.source import Fault, Findings, Reader
from pytest_helmbench.files.strict_json import StrictJSON

_CONTENT_DIGITS = 16
_TITLE = 160  # characters
Pairs = tuple[tuple[str, str], ...]

_MOST_KEYS = 12
_MOST_VALUES = 64
_LONGEST = 80  # characters


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """A pack with everything that was found in it; of the rows only where they stand.

    Args:
        hash: SHA-256 (hex) over manifest, rows and the files below the asset roots.
        rows: Healthy rows in file order; none of a pack whose manifest has problems.
        broken: The other rows in file order.
        problems: Of the manifest and of whole files: one erroring item, and no row runs.
        warnings: Warnings about usable rows; the same in many rows stands once.
        cluster: Metadata key of rows that stand or fall together; None where rows are independent.
        tables: That hold its rows, or task folders; None where these are lines of the format itself.
    """

    root: Path
    manifest: Manifest
    hash: str
    files: PackFiles = field(repr=False)
    rows: tuple[RowRef, ...] = field(repr=False)
    broken: tuple[BrokenRow, ...]
    problems: tuple[Problem, ...]
    warnings: tuple[Problem, ...]
    cluster: str | None = None
    tables: Tables | TaskFolders | None = None

    @property
    def id(self) -> str:
        """The manifest's."""
        return self.manifest.id

    @property
    def columns(self) -> Columns | None:
        """Columns of its tables; None where it has none."""
        return None if self.tables is None else self.tables.columns

    @property
    def understood(self) -> str:
        """One line on how its tables were understood; empty where there are none."""
        columns = self.columns
        if self.tables is None or columns is None:
            return ""
        groups = [*dict.fromkeys(name for row in self.rows for name, _ in row.groups)]
        head = f"{self.id}: {counted(len(self.rows), 'question')} ({columns.family})"
        broken = f"{counted(len(self.broken), 'row')} with problems" if self.broken else ""
        return ", ".join(filter(None, (head, self.tables.understood(groups), broken, self.manifest.note)))

    def warnings_of(self, *, gives_network: bool) -> tuple[Problem, ...]:
        """Return all warnings; where boxes get no network, those of tasks that need one too."""
        lacks = self.tables.without_network() if isinstance(self.tables, TaskFolders) else ()
        return self.warnings if gives_network else (*lacks, *self.warnings)

    def all_problems(self) -> Iterator[Problem]:
        """Yield every problem: of the manifest, of files, of rows."""
        yield from self.problems
        for row in self.broken:
            yield from row.problems

    def task(self, ref: RowRef) -> PackTask:
        """Read a row again and compile it.

        Raises:
            ConfigError: The row file has changed since it was loaded.
        """
        faults = RowFaults(ref.line)
        reader = RowReader(self.manifest, self.files)
        row = decode_row(StrictJSON(), self.text(ref), faults)
        if row is None or reader.check(row, faults).id != ref.id or faults.errors:
            message = f"the row {named(ref.id)} is not what it was when the pack was loaded"
            hint = "leave row files alone while a session runs"
            raise ConfigError(Problem(ref.path, ref.line, message, hint).text())
        return reader.task(row)

    def title(self, ref: RowRef) -> str:
        """Return the start of the question of a row, on one line."""
        public = json.loads(self.text(ref))["input"]
        question = str(public.get("question") or public.get("prompt") or "")
        return excerpt(" ".join(question.split()), _TITLE)

    def text(self, ref: RowRef) -> bytes:
        """Return a row as it is written, one of a table as JSON.

        Raises:
            ConfigError: The file cannot be read.
        """
        if self.tables is not None:
            return self.tables.text(ref)
        try:
            with ref.path.open("rb") as file:
                file.seek(ref.offset)
                return file.read(ref.length)
        except OSError as error:
            raise ConfigError(f"{ref.path}: the file cannot be read: {error.strerror or error}") from error


def load_pack(
    root: Path,
    cluster: str | None = None,
    table_options: TableOptions = NO_TABLE_OPTIONS,
) -> Pack:
    """Read a pack in one pass, keeping of each healthy row only where it stands.

    Args:
        root: Folder of the manifest; or a table, which is a pack in memory.
        cluster: Metadata key of rows that stand or fall together; None for the manifest's.
        table_options: What the user says of tables; it goes before what the manifest says.

    Raises:
        ConfigError: There is no manifest that can be read, or a table cannot be understood.

    Source:
        Benchmark packs, section 1.
    """
    reader = Reader(Findings(), root)
    manifest = load_manifest(reader, root)
    files = PackFiles(root, manifest.public_root, manifest.eval_root)
    tables = _held_rows(root, manifest, table_options)
    collector = _RowCollector(RowReader(manifest, files), manifest, root, cluster or manifest.cluster)
    digest = hashlib.sha256(reader.content_hash(root).encode())
    for path in manifest.row_files:
        digest.update(f"{path.name}:".encode("utf-8", "surrogateescape"))
        rows = jsonl_rows(path, digest) if tables is None else tables.rows(path, digest)
        place = path.resolve() if path == root else path
        problem = (None if manifest.has_folders else unusable(place)) or collector.read(path, rows)
        reader.findings.problems += [] if problem is None else [problem]
    if manifest.path == root and not collector.seen and not reader.findings.problems:
        raise TableError(root, "there is no row in it", "write a question into the line below the header")
    if not manifest.has_folders:
        hash_files(files, digest)
    problems = tuple(reader.findings.problems)
    if not problems:
        collector.check_whole()
    return Pack(
        root,
        manifest,
        digest.hexdigest(),
        files,
        rows=() if problems else collector.healthy(),
        broken=collector.broken(),
        problems=problems,
        warnings=(*reader.findings.warnings, *collector.warnings()),
        cluster=collector.cluster,
        tables=tables,
    )


def _held_rows(root: Path, manifest: Manifest, table_options: TableOptions) -> Tables | TaskFolders | None:
    if manifest.has_folders:
        return TaskFolders(root)
    return Tables(manifest.row_files, table_options.before(manifest.table)) if manifest.has_tables else None


def _shared_content(root: Path, manifest: Manifest) -> bytes | None:
    """Return what makes up a case beside its row; None where files do, which no row can speak for."""
    folders = () if manifest.has_folders else (manifest.public_root, manifest.eval_root)
    if any((root / folder).exists() for folder in folders):
        return None
    return json.dumps([manifest.family, manifest.environment], sort_keys=True).encode()


class _RowCollector:
    """Takes in row after row.

    Args:
        cluster: Metadata key of rows that stand or fall together; None for none.
    """

    def __init__(self, reader: RowReader, manifest: Manifest, root: Path, cluster: str | None) -> None:
        self.seen = 0
        self.clusters: dict[str, str] = {}
        self.cluster = cluster
        self._base = _shared_content(root, manifest)
        self._manifest = manifest
        self._reader = reader
        self._groups = Groups(repeated=manifest.has_tables)
        self._rows: list[RowRef] = []
        self._broken: list[BrokenRow] = []
        self._first: dict[str, RowRef | BrokenRow] = {}
        self._warnings: dict[str, tuple[Path, Fault]] = {}
        self._times = Counter[str]()

    def read(self, path: Path, rows: Iterable[ReadRow]) -> Problem | None:
        """Take in the rows of a file; return why it could not be read to its end."""
        try:
            for read in rows:
                self.seen += 1
                if self.seen > MOST_ROWS:
                    return Problem(path, read.line.number, f"rows: a pack has at most {MOST_ROWS:,} rows")
                if read.row is None:
                    facts = RowFacts(read.name, "", None, {})
                else:
                    facts = self._reader.check(read.row, read.faults)
                self._take(path, read.line, facts, read.faults)
        except OSError as error:
            return Problem(path, None, f"rows: the file cannot be read: {error.strerror or error}")
        return None

    def warn(self, path: Path, fault: Fault) -> None:
        """Note something odd; the same once more is only counted."""
        self._warnings.setdefault(fault.message, (path, fault))
        self._times[fault.message] += 1

    def warnings(self) -> Iterator[Problem]:
        """Yield what is odd, in file order."""
        for path, fault in self._warnings.values():
            more = self._times[fault.message] - 1
            message = fault.message + (f" (and in {more:,} more rows)" if more else "")
            yield Problem(path, fault.line, message, fault.hint)

    def check_whole(self) -> None:
        """Note that there is no row, or that the cluster key is none of theirs."""
        if not self.seen:
            self.warn(self._manifest.row_files[0], Fault(None, "rows: there is no row in it", usable=True))
        elif self.cluster is not None and not self.clusters:
            message = f"cluster: no row has a short value of metadata.{self.cluster}: each counts for itself"
            self.warn(
                self._manifest.path, Fault(None, message, "name a key of the rows' metadata", usable=True)
            )

    def healthy(self) -> tuple[RowRef, ...]:
        """Return the healthy rows with their final groups."""
        self._groups.end()
        finals = ((row, self._groups.final(row.groups)) for row in self._rows)
        return tuple(row if groups is row.groups else replace(row, groups=groups) for row, groups in finals)

    def broken(self) -> tuple[BrokenRow, ...]:
        """Return the broken rows under names that nothing else in the pack has."""
        rows: list[BrokenRow] = []
        taken = set(self._first)
        for row in self._broken:
            name = row.name or f"line-{row.line}"
            if not row.name and name in taken:
                name = f"line-{row.line}-of-{row.path.stem}"
            taken.add(name)
            rows.append(replace(row, name=name))
        return tuple(rows)

    def _take(self, path: Path, line: Line, facts: RowFacts, faults: RowFaults) -> None:
        identity = facts.id
        if identity is not None and identity in self._first:
            first, identity = self._first[identity], None
            where = f"line {first.line}" + (f" of {first.path.name}" if first.path != path else "")
            message = f"{named(facts.id)} is the id of another row (first in {where})"
            faults.error("id", message, "rename one of them")
        for fault in faults.warnings:
            self.warn(path, fault)
        if faults.errors or identity is None:
            problems = tuple(Problem(path, fault.line, fault.message, fault.hint) for fault in faults.errors)
            broken = BrokenRow(identity or "", path, faults.line, problems)
            self._broken.append(broken)
            self._first.update({identity: broken} if identity is not None else {})
            return
        groups = self._groups.of(facts.metadata)
        self._first[identity] = ref = RowRef(
            identity,
            path,
            line.number,
            line.offset,
            line.length,
            facts.family,
            facts.skip_reason,
            groups,
            facts.judged,
            self._cluster_of(facts),
            self._content_of(line.raw),
        )
        self._rows.append(ref)

    def _cluster_of(self, facts: RowFacts) -> str | None:
        """Return what a row stands or falls with; equal values are one object."""
        value = None if self.cluster is None else short_value(facts.metadata.get(self.cluster))
        return None if value is None else self.clusters.setdefault(value, value)

    def _content_of(self, raw: bytes | None) -> str:
        if self._base is None or raw is None:
            return ""
        return hashlib.sha256(self._base + raw.strip()).hexdigest()[:_CONTENT_DIGITS]


def short_value(value: JsonValue) -> str | None:
    """Return a metadata value as text; None for one that names no group: long, empty, no text or whole number."""
    if type(value) is str:
        text = value
    elif type(value) is int or type(value) is bool:
        text = str(value).lower()
    else:
        return None
    return text if 0 < len(text) <= _LONGEST else None


class Groups:
    """Gathers groups while rows are read. Each distinct value is held once, however many rows have it.

    A group is a key of `metadata` whose values are short texts, whole numbers or true and false. Keys beyond the
    twelfth, and keys with more than 64 values (row numbers, URLs), group nothing.

    Args:
        repeated: Nor do keys of which no value comes twice.
    """

    def __init__(self, *, repeated: bool = False) -> None:
        self._repeated = repeated
        self._seen = Counter[str]()
        self._values: dict[str, dict[str, tuple[str, str]]] = {}
        self._crowded: set[str] = set()
        self._known: dict[Pairs, Pairs] = {(): ()}

    def of(self, metadata: JsonObject) -> Pairs:
        """Return the groups of a row as far as they are known by now."""
        found: list[tuple[str, str]] = []
        for key, value in metadata.items():
            if key in self._crowded:
                continue
            text = short_value(value)
            pair = None if text is None else self._pair(key, text)
            if pair is not None:
                self._seen[key] += 1
                found.append(pair)
        pairs = tuple(found)
        return self._known.setdefault(pairs, pairs)

    def end(self) -> None:
        """Note that all rows are read."""
        if self._repeated:
            self._crowded |= {key for key, values in self._values.items() if len(values) == self._seen[key]}

    def final(self, pairs: Pairs) -> Pairs:
        """Return the groups of a row once all rows are read: without keys that turned out to group nothing."""
        if not self._crowded or not pairs:
            return pairs
        left = tuple(pair for pair in pairs if pair[0] not in self._crowded)
        return self._known.setdefault(left, left)

    def _pair(self, key: str, text: str) -> tuple[str, str] | None:
        values = self._values.get(key)
        if values is None:
            if len(self._values) >= _MOST_KEYS or len(key) > _LONGEST:
                return None
            values = self._values[key] = {}
        pair = values.get(text)
        if pair is None:
            if len(values) >= _MOST_VALUES:
                self._crowded.add(key)
                self._values[key] = {}  # it keeps its place among the twelve
                return None
            pair = values[text] = (key, text)
        return pair
