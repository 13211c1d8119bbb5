"""A folder that foreign code writes to, handled so that its links never lead us out of it."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from itertools import count
from pathlib import Path, PurePosixPath
from typing import Self

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HelmbenchError

# On Windows none of these flags exists, and no workspace is made.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_CLOEXEC", 0)
_FOLDER = os.O_RDONLY | _NO_LINK | getattr(os, "O_DIRECTORY", 0)
_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK
_OLD_FILE = os.O_RDONLY | _NO_LINK | getattr(os, "O_NONBLOCK", 0)
_DEEPEST = 100


class SandboxError(HelmbenchError):
    """The sandbox itself failed: an error of the case, never a verdict over the code in it."""


class EntryKind(StrEnum):
    """The kind of an entry at a path."""

    FILE = "file"
    FOLDER = "folder"
    LINK = "link"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing in a workspace.

    Args:
        name: Relative POSIX path; bytes that are not UTF-8 are surrogate-escaped.
        kind: What it is, links not followed.
        mode: Permission bits.
        size_bytes: Of a file; 0 for the rest.
        target: What a link says; empty for the rest.
    """

    name: str
    kind: EntryKind
    mode: int
    size_bytes: int
    target: str = ""


class Workspace:
    """A folder of this machine that the commands of boxes work on.

    Every method is safe after foreign code wrote there: no link is ever followed. None is for use while a
    command runs.

    Args:
        path: An existing folder that no other process uses.
        uid: User and group that the files are given to; None leaves them to the user of this process.
        remove_later: Removes a folder while others go on; None removes it at once.
    """

    def __init__(
        self, path: Path, *, uid: int | None = None, remove_later: Callable[[Path], object] | None = None
    ) -> None:
        self.path = path
        self.uid = uid
        self._remove_later = remove_later
        if uid is not None:
            os.chown(path, uid, uid)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Remove the folder and all that is in it, of which there may be much."""
        if self._remove_later is None:
            remove_tree(self.path)
            return
        aside = self.path.with_name(f"gone-{secrets.token_hex(8)}")
        with suppress(FileNotFoundError):
            self.path.rename(aside)
            self._remove_later(aside)

    def put(self, name: str, data: bytes, *, mode: int = 0o644) -> None:
        """Write a file, making folders on the way; whatever stands there or in the way is replaced.

        Raises:
            SandboxError: The name is not a path inside, or the disk refuses.
        """
        parts = _parts(name)
        with _refusals(name), self._folder(parts[:-1], make=True) as folder_fd:
            _clear(folder_fd, parts[-1])
            with os.fdopen(os.open(parts[-1], _NEW_FILE, 0o600, dir_fd=folder_fd), "wb") as file:
                file.write(data)
                self._own(file.fileno(), mode)

    def put_folder(self, name: str, *, mode: int = 0o755) -> None:
        """Make a folder, and those on the way; a file or link in its place is replaced."""
        with _refusals(name), self._folder(_parts(name), make=True) as folder_fd:
            self._own(folder_fd, mode)

    def make_place(self, name: str, *, folder: bool) -> None:
        """Make sure that a folder, or a plain file, stands there; one that does is left as it is."""
        parts = _parts(name)
        with _refusals(name), self._folder(parts if folder else parts[:-1], make=True) as place:
            if folder or _is_file(place, parts[-1]):
                return
        self.put(name, b"")

    def put_tree(self, source: Path, name: str = ".") -> None:
        """Copy a file, or what is in a folder, of this machine; modes and empty folders survive.

        Raises:
            SandboxError: There is a link or a special file in it.
        """
        if source.is_symlink() or not source.is_dir():
            self._put_file(source, name)
            return
        if name != ".":
            self.put_folder(name, mode=stat.S_IMODE(source.stat().st_mode))
        for path in sorted(source.rglob("*")):
            inner = f"{name}/{path.relative_to(source).as_posix()}"
            if path.is_dir() and not path.is_symlink():
                self.put_folder(inner, mode=stat.S_IMODE(path.stat().st_mode))
            else:
                self._put_file(path, inner)

    def get(self, name: str, *, limit_bytes: int) -> bytes | None:
        """Return a file's content; None when no plain file can be read there.

        Raises:
            SandboxError: It is larger than the limit, or the name is not a path inside.
        """
        parts = _parts(name)
        try:
            with (
                self._folder(parts[:-1], make=False) as folder_fd,
                os.fdopen(os.open(parts[-1], _OLD_FILE, dir_fd=folder_fd), "rb") as file,
            ):
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    return None
                data = file.read(limit_bytes + 1)
        except OSError:
            return None
        if len(data) > limit_bytes:
            raise SandboxError(f"{name}: the file is larger than {limit_bytes} bytes")
        return data

    def remove(self, name: str) -> None:
        """Remove what stands there, a folder with its content; nothing there is fine."""
        parts = _parts(name)
        with (
            _refusals(name),
            suppress(FileNotFoundError, NotADirectoryError),
            self._folder(parts[:-1], make=False) as folder_fd,
        ):
            _clear(folder_fd, parts[-1])

    def entries(self) -> tuple[Entry, ...]:
        """Return all there is, folders before what they hold; what cannot be looked at is left out.

        Raises:
            SandboxError: Folders are nested too deep.
        """
        with self._folder((), make=False) as top:
            return tuple(_entry(*found) for found in _walk(top))

    def extent(self) -> tuple[int, int]:
        """Return how many files and folders there are, and the bytes of disk space that they take.

        Raises:
            SandboxError: Folders are nested too deep.
        """
        files = size = 0
        with self._folder((), make=False) as top:
            for *_, status in _walk(top):
                files += 1
                size += status.st_blocks * 512
        return files, size

    def _put_file(self, source: Path, name: str) -> None:
        try:
            descriptor = os.open(source, _OLD_FILE)
        except OSError as error:
            raise SandboxError(f"{source}: cannot be copied into the sandbox ({error.strerror})") from error
        with os.fdopen(descriptor, "rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise SandboxError(f"{source}: cannot be copied into the sandbox (not a plain file)")
            self.put(name, file.read(), mode=stat.S_IMODE(status.st_mode))

    def _own(self, descriptor: int, mode: int) -> None:
        if self.uid is not None:
            os.fchown(descriptor, self.uid, self.uid)
        os.fchmod(descriptor, mode & 0o777)

    @contextmanager
    def _folder(self, parts: tuple[str, ...], *, make: bool) -> Iterator[int]:
        """Open the folder step by step, no step through a link."""
        here = os.open(self.path, _FOLDER)
        try:
            for part in parts:
                inner = self._step(here, part) if make else os.open(part, _FOLDER, dir_fd=here)
                os.close(here)
                here = inner
            yield here
        finally:
            os.close(here)

    def _step(self, folder_fd: int, name: str) -> int:
        try:
            return os.open(name, _FOLDER, dir_fd=folder_fd)
        except FileNotFoundError:
            pass
        except OSError:  # a file, a link, or a folder that its owner closed
            _clear(folder_fd, name)
        os.mkdir(name, 0o755, dir_fd=folder_fd)
        made = os.open(name, _FOLDER, dir_fd=folder_fd)
        self._own(made, 0o755)
        return made


def remove_tree(path: Path) -> None:
    """Remove a folder that foreign code wrote to, closed and very deep ones too; nothing there is fine."""
    parent = os.open(path.parent, _FOLDER & ~_NO_LINK)
    try:
        _clear(parent, path.name)
    finally:
        os.close(parent)


def _clear(folder_fd: int, name: str) -> None:
    """Remove what stands at a name of an open folder."""
    try:
        if not _is_folder(folder_fd, name):
            os.unlink(name, dir_fd=folder_fd)
            return
    except FileNotFoundError:
        return
    with _opened(folder_fd, name) as inside:
        mark = secrets.token_hex(8)
        numbers = count()
        while names := _names(inside):
            for inner in names:
                _flatten(inside, inner, (f"{mark}-{number}" for number in numbers))
    os.rmdir(name, dir_fd=folder_fd)


def _flatten(top: int, name: str, fresh: Iterator[str]) -> None:
    """Remove one thing of the folder `top`; folders inside it move up, so that no depth exhausts us."""
    if not _is_folder(top, name):
        os.unlink(name, dir_fd=top)
        return
    with _opened(top, name) as folder_fd:
        for inner in _names(folder_fd):
            if _is_folder(folder_fd, inner):
                os.chmod(inner, 0o700, dir_fd=folder_fd)
                os.rename(inner, next(fresh), src_dir_fd=folder_fd, dst_dir_fd=top)
            else:
                os.unlink(inner, dir_fd=folder_fd)
    os.rmdir(name, dir_fd=top)


@contextmanager
def _opened(folder_fd: int, name: str) -> Iterator[int]:
    """Open a folder even when its owner closed it."""
    os.chmod(name, 0o700, dir_fd=folder_fd)
    descriptor = os.open(name, _FOLDER, dir_fd=folder_fd)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _names(folder_fd: int) -> list[str]:
    with os.scandir(folder_fd) as entries:
        return sorted(entry.name for entry in entries)


def _is_folder(folder_fd: int, name: str) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode)


def _is_file(folder_fd: int, name: str) -> bool:
    try:
        return stat.S_ISREG(os.stat(name, dir_fd=folder_fd, follow_symlinks=False).st_mode)
    except FileNotFoundError:
        return False


def _walk(
    descriptor: int, prefix: str = "", depth: int = 0
) -> Iterator[tuple[int, str, str, os.stat_result]]:
    """Yield folder, prefix, name and status of everything below, folders before what they hold."""
    if depth > _DEEPEST:
        raise SandboxError(f"{prefix[:60]}…: folders are nested more than {_DEEPEST} deep")
    try:
        names = _names(descriptor)
    except OSError:
        return
    for name in names:
        try:
            status = os.stat(name, dir_fd=descriptor, follow_symlinks=False)
        except OSError:
            continue
        yield descriptor, prefix, name, status
        if stat.S_ISDIR(status.st_mode):
            try:
                inner = os.open(name, _FOLDER, dir_fd=descriptor)
            except OSError:  # closed by its owner, or just removed
                continue
            try:
                yield from _walk(inner, f"{prefix}{name}/", depth + 1)
            finally:
                os.close(inner)


def _entry(folder_fd: int, prefix: str, name: str, status: os.stat_result) -> Entry:
    mode = stat.S_IMODE(status.st_mode)
    if stat.S_ISREG(status.st_mode):
        return Entry(prefix + name, EntryKind.FILE, mode, status.st_size)
    if stat.S_ISDIR(status.st_mode):
        return Entry(prefix + name, EntryKind.FOLDER, mode, 0)
    if stat.S_ISLNK(status.st_mode):
        target = ""
        with suppress(OSError):
            target = os.readlink(name, dir_fd=folder_fd)
        return Entry(prefix + name, EntryKind.LINK, mode, 0, target)
    return Entry(prefix + name, EntryKind.OTHER, mode, 0)


def _parts(name: str) -> tuple[str, ...]:
    """Split a path inside a workspace.

    Raises:
        SandboxError: It leads out, or is not a path.
    """
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name or not path.parts:
        raise SandboxError(f"{name!r}: not a path inside the workspace")
    return path.parts


@contextmanager
def _refusals(name: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SandboxError(f"{name}: cannot be written in the workspace ({error.strerror})") from error
