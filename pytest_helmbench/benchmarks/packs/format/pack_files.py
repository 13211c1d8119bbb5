"""The files below the roots of a pack: found, looked at whole, hashed, and planned before one is laid out."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import field
from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.path_rules import path_fault, trimmed
from pytest_helmbench.benchmarks.packs.task import (
    Asset,
    MaterializationError,
    PathPolicyError,
    PlannedFile,
    Visibility,
)
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.files.field_values import RowFaults, named
from pytest_helmbench.files.source import resolved

MOST_FILES = 20_000
MOST_BYTES = 2 * 1024**3
"""Most files and folders of a row, and most bytes of all of them."""

_KEEP_SMALL = "a row lays out its files for every run: keep them few and small"
_COPY = "a pack holds only plain readable files and folders: copy what a link points at to its place"
_CHUNK = 1024 * 1024
_MOST_REMEMBERED = 10_000  # files that rows share; where every row has its own, remembering is of no use
_BUNDLE = b"# v"


@dataclass(frozen=True, slots=True)
class Found:
    """The files at a path of a pack.

    Args:
        files: Files and folders in it, itself included.
        size: Bytes of all of them.
        fault: Why it cannot be used; empty when it can.
        hint: What to do about the fault.
    """

    path: Path
    files: int = 0
    size: int = 0
    fault: str = ""
    hint: str = ""


@dataclass(slots=True)
class PackFiles:
    """Looks files up once, however many rows name them.

    Args:
        public_root: Where `assets` live, relative.
        eval_root: Where file references of `eval` and checkers live, relative.
    """

    root: Path
    public_root: str
    eval_root: str
    _found: dict[tuple[str, str], Found] = field(default_factory=dict)

    def public(self, path: str) -> Found:
        """Look up a file or folder below the public root; `path` has passed `path_fault`."""
        return self._look(self.public_root, path)

    def evaluator(self, path: str) -> Found:
        """Look up a file or folder below the eval root; `path` has passed `path_fault`."""
        return self._look(self.eval_root, path)

    def repository(self, path: str) -> Found:
        """Look up a git bundle or clone below the public root; of a clone only its shape is looked at."""
        fault = path_fault(path)
        if fault:
            return Found(self.root, fault=fault)
        place, fault = descend(self.root, f"{self.public_root}/{trimmed(path)}")
        if fault:
            return self._lost(self.public_root, trimmed(path), place, fault)
        if not _is_repository(place):
            hint = "make a bundle with 'git bundle create repository.bundle --all'"
            return Found(place, fault="is neither a git bundle nor a clone that stands on its own", hint=hint)
        return Found(place)

    def plan(self, assets: Sequence[Asset]) -> tuple[PlannedFile, ...]:
        """Return what files of a row become, looked at once more.

        Raises:
            PathPolicyError: A link, or a name that leads elsewhere.
            MaterializationError: A file is missing, cannot be read, or there is too much of it.
        """
        planned: list[PlannedFile] = []
        for asset in assets:
            source = self.source(asset.path, asset.visibility)
            planned += contents(asset.path, source, asset.mount, read_only=asset.read_only)
        return bounded(tuple(planned))

    def source(self, path: str, visibility: Visibility) -> Path:
        """Return the file or folder at a path that a row names, looked for once more.

        Raises:
            PathPolicyError: A link is on the way.
            MaterializationError: It does not exist.
        """
        root = self.public_root if visibility is Visibility.PUBLIC else self.eval_root
        place, fault = descend(self.root, f"{root}/{path}")
        if fault == "does not exist":
            raise MaterializationError(f"the file {path!r} {fault}")
        if fault:
            raise PathPolicyError(f"the path {path!r} {fault}")
        return place

    def _look(self, root: str, path: str) -> Found:
        key = (root, trimmed(path))
        found = self._found.get(key)
        if found is None:
            found = self._survey(*key)
            if len(self._found) < _MOST_REMEMBERED:
                self._found[key] = found
        return found

    def _survey(self, root: str, path: str) -> Found:
        place, fault = descend(self.root, f"{root}/{path}")
        if fault:
            return self._lost(root, path, place, fault)
        files = size = 0
        try:
            for planned in tree(place, ".", read_only=True):
                files, size = files + 1, size + planned.size
                fault = exceeded(files, size)
                if fault:
                    return Found(place, files, size, fault, _KEEP_SMALL)
        except MaterializationError as error:
            return Found(place, fault=str(error), hint=_COPY)
        return Found(place, files, size)

    def _lost(self, root: str, path: str, place: Path, fault: str) -> Found:
        """Return a path on which there is no way beyond a place."""
        if "link" in fault:
            return Found(place, fault=fault, hint=_COPY)
        which = "public" if root == self.public_root else "eval"
        return Found(
            self.root / root / path, fault=fault, hint=f"it is read relative to the {which} root, {root!r}"
        )


def exceeded(files: int, size: int) -> str:
    """Return why files are too much for a row; empty when they are not."""
    if files > MOST_FILES or size > MOST_BYTES:
        return f"holds more than {MOST_FILES:,} files or {MOST_BYTES:,} bytes"
    return ""


def _is_repository(path: Path) -> bool:
    """Return whether a path is a git bundle, a clone or a bare repository that stands on its own."""
    if path.is_dir():
        return any(_holds_objects(place) for place in (path, path / ".git"))
    try:
        with path.open("rb") as file:
            start = file.read(32)
    except OSError:
        return False
    return start.startswith(_BUNDLE) and b" git bundle\n" in start


def _holds_objects(place: Path) -> bool:
    parts = (place, place / "HEAD", place / "objects")
    borrows = (place / "objects" / "info" / "alternates").exists()  # objects from anywhere on this machine
    return (
        not borrows
        and not any(part.is_symlink() for part in parts)
        and parts[1].is_file()
        and parts[2].is_dir()
    )


def hash_files(files: PackFiles, digest: hashlib._Hash) -> None:
    """Add names, modes and contents of all files below the roots of a pack to a hash.

    A file that is too large for any row counts by its size alone.
    """
    for folder in (files.public_root, files.eval_root):
        place, fault = descend(files.root, folder)
        if fault:
            continue
        for path in sorted(_everything(place)):
            _hash_one(path, path.relative_to(files.root).as_posix(), digest)


def hash_tree(folder: Path) -> tuple[str, int, int]:
    """Return SHA-256 (hex) over names, modes and contents of a folder; how many files and bytes it holds.

    Raises:
        PathPolicyError: A link leads out of it.
        MaterializationError: A file of another kind, or one that cannot be read.
    """
    digest, files, size, top = hashlib.sha256(), 0, 0, folder.resolve()
    for path in sorted(_everything(folder)):
        name, facts = path.relative_to(folder).as_posix(), path.lstat()
        files, size = files + 1, size + (facts.st_size if stat.S_ISREG(facts.st_mode) else 0)
        if stat.S_ISLNK(facts.st_mode):
            if not resolved(path).is_relative_to(top):
                raise PathPolicyError(f"holds {name!r}, a link that leads out of it")
        elif not stat.S_ISREG(facts.st_mode) and not stat.S_ISDIR(facts.st_mode):
            raise MaterializationError(f"holds {name!r}, which is neither a file nor a folder")
        elif not os.access(path, os.R_OK):
            raise MaterializationError(f"holds {name!r}, which cannot be read")
        if exceeded(files, size):
            break
        _hash_one(path, name, digest)
    return digest.hexdigest(), files, size


def _everything(place: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(place):  # does not follow links
        for name in (*folders, *names):
            yield Path(folder, name)


def _hash_one(path: Path, name: str, digest: hashlib._Hash) -> None:
    try:
        facts = path.lstat()
        kind = stat.S_IFMT(facts.st_mode) | facts.st_mode & stat.S_IXUSR  # other bits depend on the umask
        digest.update(f"{len(name)}:{kind}:{facts.st_size}:".encode())
        digest.update(name.encode("utf-8", "surrogateescape"))
        if stat.S_ISREG(facts.st_mode) and facts.st_size <= MOST_BYTES:
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        elif stat.S_ISLNK(facts.st_mode):
            digest.update(os.fsencode(path.readlink()))
    except OSError:
        digest.update(b"unreadable")  # a row that needs it says so


def descend(root: Path, path: str) -> tuple[Path, str]:
    """Walk down from a pack's root; return the place and why it cannot be used."""
    place = root
    for part in path.split("/"):
        place /= part
        try:
            facts = place.lstat()
        except FileNotFoundError:
            return place, "does not exist"
        except OSError as error:
            return place, f"cannot be read: {error.strerror or error}"
        if stat.S_ISLNK(facts.st_mode):
            return place, "is or passes a symbolic link"
    if not place.resolve().is_relative_to(
        root.resolve()
    ):  # lstat does not see that a junction of Windows is a link
        return place, "leads out of the pack"
    return place, ""


