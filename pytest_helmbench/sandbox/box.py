"""Sandboxes: engines, the boxes that they open, commands with their limits, and how commands ended."""

from __future__ import annotations

import asyncio
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace, remove_tree

if TYPE_CHECKING:
    from pytest_helmbench.sandbox.containers import ContainerEngine

_MIB = 1024 * 1024
NO_IMAGE = "no_image"
"""The code of `Unavailable` where sandboxes work, but not with this image."""

_PLACES = max(4, 2 * (os.cpu_count() or 1))


@dataclass(frozen=True, slots=True)
class Unavailable:
    """Why foreign code cannot run here: one sentence for people, which a skipped row says, and its code."""

    reason: str
    code: str = "no_sandbox"


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one command. A command that leaves them is stopped.

    Args:
        wall_s: Seconds until the command, and all it started, is killed.
        cpus: Cores' worth of work; all CPU time together is at most `cpus × wall_s` seconds.
        memory_bytes: Memory of all its processes together.
        pids: Processes and threads at one time.
        output_bytes: Bytes kept of stdout, and as many of stderr; what comes behind is dropped, and who
            writes sixteen times as much is stopped.
        disk_bytes: Largest sum of files in the workspace, and as much again in the temporary folder.
        files: Files and folders in the workspace; the kernel counts those in temporary folders as memory.
    """

    wall_s: float = 30.0
    cpus: float = 1.0
    memory_bytes: int = 512 * _MIB
    pids: int = 64
    output_bytes: int = 1 * _MIB
    disk_bytes: int = 256 * _MIB
    files: int = 100_000


@dataclass(frozen=True, slots=True)
class Command:
    """One program to run in a box.

    Args:
        argv: Program and arguments; nothing passes a shell.
        workdir: Absolute path inside the box; None for the box's own.
        env: Added to the box's environment, this one winning.
        stdin: What the program may read; it sees the end of file behind it.
        limits: None for the box's own.
    """

    argv: tuple[str, ...]
    workdir: str | None = None
    env: tuple[tuple[str, str], ...] = ()
    stdin: bytes = b""
    limits: Limits | None = None


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Args:
        exit_code: 126 and 127 when the program could not be started, 128 + n after signal n, None when we
            stopped it.
        stdout: As written, up to the limit.
        stderr: As written, up to the limit.
        timed_out: Stopped because `wall_s` had passed.
        output_cut: More was written than is kept.
        reason: Why we stopped it, for people; empty when it ended by itself.
        wall_s: Seconds it ran, the sandbox's own start included.
    """

    exit_code: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    output_cut: bool
    reason: str
    wall_s: float


@dataclass(frozen=True, slots=True)
class Mount:
    """A file or folder of this machine that commands see.

    Args:
        target: Absolute path inside the box; below the box's workdir it covers what the workspace has there.
        read_only: Whether commands may only read it.
    """

    source: Path
    target: str
    read_only: bool = True


