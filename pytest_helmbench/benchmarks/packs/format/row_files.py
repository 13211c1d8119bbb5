"""Files of rows: the lines of a *.jsonl, and tables (CSV, TSV, JSON, JSONL, Parquet) as records."""

from __future__ import annotations

import csv
import hashlib
import json
import stat
from codecs import BOM_UTF16_BE, BOM_UTF16_LE
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from importlib import import_module
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, NamedTuple, TextIO
from weakref import finalize

from pytest_helmbench.benchmarks.packs.task import ConfigError
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outline import RowRef
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.files.field_values import RowFaults, kind_of, named
from pytest_helmbench.files.source import HALF_MERGED, RESOLVE, half_merged, is_merge_mark
from pytest_helmbench.files.strict_json import Flaw, NotJSONError, StrictJSON, is_encodable

MOST_ROW_BYTES = 64 * 1024 * 1024
MOST_FILE_BYTES = 2 * 1024**3
"""Most bytes of a row file."""
MOST_ROWS = 2_000_000

_UTF_16 = "utf-16"
_BOM = b"\xef\xbb\xbf"
_OPEN = frozenset({"id", "family", "input", "eval", "assets", "environment", "metadata"})
_SEPARATORS = ",;\t|"
_SAMPLE = 8_192  # characters
_LOOKED_AT = 100  # objects whose keys are the columns
_BATCH = 1_000
_MOST_DECODED = 2**30
"""Most bytes that the rows of a Parquet file may have, however few its compressed pages have."""
_BUFFER = 2**20
_QUOTES = "a cell with separators, quotes or line breaks stands in quotes, with its own quotes doubled"
_SAVED = "save it in UTF-8 (a spreadsheet calls it 'CSV UTF-8')"
_EXTRA = "pip install 'pytest-helmbench[tables]'"


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
            return Problem(path, None, "rows: this is not a plain file")
        size = path.lstat().st_size
        if size > MOST_FILE_BYTES:
            message = f"rows: the file has {size:,} bytes; at most {MOST_FILE_BYTES:,} are read"
            return Problem(path, None, message, "split it in several files, or several packs")
        with path.open("rb"):
            return None
    except OSError as error:
        return Problem(path, None, f"rows: the file cannot be read: {error.strerror or error}")


def row_lines(path: Path, digest: hashlib._Hash, most: int = MOST_ROW_BYTES) -> Iterator[Line]:
    """Yield the lines of a row file that are not blank, and add them to a hash; of each, `most` bytes are read.

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
        what, hint = f"this is not valid JSON: {error}", "every line is one JSON object of its own"
        if is_merge_mark(raw.decode("utf-8", "replace")):
            what, hint = HALF_MERGED, RESOLVE
        elif b"\r" in raw.rstrip(b"\r\n"):
            hint = "save the file with LF line ends"
        faults.error("row", what, hint)
        return None
    for flaw in flaws:
        is_deep = flaw.key and len(flaw.place) > 2
        faults.error(_where(flaw), "a key stands twice in it" if is_deep else flaw.message, flaw.hint)
    if isinstance(row, dict):
        return row
    faults.error("row", f"this is {kind_of(row)}, not an object", "every line is one JSON object")
    return None


def _where(flaw: Flaw) -> str:
    """Name the place of a flaw; below a field of `eval` no further, for its keys may be hidden values."""
    parts = [str(part) for part in flaw.place]
    shown = ".".join(parts[:2])
    is_shown = parts and parts[0] in _OPEN and shown.isprintable() and len(shown) <= 80
    return shown if is_shown else "row"


class TableError(ConfigError):
    """A table that cannot be understood as a whole; it ends the session."""

    def __init__(self, path: Path, message: str, hint: str = "", line: int | None = None) -> None:
        super().__init__(Problem(Path(path.name), line, message, hint).text())


class ReadRow(NamedTuple):
    """A row as it is read; None for one that is not an object. One with faults goes by its name, where it has one.

    Rows of tables have their columns in place of the fields of the format.
    """

    line: Line
    row: dict[str, JsonValue] | None
    faults: RowFaults
    name: str | None = None


def jsonl_rows(path: Path, digest: hashlib._Hash) -> Iterator[ReadRow]:
    """Yield the rows of a *.jsonl, and add them to a hash.

    Raises:
        OSError: The file cannot be read on.
    """
    decoder = StrictJSON()
    for line in row_lines(path, digest):
        faults = RowFaults(line.number)
        yield ReadRow(line, decode_row(decoder, line.raw, faults), faults)


class HeldRows:
    """Rows as JSON in a file without a name: they take no memory, and a changed file of the user changes no case."""

    def __init__(self) -> None:
        self._rows = TemporaryFile()  # noqa: SIM115 - it lives as long as its pack
        finalize(self, self._rows.close)
        self._lock = Lock()

    def hold(self, number: int, raw: bytes) -> Line:
        """Keep a row, and return where it stands, with the number of its line in the user's file."""
        line = Line(number, self._rows.tell(), len(raw), raw)
        self._rows.write(raw)
        return line

    def text(self, ref: RowRef) -> bytes:
        """Return a row as JSON."""
        with self._lock:
            self._rows.seek(ref.offset)
            return self._rows.read(ref.length)


