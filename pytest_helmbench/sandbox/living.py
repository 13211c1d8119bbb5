"""Boxes that live on: processes, packages and files stay from one command to the next, until the box is removed."""

from __future__ import annotations

import asyncio
import os
import posixpath
import re
import signal
from asyncio.subprocess import Process
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import IO, TYPE_CHECKING, Self

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import HiddenValues
from pytest_helmbench.sandbox.box import Command, Ended, Limits, Streams
from pytest_helmbench.sandbox.cgroups import ProcessGroup, container_group
from pytest_helmbench.sandbox.owners import Owner, process_owner
from pytest_helmbench.sandbox.processes import kill_one, last_words
from pytest_helmbench.sandbox.workspace import SandboxError

if TYPE_CHECKING:
    from pytest_helmbench.sandbox.containers import ContainerEngine

_MARK = "INVOCATION_ID"  # systemd's name for such a thing
_NOT_THERE = re.compile(
    rb"could not be found on container|could not find the file|daemon: no such file or directory\s*$",
    re.IGNORECASE,
)
"""As engines say that nothing stands at a path; a box that is just ending lacks other files."""
_ARCHIVE_S = 600.0
_STOP_S = 10.0
_LOOK_S = 0.05
_WAITS_S = (0.1, 0.5, 2.0)
_EXITS = 4  # the kernel's flag PF_EXITING
_ROUNDS = 100  # of killing, against programs that start others meanwhile


class BoxDiedError(SandboxError):
    """A box has ended below what ran in it.

    Args:
        memory: The kernel killed in it for want of its memory.
    """

    def __init__(self, message: str, *, memory: bool) -> None:
        super().__init__(message)
        self.memory = memory


class ArchiveRefusedError(SandboxError):
    """The engine does not unpack an archive in a box."""


class TooLargeError(SandboxError):
    """More lies at a path than may be copied out."""


@dataclass(frozen=True, slots=True)
class LivingSpec:
    """The parts of a box that lives on.

    Args:
        image: That it is made of.
        env: Added to the image's environment.
        workdir: Where commands start, made if it is not there; None for the image's.
        user: Runs the commands that name no other: a name or number; None for the image's.
        limits: Processors, memory and processes of the box; time and output of every command that names none. Its
            disk space is not bounded.
        network: It has the engine's own network, else none.
        label: A word for people who list containers.
        hidden: Values that leave it in no command's output.
        server: Flags of a container in which the image's own program serves, over files that it cannot write.
    """

    image: str
    env: tuple[tuple[str, str], ...] = ()
    workdir: str | None = None
    user: str | None = None
    limits: Limits = Limits(wall_s=600.0, cpus=2.0, memory_bytes=4096 * 2**20, pids=2048)
    network: bool = False
    label: str = ""
    hidden: HiddenValues = HiddenValues(())
    server: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class BoxUse:
    """The memory of a box, as its control group counts it; None for what this machine does not show.

    Args:
        peak_bytes: The most that it held at one time, files in memory included.
        kills: Processes that the kernel killed for want of the box's memory.
    """

    peak_bytes: int | None = None
    kills: int | None = None


