"""Files that are put in place as a whole, so that nobody opens half of one."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["put_in_place"]


def put_in_place(path: Path, content: str | bytes) -> None:
    """Write a file as a whole: whoever opens it meets the old one or the new one.

    What is no ordinary file (a pipe, `/dev/stdout`) is written to. Text is UTF-8, with its line ends as they are.

    Raises:
        OSError: It cannot be written.
    """
    data = content.encode() if isinstance(content, str) else content
    target = path.resolve()
    if target.exists() and not target.is_file():
        target.write_bytes(data)
        return
    made = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        made.write_bytes(data)
        made.replace(target)
    except BaseException:
        made.unlink(missing_ok=True)
        raise
