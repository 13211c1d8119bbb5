"""Control groups: the kernel's own bounds of memory and processes, for all that a command starts together."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.box import Limits
from pytest_helmbench.sandbox.owners import Owner, this_process

_PREFIX = "helmbench-"
_CONTROLLERS = ("memory", "pids")
_OWN_PIDS = 1  # the launcher
_REMOVAL_S = 2.0
_PAUSE_S = 0.01


@dataclass(frozen=True, slots=True)
class GroupPlace:
    """Where groups can be made.

    Args:
        folders: By controller; one folder for both where the hierarchy is unified.
        unified: Whether the files have the names of cgroup v2.
    """

    folders: Mapping[str, Path]
    unified: bool

    def new(self, limits: Limits) -> ProcessGroup:
        """Make a group with bounds.

        Raises:
            OSError: It cannot be made.
        """
        name = f"{_PREFIX}{this_process().mark}-{secrets.token_hex(6)}"
        made: dict[str, Path] = {}
        group = ProcessGroup(made, self.unified)
        try:
            for controller, folder in self.folders.items():
                made[controller] = folder / name
                made[controller].mkdir(exist_ok=self.unified)
            group.bound(limits)
        except OSError:
            group.close()
            raise
        return group

    def remove_leftovers(self) -> None:
        """Remove the groups of processes that were killed."""
        for folder in set(self.folders.values()):
            for path in folder.glob(f"{_PREFIX}*"):
                owner = Owner.read(path.name.removeprefix(_PREFIX).rpartition("-")[0])
                if owner is not None and owner.is_gone():
                    with suppress(OSError):
                        path.rmdir()

    def works(self) -> bool:
        """Return whether a process can be put into a group of ours."""
        try:
            group = self.new(Limits())
        except OSError:
            return False
        try:
            for procs in group.files("cgroup.procs"):
                joined = ("sh", "-c", 'echo 0 > "$0"', str(procs))
                subprocess.run(joined, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return False
        finally:
            group.close()
        return True


@dataclass(frozen=True, slots=True)
class ProcessGroup:
    """The processes of one command.

    Args:
        folders: By controller.
        unified: See `GroupPlace`.
    """

    folders: Mapping[str, Path]
    unified: bool

    def files(self, name: str) -> tuple[Path, ...]:
        """Return a file of each of its folders."""
        return tuple(dict.fromkeys(folder / name for folder in self.folders.values()))

    def bound(self, limits: Limits) -> None:
        """Set the bounds.

        Raises:
            OSError: They cannot be set.
        """
        memory = self.folders.get("memory")
        if memory is not None and self.unified:
            (memory / "memory.max").write_text(str(limits.memory_bytes))
            _write_if_there(memory / "memory.swap.max", "0")
            _write_if_there(memory / "memory.oom.group", "1")
        elif memory is not None:
            (memory / "memory.limit_in_bytes").write_text(str(limits.memory_bytes))
            _write_if_there(memory / "memory.memsw.limit_in_bytes", str(limits.memory_bytes))
        if "pids" in self.folders:
            (self.folders["pids"] / "pids.max").write_text(str(limits.pids + _OWN_PIDS))

    def join(self) -> list[int]:
        """Return descriptors; a process that writes `0` to each is in the group with all that it starts."""
        return [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in self.files("cgroup.procs")]

    def kills(self) -> int | None:
        """Return how many of its processes the kernel has killed for want of memory; None when it does not say."""
        memory = self.folders.get("memory")
        if memory is None:
            return None
        told = memory / ("memory.events" if self.unified else "memory.oom_control")
        with suppress(OSError, ValueError):
            for line in told.read_text(encoding="ascii").splitlines():
                name, _, number = line.partition(" ")
                if name == "oom_kill":
                    return int(number)
        return None

    def peak_bytes(self) -> int | None:
        """Return the most memory that its processes have held together, files in memory included; None if unknown."""
        told = "memory.peak" if self.unified else "memory.max_usage_in_bytes"
        with suppress(OSError, ValueError, KeyError):
            return int((self.folders["memory"] / told).read_text(encoding="ascii"))
        return None

    def processes(self) -> set[int]:
        """Return the numbers of its processes and of those in groups below it."""
        found: set[int] = set()
        for folder in set(self.folders.values()):
            for path in folder.rglob("cgroup.procs"):
                with suppress(OSError):
                    found.update(map(int, path.read_text(encoding="ascii").split()))
        return found

    def close(self) -> None:
        """Remove it; its processes are dead, and the kernel may need a moment to see that."""
        deadline = time.monotonic() + _REMOVAL_S
        for folder in set(self.folders.values()):
            while folder.exists():
                with suppress(OSError):
                    folder.rmdir()
                    break
                if time.monotonic() > deadline:
                    return  # the next session removes it
                time.sleep(_PAUSE_S)


def container_group(pid: int, container: str) -> ProcessGroup | None:
    """Return the group of a container of this machine; None where that is not to be seen.

    Args:
        pid: Of its first process.
        container: Its id, which folders of groups carry.
    """
    folders = _own_folders(Path(f"/proc/{pid}"), Path("/proc/self/mountinfo"))
    for controller in ("memory", ""):
        inner = folders[controller][0] if controller in folders else Path()
        if named := [folder for folder in (inner, *inner.parents) if container in folder.name]:
            return ProcessGroup({"memory": named[-1]}, unified=not controller)
    return None


def find_group_place() -> GroupPlace | None:
    """Return where groups can be made that bound memory, processes or both; None where that is nowhere."""
    for place in possible_places():
        if place.works():
            place.remove_leftovers()
            return place
    return None


def possible_places(own_process: Path = Path("/proc/self")) -> Iterator[GroupPlace]:
    """Yield places to try: those of the unified hierarchy above us, the nearest first, then those of the older one.

    Args:
        own_process: What the kernel tells of our own process.
    """
    own = _own_folders(own_process, own_process / "mountinfo")
    unified = own.pop("", None)
    if unified is not None:
        folder, top = unified
        for place in (folder, *folder.parents):
            if not place.is_relative_to(top):
                break
            with suppress(OSError):
                offered = (place / "cgroup.subtree_control").read_text(encoding="ascii").split()
                found = {name: place for name in _CONTROLLERS if name in offered}
                if found and os.access(place, os.W_OK):
                    yield GroupPlace(found, unified=True)
    older = {name: own[name][0] for name in _CONTROLLERS if name in own and os.access(own[name][0], os.W_OK)}
    if older:
        yield GroupPlace(older, unified=False)


def _own_folders(process: Path, mounts: Path) -> dict[str, tuple[Path, Path]]:
    """Return the group of a process and the top of its hierarchy by controller; that of the unified one by no name."""
    paths: dict[str, str] = {}
    found: dict[str, tuple[Path, Path]] = {}
    with suppress(OSError, ValueError):
        for line in (process / "cgroup").read_text(encoding="utf-8").splitlines():
            _, controllers, path = line.split(":", 2)
            paths.update(dict.fromkeys(controllers.split(","), path))
        for line in mounts.read_text(encoding="utf-8").splitlines():
            mounted, _, kind = line.partition(" - ")
            _, _, _, root, top, *_ = mounted.split(" ")
            system, _, options = kind.split(" ")
            names = ("",) if system == "cgroup2" else options.split(",") if system == "cgroup" else ()
            for name in names:
                if name in paths and Path(paths[name]).is_relative_to(root):
                    found[name] = Path(top, Path(paths[name]).relative_to(root)), Path(top)
    return found


def _write_if_there(path: Path, text: str) -> None:
    if path.exists():
        path.write_text(text)