def tree(source: Path, target: str, *, read_only: bool) -> Iterator[PlannedFile]:
    """Yield a file, or a folder and everything in it, outer before inner.

    Raises:
        PathPolicyError: A link or a name that leads elsewhere.
        MaterializationError: Something is neither a file nor a folder, or cannot be read.
    """
    waiting = [(source, target)]
    while waiting:
        place, name = waiting.pop()
        try:
            facts = place.lstat()
        except OSError as error:
            raise MaterializationError(f"cannot be read: {error.strerror or error}") from error
        if stat.S_ISLNK(facts.st_mode):
            raise PathPolicyError(f"holds {name!r}, a symbolic link")
        is_folder = stat.S_ISDIR(facts.st_mode)
        if not is_folder and not stat.S_ISREG(facts.st_mode):
            raise MaterializationError(f"holds {name!r}, which is neither a file nor a folder")
        if not os.access(place, os.R_OK | os.X_OK if is_folder else os.R_OK):
            raise MaterializationError(f"holds {name!r}, which cannot be read")
        mode = stat.S_IMODE(facts.st_mode) & 0o777  # no setuid
        yield PlannedFile(place, name, mode, 0 if is_folder else facts.st_size, is_folder, read_only)
        if is_folder:
            waiting.extend(_inside(place, name))


