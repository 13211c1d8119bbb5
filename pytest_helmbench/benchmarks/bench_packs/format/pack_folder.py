"""The files of a Bench Pack: what its manifest names lies inside of it, and a hash says when it is another."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

_NOT_OF_THE_PACK = frozenset({".git", "node_modules", "__pycache__", ".pytest_cache", ".helmbench"})
_RESULTS = "helmbench.db"
_DRIVE = re.compile(r"[A-Za-z]:")
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def path_fault(path: str) -> str | None:
    """Return why a text names nothing inside of a pack, by the text alone; None where it may."""
    if _CONTROL.search(path):
        return "holds a control character"
    if "\\" in path:
        return "holds a backslash"
    if path.startswith("/") or _DRIVE.match(path):
        return "is not relative"
    if Path(os.path.normpath(path)).parts[:1] == ("..",):
        return "leads out of the pack"
    return None


def place_inside(root: Path, path: str) -> Path | None:
    """Return what a path leads to; None when a link in it leads out of the pack.

    Args:
        root: The pack.
        path: Has passed `path_fault`. Nothing need be there.
    """
    place = root / os.path.normpath(path)
    try:
        inside = place.resolve().is_relative_to(root.resolve())
    except (OSError, RuntimeError):  # links that lead to each other
        return None
    return place if inside else None


def link_out(root: Path) -> Path | None:
    """Return a link anywhere in a pack that leads out of it: who may read the pack could read what is there."""
    inside = root.resolve()
    for folder, folders, names in os.walk(root):  # does not follow links
        for name in (*folders, *names):
            path = Path(folder, name)
            try:
                if path.is_symlink() and not path.resolve().is_relative_to(inside):
                    return path
            except (OSError, RuntimeError):  # links that lead to each other lead nowhere
                continue
    return None


def content_hash(root: Path) -> str:
    """Return SHA-256 (hex) over the sorted relative names and contents of all files of a pack.

    Left out are `.git`, `node_modules`, and what runs leave behind: caches, and results where pytest was started
    in the pack. Of a link its target counts as written, of anything that cannot be read only the name.
    """
    digest = hashlib.sha256()
    found = {os.fsencode(path.relative_to(root).as_posix()): path for path in _files(root)}
    for name in sorted(found):
        digest.update(b"%d:" % len(name))
        digest.update(name)
        digest.update(_content_digest(found[name]))
    return digest.hexdigest()


def _files(root: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(root):  # does not follow links
        linked = [name for name in folders if Path(folder, name).is_symlink()]
        folders[:] = [name for name in folders if name not in _NOT_OF_THE_PACK]
        for name in (*names, *linked):
            if name not in _NOT_OF_THE_PACK and not name.startswith(_RESULTS):
                yield Path(folder, name)


def _content_digest(path: Path) -> bytes:
    """Return 32 bytes for a content, or a word of another length where there is none to read."""
    try:
        mode = path.lstat().st_mode
        if stat.S_ISLNK(mode):
            return b"link" + hashlib.sha256(os.fsencode(path.readlink())).digest()
        if not stat.S_ISREG(mode):
            return b"special"
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").digest()
    except OSError:
        return b"unreadable"
