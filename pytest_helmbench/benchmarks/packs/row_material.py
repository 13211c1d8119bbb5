"""The files of a pack that a row needs on another host: listed by content here, asked for and laid out there."""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import weakref
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.pack_files import Bounds, PackFiles
from pytest_helmbench.benchmarks.packs.task import PackTask, PlannedFile
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.owners import new_folder
from pytest_helmbench.sandbox.workspace import SandboxError, remove_tree

__all__ = ["Material", "MaterialFile", "MaterialSource", "MaterialStore", "piece"]

_PIECE_BYTES = 4 * 2**20
_MOST_KEPT_BYTES = 2**30

Fetch = Callable[[str, int], Awaitable[bytes]]
"""Brings a piece of a file, by its content and the place of the piece in it; empty where it is not as it was."""


@dataclass(frozen=True, slots=True)
class MaterialFile:
    """A file or folder.

    Args:
        name: Below the pack's folder, POSIX.
        mode: Permission bits.
        size: Bytes; 0 for a folder.
        digest: Of its content; None for a folder.
    """

    name: str
    mode: int
    size: int
    digest: str | None


@dataclass(frozen=True, slots=True)
class Material:
    """What a row needs of its pack.

    Args:
        public_root: See `PackFiles`; `eval_root` and `bounds` likewise.
        files: Outer folders before what is in them.
        repository: Of these, the row's repository; None for none.
    """

    public_root: str
    eval_root: str
    bounds: Bounds
    files: tuple[MaterialFile, ...]
    repository: str | None

    def files_at(self, root: Path) -> PackFiles:
        """Return the files of the pack where they are laid out."""
        return PackFiles(root, self.public_root, self.eval_root, self.bounds)

    def task_at(self, root: Path, task: PackTask) -> PackTask:
        """Return the row as it finds its repository there."""
        repository = None if self.repository is None else root / self.repository
        return replace(task, environment=replace(task.environment, repository=repository))


class MaterialSource:
    """Lists what rows need, and reads it; a file is hashed once."""

    def __init__(self) -> None:
        self._digests: dict[tuple[Path, int, int], str] = {}

    def material(
        self, files: PackFiles, task: PackTask, planned: Iterable[PlannedFile]
    ) -> tuple[Material, Mapping[str, Path]]:
        """Return what a row needs, and where the content of each file is.

        Args:
            files: Of its pack.
            task: The row.
            planned: What is laid out for it beside its repository.

        Raises:
            SandboxError: A file cannot be read.
        """
        places: dict[str, Path] = {}
        found: dict[str, MaterialFile] = {}
        repository = task.environment.repository
        sources = [item.source for item in planned]
        try:
            for path in (*sources, *(() if repository is None else _of_repository(repository))):
                name = path.relative_to(files.root).as_posix()
                facts = path.lstat()
                mode = stat.S_IMODE(facts.st_mode) & 0o777
                if stat.S_ISDIR(facts.st_mode):
                    found[name] = MaterialFile(name, mode, 0, None)
                elif stat.S_ISREG(facts.st_mode):
                    digest = self._digest(path, facts)
                    places[digest] = path
                    found[name] = MaterialFile(name, mode, facts.st_size, digest)
        except OSError as error:
            raise SandboxError(f"files of the pack cannot be read: {error.strerror or error}") from error
        kept = None if repository is None else repository.relative_to(files.root).as_posix()
        return Material(files.public_root, files.eval_root, files.bounds, tuple(found.values()), kept), places

    def _digest(self, path: Path, facts: os.stat_result) -> str:
        key = (path, facts.st_mtime_ns, facts.st_size)
        known = self._digests.get(key)
        if known is None:
            known = self._digests[key] = _digest_of(path)
        return known


def piece(path: Path, offset: int) -> bytes:
    """Return a piece of a file; empty where it cannot be read there."""
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(_PIECE_BYTES)
    except OSError:
        return b""


class MaterialStore:
    """Contents that have come to this process, by what they are; nothing is fetched twice. Used on one loop."""

    def __init__(self) -> None:
        self._folder = new_folder()
        weakref.finalize(self, remove_tree, self._folder)  # of a process that is killed the next one does it
        self._kept: OrderedDict[str, int] = OrderedDict()
        self._fetching = asyncio.Lock()

    async def laid_out(self, material: Material, fetch: Fetch) -> Path:
        """Return a folder with what a row needs, as its pack has it; whoever wants it removes it.

        Raises:
            SandboxError: A file is not as it was when it was listed, or the disk refuses.
        """
        async with self._fetching:
            root = await asyncio.to_thread(new_folder)
            try:
                for file in material.files:
                    if file.digest is not None:
                        await self._fetch(file.digest, file.size, fetch)
                        await asyncio.to_thread(self._copy, file.digest, root / file.name, file.mode)
                    else:
                        (root / file.name).mkdir(parents=True, exist_ok=True)
                for file in reversed(material.files):
                    if file.digest is None:
                        (root / file.name).chmod(file.mode)
            except BaseException as error:
                await asyncio.to_thread(remove_tree, root)
                if isinstance(error, OSError):
                    raise SandboxError(f"files of the pack cannot be laid out: {error.strerror}") from error
                raise
            return root

    async def _fetch(self, digest: str, size: int, fetch: Fetch) -> None:
        if digest in self._kept:
            self._kept.move_to_end(digest)
            return
        coming, offset = self._folder / f"{digest}.part", 0
        with coming.open("wb") as file:
            while offset < size:
                data = await fetch(digest, offset)
                offset += len(data)
                if not data or offset > size:
                    break
                await asyncio.to_thread(file.write, data)
        if await asyncio.to_thread(_digest_of, coming) != digest:
            raise SandboxError("a file of the pack has changed while it was read")
        coming.rename(self._folder / digest)
        self._kept[digest] = size
        while len(self._kept) > 1 and sum(self._kept.values()) > _MOST_KEPT_BYTES:
            (self._folder / self._kept.popitem(last=False)[0]).unlink()

    def _copy(self, digest: str, target: Path, mode: int) -> None:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(self._folder / digest, target)
        target.chmod(mode)


def _of_repository(place: Path) -> Iterator[Path]:
    """Yield a bundle, or what git keeps of a clone; its working tree is not needed."""
    git = place / ".git"
    start = git if git.is_dir() and not git.is_symlink() else place
    if start is git:
        yield place
    yield start
    if start.is_dir():
        for folder, folders, names in os.walk(start):
            yield from (Path(folder, name) for name in (*folders, *names))


def _digest_of(path: Path) -> str:
    digest = blake2b(digest_size=20)
    with path.open("rb") as file:
        while data := file.read(_PIECE_BYTES):
            digest.update(data)
    return digest.hexdigest()
