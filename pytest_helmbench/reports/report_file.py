"""Reports as files: each is put in place at once, so that nobody opens half of one."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["put_in_place", "size_note"]

_LARGE_BYTES = 50_000_000


def put_in_place(path: Path, text: str) -> None:
    """Write a file as a whole: whoever opens it meets the old one or the new one.

    What is no ordinary file (a pipe, `/dev/stdout`) is written to.

    Raises:
        OSError: It cannot be written.
    """
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8", newline="\n")
        return
    made = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        made.write_text(text, encoding="utf-8", newline="\n")
        made.replace(target)
    except BaseException:
        made.unlink(missing_ok=True)
        raise


def size_note(text: str) -> str:
    """Return a warning about a report that is too large to be sent; empty for others."""
    if len(text) < _LARGE_BYTES:
        return ""
    return f" ({len(text) / 1_000_000:.0f} MB: without the texts of all cases it is smaller)"
