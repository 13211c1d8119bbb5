"""The files of a pack: found below their roots, looked at whole, planned, then laid out."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pytest_helmbench.benchmarks.packs.format.path_rules import clashes, mount_fault, path_fault, trimmed
from pytest_helmbench.benchmarks.packs.task import (
    Asset,
    FileCheck,
    MaterializationError,
    PackTask,
    PathPolicyError,
    PlannedFile,
    TerminalTests,
    Visibility,
)

__all__ = [
    "Bounds",
    "EvaluatorPlan",
    "Found",
    "PackFiles",
    "hash_files",
    "materialize",
    "plan_assets",
    "plan_evaluator",
]

_CHUNK = 1024 * 1024
_MOST_REMEMBERED = 10_000  # files that rows share; where every row has its own, remembering is of no use
_NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
_BINARY = getattr(os, "O_BINARY", 0)
_BUNDLE = b"# v"


@dataclass(frozen=True, slots=True)
class Bounds:
    """What one row may lay out.

    Args:
        files: Files and folders.
        size: Bytes of all of them.
    """

    files: int = 20_000
    size: int = 2 * 1024**3

    def exceeded(self, files: int, size: int) -> str:
        """Return what is too much; empty when nothing is."""
        if files > self.files or size > self.size:
            return f"holds more than {self.files:,} files or {self.size:,} bytes"
        return ""


@dataclass(frozen=True, slots=True)
class Found:
    """What a path of a pack leads to.

    Args:
        path: The file or folder.
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


@dataclass(frozen=True, slots=True)
class EvaluatorPlan:
    """What the evaluator's folder of a terminal task holds.

    Args:
        files: In the order in which they can be laid out.
        entry: The checker in that folder, POSIX; `.` when it is the folder itself. None for a command.
    """

    files: tuple[PlannedFile, ...]
    entry: str | None


@dataclass(slots=True)
class PackFiles:
    """Looks files up once, however many rows name them.

    Args:
        root: The pack.
        public_root: Where `assets` live, relative.
        eval_root: Where file references of `eval` and checkers live, relative.
        bounds: What one row may lay out.
    """

    root: Path
    public_root: str
    eval_root: str
    bounds: Bounds = field(default_factory=Bounds)
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
        place, fault = _descend(self.root, f"{self.public_root}/{trimmed(path)}")
        if fault:
            return Found(place, fault=fault, hint=_COPY if "link" in fault else "")
        if not _is_repository(place):
            hint = "make a bundle with 'git bundle create repository.bundle --all'"
            return Found(place, fault="is no git bundle and no clone that stands on its own", hint=hint)
        return Found(place)

    def is_repository(self, path: str) -> bool:
        """Return whether a path below the public root is a git bundle or a clone."""
        return not self.repository(path).fault

    def _look(self, root: str, path: str) -> Found:
        key = (root, trimmed(path))
        found = self._found.get(key)
        if found is None:
            found = self._survey(*key)
            if len(self._found) < _MOST_REMEMBERED:
                self._found[key] = found
        return found

    def _survey(self, root: str, path: str) -> Found:
        place, fault = _descend(self.root, f"{root}/{path}")
        if fault:
            return Found(place, fault=fault, hint=_COPY if "link" in fault else "")
        files = size = 0
        try:
            for planned in _tree(place, ".", read_only=True):
                files, size = files + 1, size + planned.size
                fault = self.bounds.exceeded(files, size)
                if fault:
                    return Found(place, files, size, fault, _KEEP_SMALL)
        except MaterializationError as error:
            return Found(place, fault=str(error), hint=_COPY)
        return Found(place, files, size)


_COPY = "a pack holds only plain readable files and folders: copy what a link points at to its place"
_KEEP_SMALL = "a row lays out its files for every run: keep them few and small"


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


def plan_assets(files: PackFiles, task: PackTask) -> tuple[PlannedFile, ...]:
    """Return what a row's public files become in the workspace, checked whole.

    Raises:
        PathPolicyError: A path or mount leads where it must not.
        MaterializationError: A file is missing, cannot be read, or there is too much of it.
    """
    return _plan(files, task.assets)


