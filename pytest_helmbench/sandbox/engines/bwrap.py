"""Bubblewrap: programs of this machine in namespaces of their own, without a daemon and without images."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import sys
from asyncio.subprocess import Process
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from itertools import count
from pathlib import Path, PurePosixPath

from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import (
    BoxSpec,
    Command,
    Ended,
    Limits,
    SandboxEngine,
    SandboxSearch,
    Streams,
    Unavailable,
)
from pytest_helmbench.sandbox.local import (
    LocalEngine,
    host_python,
    launched,
    limits_text,
    local_environment,
)
from pytest_helmbench.sandbox.processes import Launch, kill_one, supervise
from pytest_helmbench.sandbox.seccomp import filter_program
from pytest_helmbench.sandbox.watch import children_of, watch_disk, watch_family
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

__all__ = ["ENGINE", "BubblewrapEngine", "Way", "ways"]

_OWN = "/.helmbench"  # in a box: what is ours
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
_ETC = ("alternatives", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime")
_SHARED_MEMORY_BYTES = 64 * 1024 * 1024
_FIRST_UID = 0x70000000  # above every range that distributions hand out
_UIDS_PER_PROCESS = 1024
_LET_GO_S = 2.0
_INIT_DEATH_S = 2.0
_STATUS_BYTES = 4096
# From 5.14 on, processes are counted per namespace of users; before, with all others of the user.
_COUNTS_PIDS = sys.platform == "linux" and tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (
    5,
    14,
)

# Without a namespace for users when we are root: the command then becomes a user that nobody else is, for whom
# the kernel counts processes; root's own are never counted.
_AS_ROOT = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"),
)
_AS_USER = ("--unshare-all", "--unshare-user", "--cap-drop", "ALL")


@dataclass(frozen=True, slots=True)
class Way:
    """How bubblewrap works on this machine.

    Args:
        program: Its path.
        flags: The namespaces and privileges.
        drops: Whether commands become another user.
    """

    program: str
    flags: tuple[str, ...]
    drops: bool


class BubblewrapEngine(LocalEngine):
    """Runs programs of this machine in namespaces.

    Args:
        kind: Which engine it is.
        search: What it was looked for with.
        way: How bubblewrap works here.
    """

    def __init__(self, kind: SandboxEngine, search: SandboxSearch, way: Way) -> None:
        super().__init__(kind, search)
        self._way = way
        self._numbers = count()
        self._seccomp: Path | None = None
        program = filter_program()
        if program is not None:
            self._seccomp = self._local.folder / "seccomp"
            self._seccomp.write_bytes(program)
        self._system = tuple(self._system_flags())

    def new_workspace(self, image: str | None = None) -> Workspace:
        """Make an empty folder; as root it belongs to a user that nobody else is."""
        del image  # there is one kind
        uid = None
        if self._way.drops:
            number = next(self._numbers) % _UIDS_PER_PROCESS
            uid = _FIRST_UID + (os.getpid() % 2**18) * _UIDS_PER_PROCESS + number
        return Workspace(self._local.new_folder(), uid=uid)

    async def execute(self, spec: BoxSpec, workspace: Workspace, command: Command, streams: Streams) -> Ended:
        """Run a command in fresh namespaces."""
        limits = command.limits or spec.limits
        status = _Status()
        descriptors = [status.file, status.lifeline]
        try:
            argv = [self._way.program, *self._way.flags, "--json-status-fd", str(status.file)]
            if self._seccomp is not None:
                descriptors.append(os.open(self._seccomp, os.O_RDONLY | os.O_CLOEXEC))
                argv += ["--seccomp", str(descriptors[-1])]
            argv += [*self._system, *_own_view(spec, workspace, command, limits)]
            settings = f"lifeline={status.lifeline}," + limits_text(limits, count_pids=_COUNTS_PIDS)
            if workspace.uid is not None:
                settings += f",uid={workspace.uid}"
            folder = command.workdir or spec.workdir
            launch = Launch(
                argv=(*argv, *launched(command, folder, settings, f"{_OWN}/launch.pyc")),
                env={},
                kill=status.kill,
                descriptors=tuple(descriptors),
                watch=(
                    partial(watch_family, limits=limits),
                    lambda _: watch_disk(workspace, limits),
                ),
            )
            ended = await supervise(launch, streams, limits)
            status.check(ended)
            return ended
        finally:
            status.close()
            for descriptor in descriptors[2:]:
                os.close(descriptor)

    def _system_flags(self) -> Iterable[str]:
        """Return what every box sees of this machine."""
        yield from ("--as-pid-1", "--new-session", "--clearenv")
        # What is written to /proc reaches into other processes: into `mem` of a parent that judges.
        yield from ("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
        for name in _SYSTEM:
            path = Path(name)
            if path.is_symlink():
                yield from ("--symlink", str(path.readlink()), name)
            elif path.is_dir():
                yield from _bind(path, name)
        prefixes = {Path(sys.base_prefix), Path(sys.base_exec_prefix), host_python().parent.parent}
        for prefix in sorted(prefixes):
            if not any(prefix.is_relative_to(name) for name in (*map(Path, _SYSTEM), *(prefixes - {prefix}))):
                yield from _bind(prefix, str(prefix))
        for name in _ETC:
            if Path("/etc", name).exists():
                yield from _bind(Path("/etc", name), f"/etc/{name}")
        for path in sorted((self._local.folder / "etc").iterdir()):
            yield from _bind(path, f"/etc/{path.name}")
        yield from _bind(self._local.launcher, f"{_OWN}/launch.pyc")


class _Status:
    """What bubblewrap says of a box: the number of its first process, and that the command ended.

    The first process of a box holds one end of a lifeline, and we alone the other: it ends when we let go of it, or
    are killed, at whatever point of its start. Bubblewrap itself is not told to die with us: its first half does so
    while the second waits for it, for good. For the same reason it writes to a file, which nobody has to read.
    """

    def __init__(self) -> None:
        self.file = os.memfd_create("helmbench-status")
        self.lifeline, self._held = os.pipe()
        self._holds = True

    def close(self) -> None:
        """Close all ends."""
        self._let_go()
        for end in (self.file, self.lifeline):
            os.close(end)

    async def kill(self, process: Process) -> None:
        """End the first process of the box, with it all in it, and bubblewrap; wait until they are gone."""
        self._let_go()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _LET_GO_S)
        if process.returncode is None:
            for child in children_of(process.pid):
                with suppress(ProcessLookupError):
                    os.kill(child, signal.SIGKILL)
        await kill_one(process)
        pid = self._said("child-pid")
        if pid is not None:
            await _gone(pid)

    def _let_go(self) -> None:
        if self._holds:
            os.close(self._held)
        self._holds = False

    def check(self, ended: Ended) -> None:
        """Make sure that it was the command that ended.

        Raises:
            SandboxError: The box itself failed.
        """
        if not ended.reason and self._said("exit-code") is None:
            said = ended.stderr.decode(errors="replace").strip().splitlines()
            raise SandboxError(f"bwrap: no sandbox could be made ({said[-1] if said else 'it said nothing'})")

    def _said(self, name: str) -> int | None:
        for line in os.pread(self.file, _STATUS_BYTES, 0).splitlines():
            with suppress(ValueError):
                value = json.loads(line).get(name)
                if isinstance(value, int):
                    return value
        return None


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


def _own_view(spec: BoxSpec, workspace: Workspace, command: Command, limits: Limits) -> Iterable[str]:
    """Return what is this box's own: temporary folders, workspace, mounts, environment."""
    shared = min(limits.disk_bytes, _SHARED_MEMORY_BYTES)
    yield from ("--perms", "1777", "--size", str(shared), "--tmpfs", "/dev/shm", "--remount-ro", "/dev")
    yield from ("--perms", "1777", "--size", str(limits.disk_bytes), "--tmpfs", "/tmp")
    yield from _bind(workspace.path, spec.workdir, read_only=False)
    for mount in sorted(spec.mounts, key=lambda mount: PurePosixPath(mount.target).parts):
        yield from _bind(mount.source, mount.target, read_only=mount.read_only)
    yield from ("--remount-ro", "/", "--chdir", "/")
    for name, value in dict((*local_environment(), *spec.env, *command.env)).items():
        yield from ("--setenv", name, value)