@dataclass(frozen=True, slots=True)
class BoxSpec:
    """The parts of a box.

    Args:
        image: Container image; None for this machine's own programs (or a default image, where the engine
            knows nothing else).
        workdir: Absolute path at which commands see the workspace, and start.
        workspace: Files that commands work on; it outlives the box. None makes an empty one that ends with
            the box.
        fill_from_image: Copy what the image holds at `workdir` into the workspace before the first command.
        mounts: Seen by every command.
        env: The whole environment apart from TMPDIR and PATH and LANG, which in a container are the image's own.
        limits: Of every command that names none.
        label: A word for people who list containers, such as the row's id.
        capabilities: Privileges of the kernel's that commands get nevertheless, such as `SYS_CHROOT`; containers
            only.
    """

    image: str | None = None
    workdir: str = "/workspace"
    workspace: Workspace | None = None
    fill_from_image: bool = False
    mounts: tuple[Mount, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    limits: Limits = field(default_factory=Limits)
    label: str = ""
    capabilities: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Streams:
    """The input and output of a command.

    Args:
        given: What it reads; None when `stdin` is an open file.
        stdin: Descriptor it reads from.
        stdout: Descriptor it writes to; None when its stdout is collected.
        keeps_end: The end of its output is kept, however much comes; else the beginning.
    """

    given: bytes | None = b""
    stdin: int | None = None
    stdout: int | None = None
    keeps_end: bool = False


@dataclass(frozen=True, slots=True)
class EngineKind:
    """A way to run foreign code: all that is known of it before it is tried.

    Args:
        name: What `--helmbench-sandbox` calls it, and what results say.
        finder: Tries it, given whether images may be fetched; returns what runs boxes, or why nothing does.
        runs_images: Boxes are made of container images; else of this machine's own programs.
        auto_place: Where it stands in the order of `auto`, among those that run images and among the others; None
            where it must be asked for.
        is_variant: It is others with one layer more, so messages name those alone.
    """

    name: str
    finder: SandboxFinder
    runs_images: bool
    auto_place: int | None = None
    is_variant: bool = False

    async def find(self, pull: Granted[bool]) -> Engine | Unavailable:
        """Return the engine as it works here, or why it does not; what its killed sessions left is removed."""
        return await self.finder(self, pull)


SandboxFinder: TypeAlias = "Callable[[EngineKind, Granted[bool]], Awaitable[Engine | Unavailable]]"


class Engine(ABC):
    """A sandbox engine that was found to work here.

    Args:
        kind: What was known of it before it was tried.
    """

    def __init__(self, kind: EngineKind) -> None:
        self.kind = kind
        self.places = asyncio.Semaphore(_PLACES)
        """Commands at one time: more would only slow each other down, and time limits are wall time."""
        self.closed_programs: dict[str | None, asyncio.Future[tuple[Mount, ...]]] = {}
        """By image: what covers its shells and the like with copies that cannot be read."""
        self._removals = ThreadPoolExecutor(1, "helmbench-removals")

    @property
    def name(self) -> str:
        """`docker`, `podman`, `bwrap`; several joined with `+` where rows may go to either."""
        return self.kind.name

    @property
    def containers(self) -> ContainerEngine | None:
        """The engine of boxes that live on; None where nothing but this machine's own programs runs."""
        return None

    @abstractmethod
    async def obstacle(self, image: str | None) -> Unavailable | None:
        """Return why boxes of this image (None: of this machine) cannot be opened, or None when they can.

        Pulls the image where that is allowed. The answer for an image is found once.
        """

    @abstractmethod
    def new_workspace(self, image: str | None = None) -> Workspace:
        """Make an empty folder for boxes of this image (None: of this machine); the caller closes it."""

    async def open(self, spec: BoxSpec) -> Box:
        """Make a box.

        Raises:
            SandboxError: It cannot be made; `obstacle` would have said why.
        """
        obstacle = await self.obstacle(spec.image)
        if obstacle is not None:
            raise SandboxError(obstacle.reason)
        workspace = spec.workspace or self.new_workspace(spec.image)
        box = Box(self, spec, workspace)
        if spec.fill_from_image:
            try:
                await self.fill(spec, workspace)
            except BaseException:
                await box.close()
                raise
        return box

    async def fill(self, spec: BoxSpec, _workspace: Workspace, /) -> None:
        """Copy what the image holds at the box's workdir into the workspace.

        Raises:
            SandboxError: There is no image, or no such folder in it.
        """
        raise SandboxError(f"{spec.workdir}: cannot be copied from an image, {self.name} has none")

    @abstractmethod
    async def execute(self, spec: BoxSpec, workspace: Workspace, command: Command, streams: Streams) -> Ended:
        """Run a command in a fresh sandbox; everything it started is dead when this returns.

        Raises:
            SandboxError: The sandbox could not be made.
        """

    def python(self, _image: str | None, /) -> str:
        """Return the Python of boxes of this image (None: of this machine), as a command calls it."""
        return "python3"

    def remove_later(self, folder: Path) -> None:
        """Remove a folder while others go on: foreign code may have filled it."""
        self._removals.submit(remove_tree, folder)

    async def close(self) -> None:
        """Remove everything this engine made that is still there."""
        await asyncio.to_thread(self._removals.shutdown)


class Shell(Protocol):
    """A place that runs commands."""

    async def run(self, command: Command, /) -> Ended:
        """Run a command to its end.

        Raises:
            SandboxError: The sandbox failed.
        """


class Box:
    """Commands over one workspace, each in a fresh sandbox of its own.

    Nothing lives on from one command to the next but the workspace: no process, no temporary file.

    Args:
        spec: Image, mounts, environment and limits of the commands.
        workspace: The files that they work on; closed with the box unless the spec brought it.
    """

    def __init__(self, engine: Engine, spec: BoxSpec, workspace: Workspace) -> None:
        self._engine = engine
        self._spec = spec
        self.workspace = workspace

    @property
    def engine(self) -> str:
        """Name of what runs it: `gvisor`, `docker`, `podman` or `bwrap`."""
        return self._engine.name

    @property
    def python(self) -> str:
        """The Python of the box, as a command calls it."""
        return self._engine.python(self._spec.image)

    @property
    def workdir(self) -> str:
        """Where commands find the workspace."""
        return self._spec.workdir

    async def run(self, command: Command) -> Ended:
        """Run a command to its end; everything it started is dead when this returns.

        Cancelling kills it too.

        Raises:
            SandboxError: The sandbox could not be made.
        """
        async with self._engine.places:
            return await self._execute(command, Streams(given=command.stdin))

    async def run_joined(self, command: Command, *, stdin: int, stdout: int) -> Ended:
        """Run a command whose stdin and stdout are open files of the caller; `command.stdin` is not used.

        The caller closes its ends, and holds one of the engine's `places` for all it joins. Only stderr is
        collected.

        Raises:
            SandboxError: The sandbox could not be made.
        """
        return await self._execute(command, Streams(given=None, stdin=stdin, stdout=stdout))

    async def close(self) -> None:
        """Remove the workspace, if it is the box's own."""
        if self._spec.workspace is None:
            self.workspace.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _execute(self, command: Command, streams: Streams) -> Ended:
        self._make_mount_points()
        ended = await self._engine.execute(self._spec, self.workspace, command, streams)
        breach = await asyncio.to_thread(disk_breach, self.workspace, command.limits or self._spec.limits)
        return replace(ended, exit_code=None, reason=breach) if breach and not ended.reason else ended

    def _make_mount_points(self) -> None:
        """Make the places in the workspace that mounts cover, so that no engine follows a link to make them."""
        for mount in self._spec.mounts:
            target = PurePosixPath(mount.target)
            if target.is_relative_to(self._spec.workdir):
                name = target.relative_to(self._spec.workdir).as_posix()
                self.workspace.make_place(name, folder=mount.source.is_dir())


def disk_breach(workspace: Workspace, limits: Limits) -> str:
    """Return how a workspace has outgrown its limits; empty when it has not."""
    try:
        files, size = workspace.extent()
    except SandboxError as error:
        return str(error)
    if files > limits.files:
        return f"more than {limits.files} files in the workspace"
    return f"more than {limits.disk_bytes} bytes in the workspace" if size > limits.disk_bytes else ""