def plan_evaluator(files: PackFiles, task: PackTask) -> EvaluatorPlan:
    """Return what the evaluator's folder of a task holds: its checker and its evaluation inputs.

    A checker that is a folder becomes the evaluator's folder itself; a checker that is a file lies in it
    under its own name. Hidden files are never in it.

    Raises:
        PathPolicyError: A path or mount leads where it must not.
        MaterializationError: A file is missing, cannot be read, or there is too much of it.
    """
    inputs = tuple(item for item in task.eval_files if item.visibility is Visibility.EVALUATION_INPUTS)
    planned = _plan(files, inputs)
    checker = task.check.checker if isinstance(task.check, TerminalTests) else None
    if not isinstance(checker, FileCheck):
        return EvaluatorPlan(planned, None)
    asset = Asset(checker.path, checker.path, True, checker.file, Visibility.EVALUATION_INPUTS)
    source = _checked(files, asset)
    entry = "." if source.is_dir() else source.name
    own = tuple(_contents(asset, source, entry))
    taken = {item.target: item for item in own}
    for item in planned:
        first = taken.get(item.target)
        if first is not None and not (first.is_folder and item.is_folder):
            raise PathPolicyError(f"{item.target!r} is mounted over a file of the checker")
    return EvaluatorPlan(_bounded(files.bounds, (*own, *planned)), entry)


def materialize(plan: tuple[PlannedFile, ...], into: Path) -> None:
    """Copy planned files; modes and empty folders survive.

    Everything is checked before the first byte is written: the sources are as they were planned, and nothing
    in the target stands in the way. A file that is already there is replaced; links are never followed.

    Args:
        plan: Of `plan_assets` or `plan_evaluator`.
        into: Folder; made when it is missing.

    Raises:
        PathPolicyError: A link stands where something is to be laid out.
        MaterializationError: A source has changed, something stands in the way, or the disk refuses.
    """
    for item in plan:
        _check_source(item)
        _check_target(into, item)
    try:
        into.mkdir(parents=True, exist_ok=True)
        for item in plan:
            target = into / item.target
            if item.is_folder:
                target.mkdir(mode=0o700, parents=True, exist_ok=True)
            else:
                target.parent.mkdir(parents=True, exist_ok=True)
                _copy(item, target)
        for item in reversed(plan):
            if item.is_folder:
                (into / item.target).chmod(item.mode)
    except OSError as error:
        raise MaterializationError(f"files cannot be laid out: {error.strerror or error}") from error


def hash_files(files: PackFiles, digest: hashlib._Hash) -> None:
    """Add names, modes and contents of all files below the roots of a pack to a hash.

    Of a file that is too large for any row only the size counts.
    """
    for folder in (files.public_root, files.eval_root):
        place, fault = _descend(files.root, folder)
        if fault:
            continue
        for path in sorted(_everything(place)):
            _hash_one(path, path.relative_to(files.root).as_posix(), digest, files.bounds.size)


