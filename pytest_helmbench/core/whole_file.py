"""Files that are put in place as a whole, so that nobody opens half of one."""

from __future__ import annotations

import errno
import os
from pathlib import Path

__all__ = ["is_database", "put_in_place", "try_place"]

_DATABASE = b"SQLite format 3\0"


def put_in_place(path: Path, content: str | bytes) -> None:
    """Write a file as a whole: whoever opens it meets the old one or the new one.

    What is no ordinary file (a pipe, `/dev/stdout`) is written to. Text is UTF-8, with its line ends as they are.

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
    """Do nothing where `put_in_place` can write a file; nothing is left there.

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


def is_database(path: Path) -> bool:
    """Return whether a file is an SQLite database, as results files are; False where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(len(_DATABASE)) == _DATABASE
    except OSError:
        return False


def _refuse_database(target: Path) -> None:
    if is_database(target):
        raise FileExistsError(errno.EEXIST, "a database stands there", str(target))


def _beside(target: Path) -> Path:
    return target.with_name(f".{target.name}.{os.getpid()}")
