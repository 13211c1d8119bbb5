"""Row files, one line at a time: nothing of them is kept."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.files.field_values import RowFaults, kind_of
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


def read_line(path: Path, offset: int, length: int) -> bytes:
    """Return the bytes of a line that was seen before.

    Raises:
        OSError: The file cannot be read.
    """
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


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
        faults.error(_where(flaw), _what(flaw), flaw.hint)
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


def _what(flaw: Flaw) -> str:
    if flaw.key and len(flaw.place) > 2:
        return "a key stands twice in it"
    return flaw.message