def _inside(place: Path, name: str) -> Iterator[tuple[Path, str]]:
    try:
        with os.scandir(place) as entries:
            names = sorted((entry.name for entry in entries), reverse=True)
    except OSError as error:
        raise MaterializationError(f"cannot be read: {error.strerror or error}") from error
    for inner in names:
        if path_fault(inner) is not None:
            raise PathPolicyError(f"holds {inner!r}, whose name is not a plain name")
        yield place / inner, inner if name == "." else f"{name}/{inner}"


def contents(path: str, source: Path, target: str, *, read_only: bool) -> Iterator[PlannedFile]:
    """Yield what a file or folder becomes; a fault inside names the path of the row."""
    try:
        yield from tree(source, target, read_only=read_only)
    except MaterializationError as error:
        raise type(error)(f"the path {path!r} {error}") from error


def bounded(planned: tuple[PlannedFile, ...]) -> tuple[PlannedFile, ...]:
    """Return a plan that keeps within the bounds of a row.

    Raises:
        MaterializationError: There is too much of it.
    """
    fault = exceeded(len(planned), sum(item.size for item in planned))
    if fault:
        raise MaterializationError(f"what is laid out {fault}\n  hint: {_KEEP_SMALL}")
    return planned


@dataclass(frozen=True, slots=True)
class RowPlace:
    """A row's surroundings in its pack.

    Args:
        environment: The manifest's with the row's laid over it, as written.
        assets: Paths of the row's public files, below the public root.
    """

    environment: JsonObject
    files: PackFiles
    assets: tuple[str, ...]

    @property
    def has_image(self) -> bool:
        """Whether the environment names a container image."""
        return isinstance(self.environment.get("image"), str)


def check_found(
    faults: RowFaults, where: str, files: PackFiles, found: Found, *, hidden: bool = False
) -> None:
    """File why a file that a row names cannot be used; its name too unless that is hidden."""
    if found.fault:
        relative = found.path.relative_to(files.root).as_posix()
        shown = "the file that it names" if hidden else named(relative)
        faults.error(where, f"{shown} {found.fault}", found.hint)
