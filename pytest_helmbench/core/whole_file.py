"""Files as a whole: put in place so that no reader meets half of one, and hashed."""

from __future__ import annotations

import errno
import hashlib
import os
import stat
from contextlib import suppress
from pathlib import Path

_DATABASE = b"SQLite format 3\0"


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file as a whole: a reader meets the old one or the new one.

    A pipe or a device such as `/dev/stdout` is written to. Text is UTF-8, with its line ends as they are.

    Raises:
        OSError: It cannot be written, or a database stands there, which nothing of ours is put in place of.
    """
    data = content.encode() if isinstance(content, str) else content
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    _refuse_database(target)
    made = _beside(target)
    try:
        made.write_bytes(data)
        made.replace(target)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def try_place(path: Path) -> None:
    """Do nothing where `write_atomically` can write a file; nothing is left there.

    Raises:
        OSError: It cannot.
    """
    target = path.resolve()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target.exists() and not target.is_file():
        return  # a pipe may have no reader yet
    _refuse_database(target)
    made = _beside(target)
    try:
        made.touch()
    finally:
        made.unlink(missing_ok=True)


def content_digest(path: Path) -> bytes:
    """Return 32 bytes for a content, or a word of another length where there is none to read."""
    try:
        if path.is_symlink():
            return b"link" + hashlib.sha256(os.fsencode(path.readlink())).digest()
        if not stat.S_ISREG(path.lstat().st_mode):
            return b"special"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b"unreadable"


def _refuse_database(target: Path) -> None:
    """Raise for an SQLite database, as results files are; what cannot be read is taken for none."""
    found = b""
    with suppress(OSError), target.open("rb") as file:
        found = file.read(len(_DATABASE))
    if found == _DATABASE:
        raise FileExistsError(errno.EEXIST, "a database stands there", str(target))


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}")