def _everything(place: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(place):  # does not follow links
        for name in (*folders, *names):
            yield Path(folder, name)


def _hash_one(path: Path, name: str, digest: hashlib._Hash, most: int) -> None:
    try:
        facts = path.lstat()
        kind = stat.S_IFMT(facts.st_mode) | facts.st_mode & stat.S_IXUSR  # other bits depend on the umask
        digest.update(f"{len(name)}:{kind}:{facts.st_size}:".encode())
        digest.update(name.encode("utf-8", "surrogateescape"))
        if stat.S_ISREG(facts.st_mode) and facts.st_size <= most:
            with path.open("rb") as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
    except OSError:
        digest.update(b"unreadable")  # a row that needs it says so


def _plan(files: PackFiles, assets: tuple[Asset, ...]) -> tuple[PlannedFile, ...]:
    sources = [_checked(files, asset) for asset in assets]
    for outer, inner in clashes([asset.mount for asset in assets]):
        raise PathPolicyError(f"the mounts {assets[outer].mount!r} and {assets[inner].mount!r} overlap")
    planned: list[PlannedFile] = []
    for asset, source in zip(assets, sources, strict=True):
        planned.extend(_contents(asset, source, trimmed(asset.mount)))
    return _bounded(files.bounds, tuple(planned))


def _contents(asset: Asset, source: Path, target: str) -> Iterator[PlannedFile]:
    """Yield what an asset becomes; what is wrong inside is told with the asset's path."""
    try:
        yield from _tree(source, target, read_only=asset.read_only)
    except MaterializationError as error:
        raise type(error)(f"the path {asset.path!r} {error}") from error


def _bounded(bounds: Bounds, planned: tuple[PlannedFile, ...]) -> tuple[PlannedFile, ...]:
    fault = bounds.exceeded(len(planned), sum(item.size for item in planned))
    if fault:
        raise MaterializationError(f"what is laid out {fault}\n  hint: {_KEEP_SMALL}")
    return planned


def _checked(files: PackFiles, asset: Asset) -> Path:
    """Return an asset's source after holding path and mount to the policy once more."""
    public = asset.visibility is Visibility.PUBLIC
    fault = path_fault(asset.path)
    if fault:
        raise PathPolicyError(f"the path {asset.path!r} {fault}")
    fault = mount_fault(asset.mount) if public else path_fault(asset.mount)
    if fault:
        raise PathPolicyError(f"the mount {asset.mount!r} {fault}")
    if asset.source is None:
        raise MaterializationError(f"the file {asset.path!r} belongs to no pack")
    root = files.public_root if public else files.eval_root
    place, fault = _descend(files.root, f"{root}/{trimmed(asset.path)}")
    if fault == "does not exist":
        raise MaterializationError(f"the file {asset.path!r} {fault}")
    if fault:
        raise PathPolicyError(f"the path {asset.path!r} {fault}")
    return place


def _descend(root: Path, path: str) -> tuple[Path, str]:
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
    if not place.resolve().is_relative_to(root.resolve()):  # junctions of Windows are no links to lstat
        return place, "leads out of the pack"
    return place, ""


def _tree(source: Path, target: str, *, read_only: bool) -> Iterator[PlannedFile]:
    """Yield a file, or a folder and everything in it, outer before inner.

    Raises:
        PathPolicyError: A link or a name that leads elsewhere.
        MaterializationError: Something that is no file and no folder, or cannot be read.
    """
    waiting = [(source, target)]
    while waiting:
        place, name = waiting.pop()
        facts = _facts(place)
        if stat.S_ISLNK(facts.st_mode):
            raise PathPolicyError(f"holds {name!r}, a symbolic link")
        is_folder = stat.S_ISDIR(facts.st_mode)
        if not is_folder and not stat.S_ISREG(facts.st_mode):
            raise MaterializationError(f"holds {name!r}, which is no file and no folder")
        if not os.access(place, os.R_OK | os.X_OK if is_folder else os.R_OK):
            raise MaterializationError(f"holds {name!r}, which cannot be read")
        mode = stat.S_IMODE(facts.st_mode) & 0o777  # no setuid
        yield PlannedFile(place, name, mode, 0 if is_folder else facts.st_size, is_folder, read_only)
        if is_folder:
            waiting.extend(_inside(place, name))


def _inside(place: Path, name: str) -> Iterator[tuple[Path, str]]:
    try:
        names = sorted(os.listdir(place), reverse=True)  # noqa: PTH208 - names as the system has them
    except OSError as error:
        raise MaterializationError(f"cannot be read: {error.strerror or error}") from error
    for inner in names:
        if path_fault(inner) is not None:
            raise PathPolicyError(f"holds {inner!r}, whose name is no plain name")
        yield place / inner, inner if name == "." else f"{name}/{inner}"


def _facts(place: Path) -> os.stat_result:
    try:
        return place.lstat()
    except OSError as error:
        raise MaterializationError(f"cannot be read: {error.strerror or error}") from error


def _check_source(item: PlannedFile) -> None:
    facts = _facts(item.source)
    as_planned = (
        stat.S_ISDIR(facts.st_mode)
        if item.is_folder
        else stat.S_ISREG(facts.st_mode) and facts.st_size == item.size
    )
    if not as_planned:
        raise MaterializationError(f"the file for {item.target!r} has changed since it was planned")


def _check_target(into: Path, item: PlannedFile) -> None:
    """Refuse a target that is, or lies behind, a link, or that is of another kind."""
    parts = [] if item.target == "." else item.target.split("/")
    place = into
    for depth in range(len(parts) + 1):
        if depth:
            place /= parts[depth - 1]
        try:
            mode = place.lstat().st_mode
        except FileNotFoundError:
            return
        except OSError as error:
            raise MaterializationError(
                f"{item.target!r} cannot be laid out: {error.strerror or error}"
            ) from error
        if stat.S_ISLNK(mode):
            raise PathPolicyError(f"{item.target!r} would be laid out through a symbolic link")
        wants_folder = depth < len(parts) or item.is_folder
        if wants_folder != stat.S_ISDIR(mode):
            raise MaterializationError(f"{item.target!r} cannot be laid out: something else is in its place")


def _copy(item: PlannedFile, target: Path) -> None:
    target.unlink(missing_ok=True)
    reading = os.open(item.source, os.O_RDONLY | _NO_FOLLOW | _BINARY)
    with open(reading, "rb") as source:  # noqa: PTH123 - a descriptor
        writing = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_FOLLOW | _BINARY, 0o600)
        with open(writing, "wb") as copy:  # noqa: PTH123 - a descriptor
            left = item.size
            while left and (chunk := source.read(min(left, _CHUNK))):
                copy.write(chunk)
                left -= len(chunk)
    target.chmod(item.mode)