def _bind(source: Path, target: str, *, read_only: bool = True) -> Iterable[str]:
    """Return the flags of a mount; folders above it are open to all, whoever the command is."""
    for folder in reversed(PurePosixPath(target).parents[:-1]):
        yield from ("--perms", "0755", "--dir", str(folder))
    yield from ("--ro-bind" if read_only else "--bind", str(source), target)


async def _find(kind: SandboxEngine, search: SandboxSearch) -> BubblewrapEngine | Unavailable:
    """Try every way in which bubblewrap may work with a command."""
    program = shutil.which("bwrap")
    if program is None or not sys.platform.startswith("linux"):
        return Unavailable("bwrap is not installed")
    why = ""
    for way in ways(program):
        engine = BubblewrapEngine(kind, search, way)
        try:
            async with await engine.open(BoxSpec()) as box:
                ended = await box.run(Command((box.python, "-ISE", "-c", "print('works')")))
            if ended.stdout == b"works\n":
                return engine
            why = why or (ended.stderr.decode(errors="replace").strip() or ended.reason)
        except SandboxError as error:
            why = why or str(error)
        await engine.close()
    return Unavailable(f"bwrap does not work here ({excerpt(why)})")


def ways(program: str) -> Iterable[Way]:
    """Yield the ways in which bubblewrap may work, the one with the firmest bounds first."""
    if os.getuid() == 0:
        yield Way(program, _AS_ROOT, drops=True)
    yield Way(program, (*_AS_USER, "--disable-userns"), drops=False)
    yield Way(program, _AS_USER, drops=False)  # before 0.8


ENGINE = SandboxEngine(
    name="bwrap",
    finder=_find,
    runs_images=False,
    auto_place=1,
    no_images="; only bubblewrap is used here",
)
