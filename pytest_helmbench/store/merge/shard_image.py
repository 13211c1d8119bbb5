"""A results file as bytes while a session writes it: the blocks that change are sent, and stored in another file."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterable
from pathlib import Path

_BLOCK = 65_536


def image_of(path: Path) -> bytes:
    """Return what is committed to a results file; empty where there is none yet."""
    if not path.is_file():
        return b""
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as conn:
        return conn.serialize()


def write_image(path: Path, image: bytes) -> None:
    """Write a results file for a session that goes on with it: no other process has its runs."""
    path.write_bytes(image)
    with contextlib.closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("DELETE FROM leases")


def changed_blocks(image: bytes, sent: bytes) -> list[tuple[int, bytes]]:
    """Return the blocks of an image that differ from the image that was sent before: offset and compressed bytes."""
    blocks = ((start, slice(start, start + _BLOCK)) for start in range(0, len(image), _BLOCK))
    return [(start, zlib.compress(image[part], 1)) for start, part in blocks if image[part] != sent[part]]


def store_blocks(path: Path, size: int, blocks: Iterable[tuple[int, bytes]]) -> None:
    """Put changed blocks into a file, which holds a whole image at any time.

    Args:
        path: The file. The first blocks of a session are all of its image, so they replace any other.
        blocks: As `changed_blocks` returns them.

    Raises:
        OSError: The file cannot be written.
    """
    image = bytearray(path.read_bytes() if path.is_file() else b"")[:size].ljust(size, b"\0")
    for start, compressed in blocks:
        block = zlib.decompress(compressed)
        image[start : start + len(block)] = block
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    with partial.open("wb") as file:
        file.write(image)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)
