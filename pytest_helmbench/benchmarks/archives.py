"""Benchmarks in archives, as the desktop app and npm pack them: unpacked once, by content, into a folder of the user.

An archive is somebody else's: only plain files and folders come out of it, and only so much.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import re
import shutil
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from pytest_helmbench.benchmarks.places import benchmarks_below, is_archive
from pytest_helmbench.core.problem import Problem, UnreadableBenchmarkError
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.user_folders import unpacked_archives

_MOST_MEMBERS = 20_000
_MOST_BYTES = 512 * 2**20
_LONGEST_EXTENSION = 2**20
_DEEPEST = 64
_EXTENSIONS = frozenset(
    (
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    )
)
"""Members that only say more of the next one: tarfile holds them in memory as a whole."""
_MOST_OF_ARCHIVE = 256 * 2**20
_ODD = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\\\]|^[A-Za-z]:")
_HINT = "unpack it yourself if you know where it comes from, and give the folder"


def opened(path: Path, environ: Mapping[str, str]) -> Path:
    """Return a path, or the benchmark in it where it is an archive; see `unpacked`."""
    return unpacked(path, environ) if is_archive(path) else path


def unpacked(path: Path, environ: Mapping[str, str]) -> Path:
    """Return the benchmark that an archive holds, in the user's cache folder; nothing of it is run.

    Args:
        path: See `is_archive`.
        environ: Asked for the user's cache folder.

    Raises:
        UnreadableBenchmarkError: It cannot be read, holds no or several benchmarks, or what must not come out of it.
    """
    try:
        if path.stat().st_size > _MOST_OF_ARCHIVE:
            raise _refused(path, f"the archive has more than {_MOST_OF_ARCHIVE:,} bytes")
        with path.open("rb") as file:
            key = hashlib.file_digest(file, "sha256").hexdigest()[:32]
        place = unpacked_archives(environ) / key
        if not place.is_dir():
            _unpack(path, place)
    except (OSError, tarfile.TarError, EOFError, zlib.error, ValueError, RecursionError) as error:
        raise _refused(path, f"the archive cannot be unpacked: {excerpt(str(error))}") from error
    found = benchmarks_below(place)
    if len(found) != 1:
        count = "no benchmark" if not found else f"{len(found)} benchmarks"
        raise _refused(
            path, f"the archive holds {count}", "an archive holds one, at its top or in one folder"
        )
    return found[0]


class _Bounded(io.RawIOBase):
    """Reads what a compressed file holds, as far as the bound."""

    def __init__(self, inner: gzip.GzipFile) -> None:
        self._inner = inner
        self._left = _MOST_BYTES + 1024 * _MOST_MEMBERS

    def readable(self) -> bool:
        """Always."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes.

        Raises:
            ValueError: There are more than fit.
        """
        found = self._inner.read(min(size, self._left + 1) if size >= 0 else self._left + 1)
        self._left -= len(found)
        if self._left < 0:
            raise ValueError(f"it holds more than {_MOST_BYTES:,} bytes")
        return found


class _Header(tarfile.TarInfo):
    """A member whose extension is bounded before it is read."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Return a header.

        Raises:
            ValueError: It announces an extension that nobody needs.
        """
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENSIONS and found.size > _LONGEST_EXTENSION:
            raise ValueError(f"a header of it has {found.size:,} bytes")
        return found


def _unpack(path: Path, place: Path) -> None:
    """Unpack beside the place and move the whole there: what it holds is complete."""
    place.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with TemporaryDirectory(dir=place.parent, prefix=".making-") as made:
        making = Path(made, place.name)
        making.mkdir()
        with _members(path) as members:
            for archive, member in members:
                _write(path, archive, member, making)
        try:
            making.rename(place)
        except OSError:
            if not place.is_dir():  # else somebody was faster, with the same
                raise


@contextmanager
def _members(path: Path) -> Iterator[Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]]:
    with (
        path.open("rb") as file,
        gzip.GzipFile(fileobj=file) as plain,
        tarfile.open(fileobj=_Bounded(plain), mode="r|", tarinfo=_Header) as archive,
    ):
        yield _bounded(path, archive)


def _bounded(path: Path, archive: tarfile.TarFile) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    size = 0
    for count, member in enumerate(archive, 1):
        size += member.size
        if count > _MOST_MEMBERS:
            raise _refused(path, f"the archive holds more than {_MOST_MEMBERS:,} files and folders")
        if size > _MOST_BYTES:
            raise _refused(path, f"the archive holds more than {_MOST_BYTES:,} bytes")
        yield archive, member


def _write(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write a plain file or make a folder; nothing else comes out of an archive."""
    name = excerpt(member.name, 120)
    parts = Path(member.name).parts
    if _ODD.search(member.name) or member.name.startswith("/") or ".." in parts:
        raise _refused(path, f"the archive names {name!r}, which does not lie inside of it")
    if len(parts) > _DEEPEST:
        raise _refused(path, f"the archive has more than {_DEEPEST} folders in each other, {name!r}")
    if not parts and not member.isdir():
        raise _refused(path, f"the archive holds what is no file, {name!r}")
    if member.issym() or member.islnk():
        raise _refused(path, f"the archive holds a link, {name!r}")
    try:
        _place(path, archive, member, folder.joinpath(*parts))
    except FileExistsError as error:
        raise _refused(path, f"the archive names {name!r} twice") from error
    except OSError as error:
        raise _refused(
            path, f"the archive names {name!r}, which cannot be written: {error.strerror}"
        ) from error


def _place(path: Path, archive: tarfile.TarFile, member: tarfile.TarInfo, target: Path) -> None:
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    content = archive.extractfile(member) if member.isreg() else None
    if content is None:
        raise _refused(path, f"the archive holds what is no file, {excerpt(member.name, 120)!r}")
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("xb") as file:  # a name that stands there twice is refused
        shutil.copyfileobj(content, file)
    target.chmod(0o755 if member.mode & 0o100 else 0o644)


def _refused(path: Path, message: str, hint: str = _HINT) -> UnreadableBenchmarkError:
    return UnreadableBenchmarkError((Problem(path, None, message, hint),))
