"""One sandbox of bubblewrap: how it is started, what it says of itself, and how it ends with all that is in it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path, PurePosixPath

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.box import Ended, Limits
from pytest_helmbench.sandbox.cgroups import GroupPlace, ProcessGroup
from pytest_helmbench.sandbox.local import LocalPrograms, host_python, launched
from pytest_helmbench.sandbox.processes import children_of, kill_one
from pytest_helmbench.sandbox.workspace import SandboxError

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
"""Where this machine keeps its programs."""

_USER_NAMESPACES = ("--unshare-all", "--unshare-user", "--cap-drop", "ALL")
AS_USER = ((*_USER_NAMESPACES, "--disable-userns"), _USER_NAMESPACES)
"""Namespaces in which a command stays the user that we are, with no rights outside; the second before 0.8."""

_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")

OWN_FOLDER = "/.helmbench"
"""In a sandbox: what is ours."""

_LET_GO_S = 2.0
_INIT_DEATH_S = 2.0
_STATUS_BYTES = 4096
_LOOK_S = 0.2


@dataclass(frozen=True, slots=True)
class BubbleKit:
    """The settings that all sandboxes of an engine share.

    Args:
        start: The program, with namespaces, privileges and what every sandbox sees of this machine.
        seccomp: File with the filter of system calls; None where the processor is not known.
        groups: Where the kernel bounds memory and processes; None where it does not.
    """

    start: tuple[str, ...]
    seccomp: Path | None
    groups: GroupPlace | None


class Bubble:
    """One sandbox, from its start to its end.

    Its first process is our launcher, which holds one end of a lifeline, and we alone the other: it ends when we let
    go of it, or are killed, at whatever point of its start. Bubblewrap itself is not told to die with us: its first
    half would, while the second waits for it, for good. For the same reason it writes to a file, that none has to
    read.

    Args:
        limits: Of all that runs in it.
        lifeline: The other end; it is closed with the sandbox.
        held: Our end, likewise; -1 where another object holds it.
        lifeline_is: What the launcher calls it.

    Raises:
        SandboxError: The kernel makes no group for it.
    """

    def __init__(
        self, kit: BubbleKit, limits: Limits, lifeline: int, held: int, lifeline_is: str = "lifeline"
    ) -> None:
        self._lifeline_is = lifeline_is
        self._kit = kit
        self._limits = limits
        self._lifeline, self._held = lifeline, held
        self._holds = held >= 0
        self._status = os.memfd_create("helmbench-status")
        self._passed = [self._status, lifeline]
        self._group: ProcessGroup | None = None
        self._join: list[int] = []
        try:
            if kit.seccomp is not None:
                self._passed.append(os.open(kit.seccomp, os.O_RDONLY | os.O_CLOEXEC))
            if kit.groups is not None:
                self._group = kit.groups.new(limits)
                self._join = self._group.join()
        except OSError as error:
            self.close()
            raise SandboxError(f"bwrap: no sandbox could be made ({error})") from error

    @property
    def descriptors(self) -> tuple[int, ...]:
        """The descriptors that bubblewrap inherits."""
        return (*self._passed, *self._join)

    def argv(
        self, view: Iterable[str], command: Sequence[str], folder: str, settings: str
    ) -> tuple[str, ...]:
        """Return the arguments of a command in it.

        Args:
            view: Flags for what it sees and sets.
            settings: More of what the launcher takes on.
        """
        flags = ["--json-status-fd", str(self._status)]
        if self._kit.seccomp is not None:
            flags += ["--seccomp", str(self._passed[2])]
        joined = [f"join={descriptor}" for descriptor in self._join]
        taken_on = ",".join((*joined, f"{self._lifeline_is}={self._lifeline}", settings))
        program, *start = self._kit.start
        inner = launched(command, folder, taken_on, f"{OWN_FOLDER}/launch.pyc")
        return (program, *flags, *start, *view, *inner)

    def keep_own_end(self) -> None:
        """Close the end of the lifeline that it has inherited by now: the other sees then when it ends."""
        if self._lifeline in self._passed:
            self._passed.remove(self._lifeline)
            os.close(self._lifeline)

    def close(self) -> None:
        """Let go of everything, and remove its group; may take a moment."""
        self.let_go()
        for end in (*self._passed, *self._join):
            os.close(end)
        self._passed, self._join = [], []
        if self._group is not None:
            self._group.close()

    async def kill(self, process: Process) -> None:
        """End the first process of the sandbox, with it all in it, and bubblewrap; wait until they are gone."""
        self.let_go()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _LET_GO_S)
        if process.returncode is None:  # bubblewrap ends when what it has below it is gone
            for child in children_of(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        await kill_one(process)
        pid = self._said("child-pid")
        if pid is not None:
            await _gone(pid)

    def breach(self) -> str:
        """Return which limit the kernel has seen passed; empty for none."""
        if self._group is not None and self._group.kills():
            return f"more than {self._limits.memory_bytes} bytes of memory"
        return ""

    async def watch(self, _pid: int, /) -> str:
        """Return, once it happens, which limit the kernel has seen passed; what it has not killed goes no further."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if breach := self.breach():
                return breach

    def check(self, ended: Ended) -> None:
        """Make sure that it was the command that ended.

        Raises:
            SandboxError: The sandbox itself failed.
        """
        if not ended.reason and self._said("exit-code") is None:
            said = ended.stderr.decode(errors="replace").strip().splitlines()
            raise SandboxError(f"bwrap: no sandbox could be made ({said[-1] if said else 'it said nothing'})")

    def let_go(self) -> None:
        """Have the first process end, and with it all."""
        if self._holds:
            os.close(self._held)
        self._holds = False

    def _said(self, name: str) -> int | None:
        for line in os.pread(self._status, _STATUS_BYTES, 0).splitlines():
            with suppress(ValueError):
                value = json.loads(line).get(name)
                if isinstance(value, int):
                    return value
        return None


