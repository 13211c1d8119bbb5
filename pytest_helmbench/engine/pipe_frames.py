"""Bytes over a pipe: each piece after its length."""

from __future__ import annotations

import struct
from typing import IO

__all__ = ["read_frame", "write_frame"]

_LENGTH = struct.Struct(">Q")


def write_frame(pipe: IO[bytes], data: bytes) -> None:
    """Write a piece.

    Raises:
        OSError: Nobody reads.
    """
    pipe.write(_LENGTH.pack(len(data)))
    pipe.write(data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes:
    """Wait for a piece.

    Raises:
        EOFError: The other end is closed.
        OSError: The pipe is broken.
    """
    (length,) = _LENGTH.unpack(_exactly(pipe, _LENGTH.size))
    return _exactly(pipe, length)


def _exactly(pipe: IO[bytes], size: int) -> bytes:
    data = pipe.read(size)
    if len(data) < size:
        raise EOFError
    return data
