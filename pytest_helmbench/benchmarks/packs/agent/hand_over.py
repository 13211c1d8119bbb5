"""The work of an agent on its way out of its box: paths copied by the engine, without what leads out of them."""

from __future__ import annotations

import asyncio
import hashlib
import posixpath
import tarfile
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from pytest_helmbench.benchmarks.packs.agent.agent_family import FindingError
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event, Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.whole_file import content_digest
from pytest_helmbench.sandbox.living import LivingBox, TooLargeError, place_of
from pytest_helmbench.sandbox.workspace import SandboxError

_MOST_BYTES = 1024**3
_MOST_FILES = 200_000
_MOST_SHOWN = 20
_OVERHEAD = 1024 * _MOST_FILES  # of the headers of an archive
_PERMISSIONS = 0o1777  # no set-id bits
_DATA_MODE = 0o644
_PROGRAMS = ("/usr/", "/bin/", "/sbin/", "/lib/", "/lib64/", "/opt/", "/nix/store/")


@dataclass(frozen=True, slots=True)
class WantedPath:
    """A path of a box that is copied out of it.

    Args:
        path: Absolute, normal; nothing need be there.
        exclude: Patterns of names, or of paths below it, that stay behind.
        is_data: It is a plain file without rights of a program, or it stays behind.
    """

    path: str
    exclude: tuple[str, ...] = ()
    is_data: bool = False

    def leaves_out(self, name: str) -> bool:
        """Return whether what stands at an absolute path stays behind."""
        for place in (name, *_above(name, self.path)):
            names = (posixpath.relpath(place, self.path), posixpath.basename(place))
            if any(fnmatch(one, pattern) for one in names for pattern in self.exclude):
                return True
        return False


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The files that an agent left.

    Args:
        archive: A tar file whose names lead from `/`.
        event: Its SHA-256 (hex), the bytes of all files together, and the number of files, folders and links.
        removed: What stayed behind, in sentences for people.
    """

    archive: Path
    event: Event
    removed: tuple[str, ...] = ()

    def contents(self) -> dict[str, str]:
        """Return the SHA-256 (hex) of each file, by absolute path."""
        with tarfile.open(self.archive) as taken:
            files = ((f"/{one.name}", taken.extractfile(one)) for one in taken if one.isreg())
            return {name: hashlib.sha256(file.read()).hexdigest() for name, file in files if file}


async def hand_over(
    box: LivingBox, wanted: Sequence[WantedPath], archive: Path, owner: tuple[int, int] | None = None
) -> HandedOver:
    """Copy paths out of a frozen box; the engine does it, and no program of the box takes part.

    Owners and modes stay. Links that lead out of the paths go, but those to programs of the image; so do devices,
    pipes and set-id bits.

    Args:
        box: Frozen, or stopped.
        wanted: A path inside another one comes with that, and the first of equal ones counts.
        owner: User and group to whom all of it is given; None for those of the engine's archive.

    Raises:
        FindingError: There is too much of it.
        SandboxError: The engine failed.
    """
    wanted = [*{one.path: one for one in reversed(wanted)}.values()]
    outer = [one for one in wanted if not any(_is_inside(one.path, two.path) for two in wanted if two != one)]
    # The format without free headers, which might name another path, or rights of a program.
    with tarfile.open(archive, "w", format=tarfile.GNU_FORMAT) as out:
        passing = _Passage(out, tuple(one.path for one in outer), owner)
        for one in outer:
            with TemporaryFile(dir=archive.parent) as file:
                try:
                    room = _MOST_BYTES + _OVERHEAD - passing.size_bytes
                    is_there = await box.take(one.path, file, room)
                except TooLargeError as error:
                    raise _too_large() from error
                except SandboxError as error:
                    passing.remove(one.path, str(error))
                    continue
                file.seek(0)
                if is_there:
                    await asyncio.to_thread(passing.add, one, file)
    digest = await asyncio.to_thread(content_digest, archive)
    figures = {"sha256": digest.hex(), "bytes": passing.size_bytes, "files": len(passing.kept)}
    return HandedOver(archive, Event("handed_over", figures), tuple(passing.sentences()))


class _Passage:
    """Lets pass what an agent may hand over.

    Args:
        out: What passes is written there.
        roots: The paths that are handed over.
    """

    def __init__(self, out: tarfile.TarFile, roots: tuple[str, ...], owner: tuple[int, int] | None) -> None:
        self._owner = owner
        self.size_bytes = 0
        self.kept: set[str] = set()
        self._links: set[str] = set()
        self._out = out
        self._roots = roots
        self._removed: list[str] = []

    def add(self, wanted: WantedPath, raw: IO[bytes]) -> None:
        """Let pass what the engine copied of one path.

        Raises:
            FindingError: There is too much of it.
        """
        with tarfile.open(fileobj=raw, mode="r:") as taken:
            for member in taken:
                path = place_of(member.name, wanted.path)
                if wanted.leaves_out(path):
                    continue
                if fault := self._fault(member, path, wanted):
                    self.remove(path, fault)
                    continue
                self._count(member)
                self.kept.add(path)
                mode = _DATA_MODE if wanted.is_data else member.mode & _PERMISSIONS
                uid, gid = self._owner or (member.uid, member.gid)
                passed = member.replace(
                    name=path[1:], mode=mode, uid=uid, gid=gid, uname="", gname="", deep=False
                )
                if member.islnk():
                    passed = passed.replace(linkname=place_of(member.linkname, wanted.path)[1:])
                elif member.issym():
                    self._links.add(path)
                self._out.addfile(passed, taken.extractfile(member) if member.isreg() else None)

    def remove(self, path: str, why: str) -> None:
        """Note that something stays behind."""
        self._removed.append(f"{excerpt(path)} was taken away: {excerpt(why)}")

    def sentences(self) -> Iterator[str]:
        """Yield what stayed behind."""
        yield from self._removed[:_MOST_SHOWN]
        if len(self._removed) > _MOST_SHOWN:
            yield f"{len(self._removed) - _MOST_SHOWN:,} others were taken away as well"

    def _fault(self, member: tarfile.TarInfo, path: str, wanted: WantedPath) -> str:
        """Return why something must not pass; empty where it may."""
        if wanted.is_data and not (member.isreg() and path == wanted.path):
            return "it is not a plain file"
        if not any(_is_inside(path, root) for root in self._roots):
            return "it is not in what is handed over"
        if any(above in self._links for above in _above(path, "/")):
            return "it lies behind a link"
        if member.islnk():
            is_known = place_of(member.linkname, wanted.path) in self.kept
            return "" if is_known else "it is a second name of something that is not handed over"
        if member.issym():
            return link_fault(member.linkname, path, self._roots)
        return "" if member.isreg() or member.isdir() else "it is a pipe, a socket or a device"

    def _count(self, member: tarfile.TarInfo) -> None:
        self.size_bytes += member.size if member.isreg() else 0
        if self.size_bytes > _MOST_BYTES or len(self.kept) >= _MOST_FILES:
            raise _too_large()


def _too_large() -> FindingError:
    """Return the end of work that is too large to be judged."""
    message = f"what it left has more than {_MOST_BYTES:,} bytes or {_MOST_FILES:,} files"
    return FindingError(Verdict.FAILED, "too_large", message, step="hand_over")


def link_fault(target: str, path: str, roots: Sequence[str]) -> str:
    """Return why a link must not stay; empty for one that leads to programs of the system or stays inside.

    Args:
        path: Where it stands, absolute.
        roots: Folders that it may lead to.
    """
    why = f"it is a link to {excerpt(target)!r}, which is not in the workspace"
    parts = target.split("/")
    steps = [place for place, part in enumerate(parts) if part == ".."]
    if target.startswith("/") and steps:
        return why
    if steps and steps != list(range(len(steps))):
        return why  # where it leads depends on other links
    end = posixpath.normpath(posixpath.join(posixpath.dirname(path), target))
    return "" if end.startswith(_PROGRAMS) or any(_is_inside(end, root) for root in roots) else why


def _is_inside(path: str, root: str) -> bool:
    return path == root or path.startswith(f"{root.rstrip('/')}/")


def _above(path: str, top: str) -> Iterator[str]:
    """Yield the folders between a path and one above it, which is left out."""
    while (path := posixpath.dirname(path)) not in (top, "/"):
        yield path
