"""Question packs: from a folder to the rows that can run and the problems of the others. Rows are not kept."""

from __future__ import annotations

import hashlib
import json
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import field, replace
from functools import partial
from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.compile import RowFacts, RowReader
from pytest_helmbench.benchmarks.packs.format.manifest import Manifest, load_manifest
from pytest_helmbench.benchmarks.packs.format.pack_files import PackBounds, PackFiles, hash_files
from pytest_helmbench.benchmarks.packs.places import row_files_of
from pytest_helmbench.benchmarks.packs.task import BrokenRow, ConfigError, PackTask
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import RowRef
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.files.field_values import RowFaults, kind_of, named
from pytest_helmbench.files.source import Fault, Findings, Reader
from pytest_helmbench.files.strict_json import Flaw, NotJSONError, StrictJSON

MOST_ROW_BYTES = 64 * 1024 * 1024
MOST_FILE_BYTES = 2 * 1024**3
"""Of a row file."""

_BOM = b"\xef\xbb\xbf"


@dataclass(slots=True)
class Line:
    """One line that is not blank.

    Args:
        number: 1-based; blank lines count.
        offset: Of its first byte.
        length: Bytes, line end included.
        raw: Those bytes; None for a line that is too long to be read.
    """

    number: int
    offset: int
    length: int
    raw: bytes | None


def unusable(path: Path) -> Problem | None:
    """Return why a row file cannot be read at all; None for one that can."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return Problem(path, None, "rows: the file is a symbolic link", "copy the file to its place")
        if not stat.S_ISREG(mode):
            return Problem(path, None, "rows: this is no plain file")
        size = path.lstat().st_size
        if size > MOST_FILE_BYTES:
            message = f"rows: the file has {size:,} bytes; at most {MOST_FILE_BYTES:,} are read"
            return Problem(path, None, message, "split it in several files, or several packs")
        with path.open("rb"):
            return None
    except OSError as error:
        return Problem(path, None, f"rows: the file cannot be read: {error.strerror or error}")


def row_lines(path: Path, digest: hashlib._Hash, most: int = MOST_ROW_BYTES) -> Iterator[Line]:
    """Yield the lines of a row file that are not blank, and add them to a hash.

    Args:
        path: The file.
        digest: The hash.
        most: Bytes of a line that are read.

    Raises:
        OSError: The file cannot be read on.
    """
    with path.open("rb") as file:
        offset = len(_BOM) if file.read(len(_BOM)) == _BOM else 0
        file.seek(offset)
        for number, raw in enumerate(iter(partial(file.readline, most + 1), b""), start=1):
            length = len(raw)
            if length > most and not raw.endswith(b"\n"):
                digest.update(raw)
                while not raw.endswith(b"\n") and (raw := file.readline(most)):
                    length += len(raw)
                    digest.update(raw)
                yield Line(number, offset, length, None)
            elif not raw.isspace():
                digest.update(raw.rstrip(b"\r\n"))
                digest.update(b"\n")
                yield Line(number, offset, length, raw)
            offset += length


def decode_row(decoder: StrictJSON, raw: bytes | None, faults: RowFaults) -> dict[str, JsonValue] | None:
    """Return the object of a line, or None after filing why it is none."""
    if raw is None:
        faults.error("row", f"the line is longer than {MOST_ROW_BYTES // 1024**2} MiB")
        return None
    try:
        row, flaws = decoder.decode(raw.rstrip(b"\r\n").decode("utf-8"))
    except UnicodeDecodeError as error:
        message = f"byte 0x{raw[error.start]:02x} (column {error.start + 1}) is not UTF-8"
        faults.error("row", message, "save the file with the encoding UTF-8")
        return None
    except NotJSONError as error:
        hint = "every line is one JSON object of its own"
        if b"\r" in raw.rstrip(b"\r\n"):
            hint = "save the file with LF line ends"
        faults.error("row", f"this is no valid JSON: {error}", hint)
        return None
    for flaw in flaws:
        is_deep = flaw.key and len(flaw.place) > 2
        faults.error(_where(flaw), "a key stands twice in it" if is_deep else flaw.message, flaw.hint)
    if isinstance(row, dict):
        return row
    faults.error("row", f"this is {kind_of(row)}, not an object", "every line is one JSON object")
    return None


_OPEN = frozenset({"id", "family", "input", "eval", "assets", "environment", "metadata"})


def _where(flaw: Flaw) -> str:
    """Name the place of a flaw; below a field of `eval` no further, for its keys may be hidden values."""
    parts = [str(part) for part in flaw.place]
    shown = ".".join(parts[:2])
    if not parts or parts[0] not in _OPEN or not shown.isprintable() or len(shown) > 80:
        return "row"
    return shown


_CONTENT_DIGITS = 16
_MOST_ROWS = 2_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Pack:
    """A pack with everything that was found in it; of the rows only where they stand.

    Args:
        root: The folder.
        manifest: As read.
        hash: SHA-256 (hex) over manifest, rows and the files below the asset roots.
        files: Looks files up.
        rows: Healthy rows in file order; none of a pack whose manifest has problems.
        broken: The other rows in file order.
        problems: Of the manifest and of whole files: one erroring item, and no row runs.
        warnings: What is odd but usable; the same in many rows is told once.
        cluster: Metadata key of rows that stand or fall together; None where rows are independent.
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

    @property
    def id(self) -> str:
        """The manifest's."""
        return self.manifest.id

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
        try:
            with ref.path.open("rb") as file:
                file.seek(ref.offset)
                raw = file.read(ref.length)
        except OSError as error:
            raise ConfigError(f"{ref.path}: the file cannot be read: {error.strerror or error}") from error
        row = decode_row(StrictJSON(), raw, faults)
        if row is None or reader.check(row, faults).id != ref.id or faults.errors:
            message = f"the row {named(ref.id)} is not what it was when the pack was loaded"
            hint = "leave row files alone while a session runs"
            raise ConfigError(Problem(ref.path, ref.line, message, hint).text())
        return reader.task(row)