class LivingBox:
    """A container that stays; made by `ContainerEngine.open_living`.

    Args:
        name: As the engine knows it.
    """

    def __init__(self, engine: ContainerEngine, spec: LivingSpec, name: str, workdir: str) -> None:
        self.name = name
        self.workdir = workdir
        self.user = ""
        """Runs the commands that name no other, as the image or the spec writes it; empty for root."""
        self.is_frozen = False
        """Its processes were stopped, and could go on."""
        self._engine = engine
        self._spec = spec
        self._main: Owner | None = None
        self._group: ProcessGroup | None = None
        self._use = BoxUse()
        self._marks: set[str] = set()

    @classmethod
    async def started(cls, engine: ContainerEngine, spec: LivingSpec, name: str) -> Self:
        """Return the box of a container that has just been started.

        Raises:
            SandboxError: It has ended already.
        """
        asked = "{{.State.Pid}} {{.Id}} {{.Config.User}} {{.Config.WorkingDir}}"
        told = await engine.tool("inspect", "--type", "container", "--format", asked, name)
        words = told.stdout.decode(errors="replace").rstrip("\n").split(" ", 3)
        if told.exit_code != 0 or len(words) != 4:
            raise SandboxError(f"{engine.name}: a box of {spec.image} is gone ({last_words(told)})")
        box = cls(engine, spec, name, spec.workdir or words[3] or "/")
        box.user = words[2]
        pid = int(words[0])
        box._group = container_group(pid, words[1]) if pid else None
        box._main = process_owner(pid) if box._group else None
        if spec.workdir and spec.workdir not in ("/", words[3]):  # engines make that of the image
            made = await box.run(Command(("mkdir", "-p", "--", spec.workdir), workdir="/"), user="0")
            if made.exit_code != 0:
                raise SandboxError(f"{spec.image}: {spec.workdir} cannot be made ({last_words(made)})")
        return box

    @property
    def engine(self) -> str:
        """Name of the engine that runs it."""
        return self._engine.name

    @property
    def takes_as_root(self) -> bool:
        """Whether `take` forgets the owners of files, and gives all to root."""
        return self._engine.program.takes_as_root

    async def run(
        self, command: Command, *, user: str | None = None, streams: Streams | None = None
    ) -> Ended:
        """Run a command to its end; what it leaves running lives on.

        A command that leaves its limits is killed with its session, and so is one that is cancelled. The box lives on.

        Args:
            command: Its limits bound time and output; those of the box bound the rest.
            user: Who runs it: a name or number; None for the box's own.
            streams: Open files of the caller in place of `command.stdin` and what is collected.

        Raises:
            BoxDiedError: The box has ended, before or while the command ran.
            SandboxError: The engine's command line could not be started.
        """
        streams = streams or Streams(given=command.stdin)
        mark = f"{_MARK}={token_hex(16)}"
        argv = ["exec", "--workdir", command.workdir or self.workdir, "--env", mark]
        argv += [] if streams.given == b"" else ["--interactive"]
        argv += [] if user is None else ["--user", user]
        for variable, value in command.env:
            argv += ["--env", f"{variable}={value}"]
        limits = command.limits or self._spec.limits
        stop = partial(self._stop, mark)
        self._marks.add(mark)
        try:
            ended = await self._engine.call(
                *(*argv, self.name, *command.argv),
                streams=streams,
                limits=limits,
                kill=stop,
                watch=(self._look,),
            )
        finally:
            self._marks.discard(mark)
        if ended.exit_code != 0:
            await self._be_alive()
        cleaned = self._spec.hidden.without_in_json
        return replace(ended, stdout=cleaned(ended.stdout), stderr=cleaned(ended.stderr))

    async def put(self, archive: Path) -> None:
        """Unpack a tar file at `/`; owners and modes are those of the archive.

        Raises:
            ArchiveRefusedError: The engine refuses, as where a link stands in the place of a folder.
        """
        with archive.open("rb") as file:
            streams = Streams(given=None, stdin=file.fileno())
            flags = self._engine.program.keep_owners
            done = await self._engine.call(
                *("cp", *flags, "-", f"{self.name}:/"), streams=streams, limits=Limits(wall_s=_ARCHIVE_S)
            )
        if done.exit_code != 0:
            raise ArchiveRefusedError(
                f"{self._engine.name}: nothing can be put into a box ({last_words(done)})"
            )

    async def take(self, path: str, archive: IO[bytes], limit_bytes: int) -> bool:
        """Copy a path out of the box as a tar stream. No program of the box takes part, so it may be frozen or dead.

        `place_of` says where its names stand. Podman follows a link that stands there, and its archive gives all to
        user 0: it keeps modes, not owners.

        Args:
            path: Absolute, in the box.
            archive: An open file, written from where it stands.
            limit_bytes: Of the whole archive.

        Returns:
            Whether something is there.

        Raises:
            TooLargeError: The archive would be larger.
            SandboxError: The engine cannot copy it.
        """
        done = await self._engine.call(
            *("cp", f"{self.name}:{path}", "-"),
            streams=Streams(stdout=archive.fileno()),
            limits=Limits(wall_s=_ARCHIVE_S),
            watch=(partial(_outgrown, archive, limit_bytes),),
        )
        if os.fstat(archive.fileno()).st_size > limit_bytes:
            raise TooLargeError(f"{path}: more than {limit_bytes} bytes")
        if done.exit_code == 0:
            return True
        if _NOT_THERE.search(done.stderr):
            return False
        raise SandboxError(f"{path}: cannot be copied out of a box ({last_words(done)})")

    async def freeze(self) -> None:
        """Stop all its processes where they are; those that the engine cannot stop are killed, with the box.

        Raises:
            BoxDiedError: It has ended.
        """
        for wait_s in _WAITS_S:  # the kernel does not freeze at once what is just starting programs
            self.is_frozen = (await self._engine.tool("pause", self.name)).exit_code == 0
            if self.is_frozen:
                return
            await self._be_alive()
            await asyncio.sleep(wait_s)
        await self.kill()

    async def thaw(self) -> None:
        """Let its processes go on.

        Raises:
            BoxDiedError: It has ended.
            SandboxError: The engine cannot.
        """
        told = await self._engine.tool("unpause", self.name)
        if told.exit_code != 0:
            await self._be_alive()
            raise SandboxError(f"{self._engine.name}: a box does not go on ({last_words(told)})")

    async def kill(self) -> None:
        """Kill its processes; its files stay until it is removed."""
        await self.use()
        await self._engine.tool("kill", self.name)
        # Until the engine has seen its end, it looks for files where the processes were.
        await self._engine.tool("wait", self.name, wall_s=_STOP_S)

    async def use(self) -> BoxUse:
        """Return what it has used so far; behind its end, what was last seen."""
        if self._group is not None:
            seen = BoxUse(self._group.peak_bytes(), self._group.kills())
            self._use = self._use if seen == BoxUse() else seen
        return self._use

    async def remove(self) -> None:
        """Remove it, with all its processes and files."""
        await asyncio.shield(self._engine.tool("rm", "-f", "-v", self.name))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._engine.remove_soon(self.name)

    async def _look(self, _pid: int) -> str:
        """Keep its figures: when it ends for want of memory, its control group is gone before a command ends."""
        while True:
            await asyncio.sleep(_LOOK_S)
            await self.use()

    async def _be_alive(self) -> None:
        """Tell the end of a box from that of a command.

        Raises:
            BoxDiedError: It has ended.
        """
        if self._main is not None and not self._main.is_gone() and not _is_ending(self._main.pid):
            return
        asked = "{{.State.Running}} {{.State.Paused}} {{.State.OOMKilled}}"
        told = await self._engine.tool("inspect", "--type", "container", "--format", asked, self.name)
        runs, pauses, starved = (*told.stdout.decode(errors="replace").split(), "", "", "")[:3]
        if self._main is None and "true" in (runs, pauses):
            return
        memory = starved == "true" or bool((await self.use()).kills)
        why = f": more than {self._spec.limits.memory_bytes} bytes of memory" if memory else ""
        raise BoxDiedError(f"the box has ended{why}", memory=memory)

    async def _stop(self, mark: str, process: Process) -> None:
        """Kill a command's session in the box; its command line ends with it."""
        if process.returncode is not None:
            return
        try:
            for _ in range(_ROUNDS):
                if not self._kill_session(mark):
                    break
                await asyncio.sleep(_LOOK_S)
        except PermissionError:
            # All but the box's first process, from inside: it is not our machine, or we are not root on it.
            argv = ("exec", "--user", "0", self.name, "/bin/sh", "-c", "kill -9 -1")
            await self._engine.tool(*argv, wall_s=_STOP_S)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _STOP_S)
        await kill_one(process)

    def _kill_session(self, mark: str) -> bool:
        """Kill the sessions that the engine started in the box, but for those that show another command's mark.

        Returns:
            Whether there were any.

        Raises:
            PermissionError: They cannot be seen or killed from here.
        """
        if self._group is None or self._main is None:
            raise PermissionError
        others = [other.encode() for other in self._marks - {mark}]
        pids = self._group.processes()
        leaders = {pid for pid in pids - {self._main.pid} if _parent(pid) not in pids}
        mine = {pid for pid in leaders if not others or not _shows(pid, others)}
        killed = False
        for pid in pids:
            with suppress(ProcessLookupError):
                if os.getsid(pid) in mine:
                    os.kill(pid, signal.SIGKILL)
                    killed = True
        return killed


