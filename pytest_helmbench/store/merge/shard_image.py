"""A results file as bytes while a session writes it: sent in the blocks that have changed, and put down elsewhere."""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path

_BLOCK = 65_536


def image_of(path: Path) -> bytes:
    """Return what is committed to a results file; empty where there is none yet."""
    if not path.is_file():
        return b""
    with contextlib.closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as conn:
        return conn.serialize()


def put_image(path: Path, image: bytes) -> None:
    """Put a results file down, for a session that goes on with it: no other process has its runs.

    Raises:
        sqlite3.Error: It is no results file.
    """
    path.write_bytes(image)
    with contextlib.closing(sqlite3.connect(path)) as conn, conn:
        conn.execute("DELETE FROM leases")


class SentImage:
    """The image that the other side has, so that only what has changed since is sent."""

    def __init__(self) -> None:
        self._known: Sequence[bytes] = ()

    def changes(self, image: bytes) -> Mapping[int, bytes]:
        """Return the blocks that the other side does not have, compressed, by number; take them for sent."""
        blocks = [image[start : start + _BLOCK] for start in range(0, len(image), _BLOCK)]
        marks = [blake2b(block, digest_size=16).digest() for block in blocks]
        known, self._known = self._known, marks
        return {
            number: zlib.compress(block, 1)
            for number, block in enumerate(blocks)
            if number >= len(known) or known[number] != marks[number]
        }


class ReceivedImage:
    """The image of a shard as it comes in, in a file that has a whole one at any time.

    Args:
        path: The file.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._is_ours = False

    def begin(self) -> bytes:
        """Return what is there, for a session that goes on with it; what comes next is that session's."""
        self._is_ours = False
        return image_of(self.path)

    def change(self, size: int, blocks: Iterable[tuple[int, bytes]]) -> None:
        """Take blocks in.

        Args:
            size: Bytes of the whole.
            blocks: See `SentImage.changes`.

        Raises:
            ValueError: They do not make a whole.
            OSError: The file cannot be written.
        """
        image = bytearray(self.path.read_bytes() if self._is_ours else b"")[:size].ljust(size, b"\0")
        for number, packed in blocks:
            start = number * _BLOCK
            block = zlib.decompressobj().decompress(packed, _BLOCK)
            if not 0 <= start < size or len(block) != min(_BLOCK, size - start):
                raise ValueError("blocks of a results file that do not fit it")
            image[start : start + len(block)] = block
        made = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        with made.open("wb") as file:
            file.write(image)
            file.flush()
            os.fsync(file.fileno())
        made.replace(self.path)
        self._is_ours = True