class Table(NamedTuple):
    """An open table: its columns, in order, and its rows, read one after the other; blank ones are left out."""

    names: tuple[str, ...]
    records: Iterator[ReadRow]


def open_table(path: Path) -> Table:
    """Open a table.

    Raises:
        TableError: It is none, or an extra is missing.
        OSError: The file cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return _parquet(path)
    encoding = _encoding(path)
    if suffix in (".csv", ".tsv"):
        return _separated(path, suffix, encoding)
    records = _array(path, encoding) if suffix == ".json" else _lines(path, encoding)
    first = list(islice(records, _LOOKED_AT))
    names = dict.fromkeys(name for record in first for name in record.row or ())
    return Table(tuple(names), chain(first, records))


def _encoding(path: Path) -> str:
    """Return the encoding of a file: UTF-8, or UTF-16 where a byte order mark says so.

    Raises:
        TableError: More than one line is not UTF-8: a spreadsheet has saved it otherwise.
    """
    lines: list[int] = []
    with path.open("rb") as file:
        if file.read(2) in (BOM_UTF16_LE, BOM_UTF16_BE):
            return _UTF_16
        file.seek(0)
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                lines.append(number)
                if len(lines) > 1:
                    what = f"it is not UTF-8: byte 0x{line[error.start]:02x} in line {number}, and others"
                    raise TableError(path, what, _SAVED, lines[0]) from None
    return "utf-8-sig"


def _opened(path: Path, encoding: str) -> TextIO:
    """Open a text; a byte that is not UTF-8 becomes half a character, which is a fault of its row."""
    errors = "replace" if encoding == _UTF_16 else "surrogateescape"
    return path.open(encoding=encoding, errors=errors, newline="")


def _separated(path: Path, suffix: str, encoding: str) -> Table:
    with _opened(path, encoding) as stream:
        sample = stream.read(_SAMPLE)
    cells = _cells(path, "\t" if suffix == ".tsv" else _separator(sample), encoding)
    line, header, why = next(cells, (1, [], "it is empty"))
    if why or not is_encodable("".join(header)):
        hint = RESOLVE if why == HALF_MERGED else "save it in UTF-8 with a first line that names the columns"
        raise TableError(path, why or "the header is not UTF-8", hint, line)
    names = tuple(name.strip() for name in header)
    if twice := [name for name in dict.fromkeys(names) if name and names.count(name) > 1]:
        raise TableError(path, f"two columns are named {named(twice[0])}", "rename one of them", line)
    return Table(tuple(filter(None, names)), (_record(*found, names) for found in cells))


def _separator(sample: str) -> str:
    """Return the separator that `csv.Sniffer` sees, where the header has it; else the one that the header has most."""
    header = sample.partition("\n")[0]
    try:
        found = csv.Sniffer().sniff(sample, _SEPARATORS).delimiter
    except csv.Error:
        found = ""
    return found if found and found in header else max(_SEPARATORS, key=header.count)


def _cells(path: Path, separator: str, encoding: str) -> Iterator[tuple[int, list[str], str]]:
    """Yield line and cells of each row that is not blank; without cells, why they cannot be read."""
    csv.field_size_limit(MOST_ROW_BYTES)
    with _opened(path, encoding) as stream:
        reader = csv.reader(stream, delimiter=separator, strict=True)
        while True:
            line = reader.line_num + 1
            try:
                cells = next(reader, None)
            except csv.Error as error:
                is_open = "end of data" in str(error)
                yield line, [], "a quote is never closed" if is_open else f"the quotes are wrong: {error}"
                continue
            if cells is None:
                return
            if cells and is_merge_mark(cells[0]) and (cells[0][0] != "=" or not any(cells[1:])):
                yield line, [], HALF_MERGED
            elif any(map(str.strip, cells)):
                yield line, cells, ""


def _record(line: int, cells: list[str], why: str, names: tuple[str, ...]) -> ReadRow:
    pairs = [*zip(names, cells, strict=False)]
    hint = RESOLVE if why == HALF_MERGED else _QUOTES
    odd = next((name for name, cell in pairs if not is_encodable(cell)), None)
    if any(map(str.strip, cells[len(names) :])):
        why = f"it has {len(cells)} cells, and the header {len(names)}"
    elif odd is not None:
        why, hint = f"{odd} is not UTF-8", _SAVED
    read = ReadRow(Line(line, 0, 0, None), {name: cell for name, cell in pairs if name}, RowFaults(line))
    if why:
        read.faults.error("row", why, hint)
    return read


def _lines(path: Path, encoding: str) -> Iterator[ReadRow]:
    if encoding != _UTF_16:
        yield from jsonl_rows(path, hashlib.sha256())
        return
    decoder = StrictJSON()
    with _opened(path, encoding) as stream:
        for number, text in enumerate(stream, start=1):
            if text.strip():
                line, faults = Line(number, 0, 0, text.encode()), RowFaults(number)
                yield ReadRow(line, decode_row(decoder, line.raw, faults), faults)


def _array(path: Path, encoding: str) -> Iterator[ReadRow]:
    """Yield the objects of an array; behind one that is not JSON nothing can be read."""
    try:
        text = path.read_text(encoding)
    except UnicodeDecodeError as error:
        raise TableError(path, f"it is not UTF-8: {error.reason}", _SAVED) from error
    for line, _ in half_merged(text):
        raise TableError(path, HALF_MERGED, RESOLVE, line)
    decoder, strict = json.JSONDecoder(), StrictJSON()
    at = _next(text, 0)
    if text[at : at + 1] != "[":
        hint = "write [{…}, {…}], or one object per line of a .jsonl"
        raise TableError(path, "this is not an array of objects", hint)
    line, counted, stop = 1, 0, at
    while (at := _next(text, stop + 1)) < len(text) and text[at] != "]":
        line, counted = line + text.count("\n", counted, at), at
        faults = RowFaults(line)
        try:
            stop = decoder.raw_decode(text, at)[1]
            values = decode_row(strict, text[at:stop].encode("utf-8", "surrogatepass"), faults)
            stop = _next(text, stop)
            is_last = text[stop : stop + 1] != ","
            if is_last and text[stop : stop + 1] != "]":
                faults.error("row", "there is no comma behind it; no row behind it is read")
        except (ValueError, RecursionError) as error:
            faults.line = error.lineno if isinstance(error, json.JSONDecodeError) else line
            faults.error("row", "this is not valid JSON; no row behind it is read")
            values, is_last = None, True
        yield ReadRow(Line(faults.line, 0, 0, None), values, faults)
        if is_last:
            return


def _next(text: str, at: int) -> int:
    """Return the place of the next character that is not white space."""
    while text[at : at + 1].isspace():
        at += 1
    return at


def _parquet(path: Path) -> Table:
    try:
        arrow, memory = import_module("pyarrow.parquet"), import_module("pyarrow")
    except ImportError as error:
        raise TableError(path, "pyarrow is not installed, which reads Parquet", _EXTRA) from error
    opened = partial(arrow.ParquetFile, path, buffer_size=_BUFFER, pre_buffer=False)
    try:
        memory.set_memory_pool(memory.system_memory_pool())  # its own pools keep what they had
        file = opened()
    except (OSError, ValueError) as error:  # those of pyarrow are such
        raise TableError(path, f"this is not a Parquet file: {error}") from error
    schema, about = file.schema_arrow, file.metadata
    names = [name for name, kind in zip(schema.names, schema.types, strict=True) if "binary" not in str(kind)]
    stated = _stated_bytes(about, names)
    if about.num_rows > MOST_ROWS or stated > _MOST_DECODED:
        raise _too_large(path, f"{about.num_rows:,} rows of {stated:,} bytes")
    try:
        whole, heaviest = _weights(opened, names)
    except (OSError, ValueError, NotImplementedError) as error:
        raise TableError(path, f"this Parquet file cannot be read: {error}") from error
    if whole > _MOST_DECODED:
        raise _too_large(path, f"more than {_MOST_DECODED:,} bytes of text")
    size = max(1, min(_BATCH, _BATCH * MOST_ROW_BYTES // max(1, heaviest)))
    batches = file.iter_batches(batch_size=size, columns=names, use_threads=False)
    rows = (row for batch in batches for row in batch.to_pylist())
    return Table(tuple(names), (_plain(number, row) for number, row in enumerate(rows, start=1)))


def _weights(opened: Callable[..., Any], names: Sequence[str]) -> tuple[int, int]:
    """Return the bytes of all rows, counted until they are too many, and the most of those that are read together.

    They are read as dictionaries: a text that a page holds once and many rows repeat takes the memory of one.
    """
    about = opened().metadata
    file = opened(read_dictionary=[about.schema.column(place).path for place in range(about.num_columns)])
    whole = heaviest = 0
    for group in range(about.num_row_groups):  # lists of dictionaries are not read across groups
        for batch in file.iter_batches(_BATCH, row_groups=[group], columns=names, use_threads=False):
            weight = sum(map(_weight, batch.columns))
            whole, heaviest = whole + weight, max(heaviest, weight)
            if whole > _MOST_DECODED:
                return whole, heaviest
    return whole, heaviest


def _stated_bytes(about: Any, names: Collection[str]) -> int:
    """Return how many bytes the metadata of a Parquet file says that columns have: at least 8 for each value."""
    groups = (about.row_group(place) for place in range(about.num_row_groups))
    chunks = (group.column(place) for group in groups for place in range(group.num_columns))
    read = (chunk for chunk in chunks if chunk.path_in_schema.partition(".")[0] in names)
    return sum(max(chunk.total_uncompressed_size, 8 * chunk.num_values) for chunk in read)


def _weight(array: Any) -> int:
    """Return the bytes of an Arrow array when each of its texts is written out."""
    compute, kinds = import_module("pyarrow.compute"), import_module("pyarrow.types")
    kind = array.type
    if kinds.is_dictionary(kind) and "string" in str(kind.value_type):
        lengths = compute.binary_length(array.dictionary)
        return int(compute.sum(lengths.take(array.indices)).as_py() or 0)
    if kinds.is_map(kind):
        return _weight(array.keys) + _weight(array.items)
    if kinds.is_struct(kind):
        return sum(map(_weight, array.flatten()))
    return int(array.nbytes) + (_weight(array.flatten()) if kinds.is_nested(kind) else 0)


def _too_large(path: Path, found: str) -> TableError:
    what = f"it holds {found}; at most {MOST_ROWS:,} rows and {_MOST_DECODED:,} bytes are read"
    return TableError(path, what, "split it in several files, or leave columns out of it")


def _plain(number: int, row: object) -> ReadRow:
    """Return a row of a Parquet file as JSON has it: dates and decimals as text, no number as nothing."""
    plain = json.loads(json.dumps(row, default=str), parse_constant=lambda _name: None)
    return ReadRow(Line(number, 0, 0, None), plain, RowFaults(number))