def place_of(name: str, path: str) -> str:
    """Return where in a box something stands whose name is in the archive of a path.

    The first name is the last of the path; podman's names begin with `/` instead where a volume is mounted there.
    """
    is_mounted = not name or name.startswith("/")
    return posixpath.normpath(
        posixpath.join(path if is_mounted else posixpath.dirname(path), name.lstrip("/"))
    )


async def _outgrown(archive: IO[bytes], limit_bytes: int, _pid: int) -> str:
    while True:
        await asyncio.sleep(_LOOK_S)
        if os.fstat(archive.fileno()).st_size > limit_bytes:
            return f"more than {limit_bytes} bytes"


def _parent(pid: int) -> int | None:
    return int(fields[1]) if (fields := _stat(pid)) else None


def _is_ending(pid: int) -> bool:
    """Return whether a process is about to end: the first one of a box kills all others before it is gone."""
    return bool((fields := _stat(pid)) and int(fields[6]) & _EXITS)


def _stat(pid: int) -> list[bytes]:
    """Return the state of a process, its parent and so on, as the kernel lists them; empty where it is gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    return []


def _shows(pid: int, marks: list[bytes]) -> bool:
    """Return whether a process was started with one of these marks in its environment."""
    with suppress(FileNotFoundError, ProcessLookupError):
        shown = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return any(mark in shown for mark in marks)
    return False