def system_view(local: LocalPrograms) -> Iterable[str]:
    """Return the flags for what every sandbox sees of this machine.

    Args:
        local: The folder with what is ours in it.
    """
    yield from ("--as-pid-1", "--new-session", "--clearenv")
    # A write to /proc could reach other processes: `mem` of a parent that judges.
    yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
    for name in SYSTEM:
        path = Path(name)
        if path.is_symlink():
            yield from ("--symlink", str(path.readlink()), name)
        elif path.is_dir():
            yield from bind(path, name)
    prefixes = {Path(sys.base_prefix), Path(sys.base_exec_prefix), host_python().parent.parent}
    for prefix in sorted(prefixes):
        if not any(prefix.is_relative_to(name) for name in (*map(Path, SYSTEM), *(prefixes - {prefix}))):
            yield from bind(prefix, str(prefix))
    for name in _ETC:
        if Path("/etc", name).exists():
            yield from bind(Path("/etc", name), f"/etc/{name}")
    for path in sorted((local.folder / "etc").iterdir()):
        yield from bind(path, f"/etc/{path.name}")
    yield from bind(local.launcher, f"{OWN_FOLDER}/launch.pyc")


def own_view(
    shared_bytes: int,
    temporary_bytes: int,
    binds: Iterable[tuple[Path, str, bool]],
    env: Iterable[tuple[str, str]],
) -> Iterable[str]:
    """Return the flags of what is one sandbox's own; a mount is a path here, one there, and true when read-only."""
    yield from ("--perms", "1777", "--size", str(shared_bytes), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--perms", "1777", "--size", str(temporary_bytes), "--tmpfs", "/tmp")
    for source, target, read_only in sorted(binds, key=lambda one: PurePosixPath(one[1]).parts):
        yield from bind(source, target, read_only=read_only)
    yield from ("--remount-ro", "/", "--chdir", "/")
    for name, value in dict(env).items():
        yield from ("--setenv", name, value)


def bind(source: Path, target: str, *, read_only: bool = True) -> Iterable[str]:
    """Return the flags of a mount; folders above it are open to all, whatever user the command is."""
    for folder in reversed(PurePosixPath(target).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(folder))
    yield from ("--ro-bind" if read_only else "--bind", str(source), target)


async def _gone(pid: int) -> None:
    """Wait until the first process of a box is dead, which it is when all others are."""
    try:
        descriptor = os.pidfd_open(pid)
    except OSError:  # it is gone already, or the kernel is too old to tell
        return
    loop = asyncio.get_running_loop()
    dead = asyncio.Event()
    loop.add_reader(descriptor, dead.set)
    try:
        with suppress(TimeoutError):
            await asyncio.wait_for(dead.wait(), _INIT_DEATH_S)
    finally:
        loop.remove_reader(descriptor)
        os.close(descriptor)