def load_pack(root: Path, bounds: PackBounds | None = None, cluster: str | None = None) -> Pack:
    """Read a pack in one pass, keeping of each healthy row only where it stands.

    Args:
        root: Folder of the manifest.
        bounds: What one row may lay out; None for the usual bounds.
        cluster: Metadata key of rows that stand or fall together; None for the manifest's.

    Raises:
        UnreadablePackError: There is no manifest that can be read.

    Source:
        Benchmark packs, section 1.
    """
    reader = Reader(Findings(), root)
    manifest = load_manifest(reader, root)
    files = PackFiles(root, manifest.public_root, manifest.eval_root, bounds or PackBounds())
    cluster = cluster or manifest.cluster
    intake = _Intake(RowReader(manifest, files), cluster, _shared_content(root, manifest))
    digest = hashlib.sha256(reader.content_hash(root).encode())
    row_files = tuple(row_files_of(root))
    if not row_files:
        hint = "write one JSON object per line into tasks.jsonl"
        reader.findings.add(manifest.path, Fault(None, "rows: there is no *.jsonl beside the manifest", hint))
    for path in row_files:
        digest.update(f"{path.name}:".encode("utf-8", "surrogateescape"))
        problem = unusable(path) or intake.read(path, digest)
        if problem is not None:
            reader.findings.problems.append(problem)
    hash_files(files, digest)
    problems = tuple(reader.findings.problems)
    if row_files and not problems:
        intake.check_whole(manifest.path, row_files[0])
    return Pack(
        root=root,
        manifest=manifest,
        hash=digest.hexdigest(),
        files=files,
        rows=() if problems else intake.healthy(),
        broken=intake.broken(),
        problems=problems,
        warnings=(*reader.findings.warnings, *intake.warnings()),
        cluster=cluster,
    )


def _shared_content(root: Path, manifest: Manifest) -> bytes | None:
    """Return what makes up a case beside its row; None where files do, which no row can speak for."""
    if any((root / folder).exists() for folder in (manifest.public_root, manifest.eval_root)):
        return None
    return json.dumps([manifest.family, manifest.environment], sort_keys=True).encode()


class _Intake:
    """Takes in row after row.

    Args:
        reader: Of the pack.
        cluster: Metadata key of rows that stand or fall together; None for none.
        base: What makes up a case beside its row; None where a row cannot speak for its case.
    """

    def __init__(self, reader: RowReader, cluster: str | None, base: bytes | None) -> None:
        self.seen = 0
        self.clusters: dict[str, str] = {}
        self._cluster = cluster
        self._base = base
        self._reader = reader
        self._decoder = StrictJSON()
        self._groups = Groups()
        self._rows: list[RowRef] = []
        self._broken: list[BrokenRow] = []
        self._first: dict[str, RowRef | BrokenRow] = {}
        self._warnings: dict[str, tuple[Path, Fault]] = {}
        self._times = Counter[str]()

    def read(self, path: Path, digest: hashlib._Hash) -> Problem | None:
        """Take in the rows of a file; return why it could not be read to its end."""
        try:
            for line in row_lines(path, digest):
                self.seen += 1
                if self.seen > _MOST_ROWS:
                    return Problem(path, line.number, f"rows: a pack has at most {_MOST_ROWS:,} rows")
                self._take(path, line)
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

    def check_whole(self, manifest: Path, first: Path) -> None:
        """Note that there is no row, or that the cluster key is none of theirs."""
        if not self.seen:
            self.warn(first, Fault(None, "rows: there is no row in it", usable=True))
        elif self._cluster is not None and not self.clusters:
            message = f"cluster: no row has a short value of metadata.{self._cluster}: each counts for itself"
            self.warn(manifest, Fault(None, message, "name a key of the rows' metadata", usable=True))

    def healthy(self) -> tuple[RowRef, ...]:
        """Return the healthy rows with their final groups."""
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

    def _take(self, path: Path, line: Line) -> None:
        faults = RowFaults(line.number)
        row = decode_row(self._decoder, line.raw, faults)
        facts = self._reader.check(row, faults) if row is not None else RowFacts(None, "", None, {})
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
        value = None if self._cluster is None else short_value(facts.metadata.get(self._cluster))
        return None if value is None else self.clusters.setdefault(value, value)

    def _content_of(self, raw: bytes | None) -> str:
        if self._base is None or raw is None:
            return ""
        return hashlib.sha256(self._base + raw.strip()).hexdigest()[:_CONTENT_DIGITS]


Pairs = tuple[tuple[str, str], ...]

_MOST_KEYS = 12
_MOST_VALUES = 64
_LONGEST = 80  # characters


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
    """

    def __init__(self) -> None:
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
                found.append(pair)
        pairs = tuple(found)
        return self._known.setdefault(pairs, pairs)

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
