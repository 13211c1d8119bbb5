"""Containers through the command line of docker or podman."""

from __future__ import annotations

import asyncio
import json
import math
import os
import shutil
import tomllib
from asyncio.subprocess import Process
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import (
    NO_IMAGE,
    BoxSpec,
    Command,
    Ended,
    Engine,
    EngineKind,
    Limits,
    Mount,
    Streams,
    Unavailable,
)
from pytest_helmbench.sandbox.living import LivingBox, LivingSpec
from pytest_helmbench.sandbox.local import launched
from pytest_helmbench.sandbox.owners import Owner, new_folder, this_process
from pytest_helmbench.sandbox.processes import (
    Kill,
    Launch,
    LimitWatch,
    kill_one,
    last_words,
    run_tool,
    supervise,
    watch_disk,
)
from pytest_helmbench.sandbox.seccomp import container_profile
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace, remove_tree

_OPEN_FILES = 1024
_LIVING_OPEN_FILES = 4096
_PACKAGE_MANAGERS_NEED = ("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "SETUID", "SETGID")
_PROCESSES = 8192
_FOUND_BY = (  # what the command lines need to find their servers, stores and registries
    *("PATH", "HOME", "USER", "LOGNAME", "TMPDIR", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("DBUS_SESSION_BUS_ADDRESS", "SSH_AUTH_SOCK", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG"),
    *("DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY", "CONTAINER_HOST", "CONTAINER_SSHKEY", "CONTAINERS_CONF"),
    *("CONTAINERS_STORAGE_CONF", "CONTAINERS_REGISTRIES_CONF", "REGISTRY_AUTH_FILE"),
    *("HTTPS_PROXY", "NO_PROXY", "HTTP_PROXY", "https_proxy", "no_proxy", "http_proxy"),
)
_SETTINGS = "CONTAINERS_CONF"
_PLACES = ("/usr/share/containers", "/etc/containers")
DEFAULT_IMAGE = "docker.io/library/python:3.12-slim"
"""For boxes that name no image, where there is no bubblewrap."""
_OWNER = "helmbench.owner"
_ENGINE = "helmbench.engine"
_TASK = "helmbench.task"
_NAME = "helmbench-"
_TOOL_S = 60.0
_TOOL_LIMITS = Limits(wall_s=_TOOL_S)
_NO_STREAMS = Streams()
_PULL_S = 1800.0
_STOP_S = 10.0
_SHARED_MEMORY_BYTES = 64 * 1024 * 1024
_NOTHING = "/.helmbench/nothing"  # a program that no image has


def bound_flags(limits: Limits, open_files: int) -> Iterator[str]:
    """Return the flags that bound memory, processors, processes and open files, within what we may set ourselves."""
    yield from ("--memory", str(limits.memory_bytes), "--memory-swap", str(limits.memory_bytes))
    yield from ("--pids-limit", str(limits.pids), "--cpus", f"{min(limits.cpus, os.cpu_count() or 1):g}")
    files = min(open_files, os.sysconf("SC_OPEN_MAX"))
    # Named only because podman asks for more than it may set otherwise. It counts all processes of the user, so it
    # is generous; the container bounds its own.
    own = os.sysconf("SC_CHILD_MAX")
    processes = _PROCESSES if own < 0 else min(_PROCESSES, own)
    for limit in ("core=0:0", f"nofile={files}:{files}", f"nproc={processes}:{processes}"):
        yield from ("--ulimit", limit)


def mount_flags(mount: Mount) -> tuple[str, str]:
    fields = ["type=bind", f"src={mount.source}", f"dst={mount.target}"]
    if mount.read_only:
        fields.append("readonly")
    quoted = (
        f'"{field.replace(chr(34), chr(34) * 2)}"' if set(field) & set(',"') else field for field in fields
    )
    return "--mount", ",".join(quoted)


def tool_environment() -> Mapping[str, str]:
    """Return what a command line needs of the environment to find its engine, and no more."""
    return {name: os.environ[name] for name in _FOUND_BY if name in os.environ}


TomlTable = dict[str, object]


class ReadOnlyProc:
    """The settings that make `/proc` read-only in containers.

    Args:
        flags: Of the command line; none where it knows of none.
        folder: Where settings may be written.
    """

    def __init__(self, flags: tuple[str, ...], folder: Path) -> None:
        self.flags = flags
        self.environment: Mapping[str, str] = {}
        if flags:
            file = folder / "containers.conf"
            file.write_text(written_toml(_settings()), encoding="utf-8")
            self.environment = {_SETTINGS: str(file)}


def _settings() -> TomlTable:
    """Return the settings of this machine's podman, without default sysctls."""
    found: TomlTable = {}
    for file in _files():
        try:
            _merge(found, tomllib.loads(file.read_text(encoding="utf-8")))
        except (OSError, ValueError):
            continue  # podman has its own word on it
    _merge(found, {"containers": {"default_sysctls": []}})
    return found


def _files() -> Iterator[Path]:
    """Yield the files that podman reads, the last word last."""
    named = os.environ.get(_SETTINGS)
    if named:
        yield Path(named)
        return
    own = Path(os.environ.get("XDG_CONFIG_HOME") or Path("~/.config").expanduser()) / "containers"
    for folder in (*map(Path, _PLACES), *((own,) if os.getuid() else ())):
        yield folder / "containers.conf"
        yield from sorted((folder / "containers.conf.d").glob("*.conf"))


def _merge(into: TomlTable, more: Mapping[str, object]) -> None:
    for name, value in more.items():
        old = into.get(name)
        if isinstance(old, dict) and isinstance(value, dict):
            _merge(old, value)
        else:
            into[name] = value


def written_toml(table: Mapping[str, object], *above: str) -> str:
    """Return a table as TOML: texts, numbers, lists and tables, as such settings have them."""
    head = ".".join(json.dumps(name) for name in above)
    plain = {name: value for name, value in table.items() if not isinstance(value, dict)}
    lines = [f"[{head}]"] if above else []
    lines += [f"{json.dumps(name)} = {json.dumps(value, default=str)}" for name, value in plain.items()]
    below = [written_toml(value, *above, name) for name, value in table.items() if isinstance(value, dict)]
    return "\n".join([*lines, *below]) + ("" if above else "\n")


@dataclass(frozen=True, slots=True)
class ContainerProgram:
    """The ways in which the command line of a container engine differs from others.

    Args:
        rootless_question: What `info --format` is asked to learn whether root in a container is the user who runs us.
        rootless_sign: What stands in the answer when it is.
        private: Flags of `run` that keep from a container what the engine would give it unasked.
        private_build: The same of `build`.
        build_here: Flags of `build` that keep it from fetching the images that it starts from; none where it has none.
        server_question: What `version --format` is asked to learn who answers; empty where that is clear.
        server_sign: What stands in the answer of an engine that takes no filter of system calls, and has its own.
        run: The words of its command line that start a container.
        closed_proc: Flags of `run` that make `/proc` read-only; none where there are none.
        keep_owners: Flags of `cp` that leave to files the owners that their archive names.
        takes_as_root: Whether `cp` out of a container gives all files to root.
    """

    rootless_question: str
    rootless_sign: str
    private: tuple[str, ...]
    private_build: tuple[str, ...]
    build_here: tuple[str, ...] = ()
    server_question: str = ""
    server_sign: str = ""
    run: tuple[str, ...] = ("run",)
    closed_proc: tuple[str, ...] = ()
    keep_owners: tuple[str, ...] = ()
    takes_as_root: bool = False


class ContainerEngine(Engine):
    """Runs each command in a container of its own.

    Args:
        program: What its command line does in its own way.
        rootless: Whether root in a container is the user who runs us.
        pull: Whether images may be fetched.
        filters: Whether it takes our filter of system calls.
    """

    def __init__(
        self,
        kind: EngineKind,
        program: ContainerProgram,
        path: str,
        *,
        rootless: bool,
        pull: Granted[bool],
        filters: bool = True,
    ) -> None:
        super().__init__(kind)
        self.program = program
        self._path = path
        self.rootless = rootless
        self._user = "0:0" if rootless else f"{os.getuid()}:{os.getgid()}"
        self._pull = pull
        self._folder = new_folder()
        self._profile = self._folder / "seccomp.json"
        self._proc = ReadOnlyProc(program.closed_proc, self._folder)
        if filters:
            self._profile.write_text(json.dumps(container_profile()))
        self._numbers = count()
        self._looking = asyncio.Lock()
        self._known: dict[str, Unavailable | None] = {}
        self._done: list[str] = []
        self._removal: asyncio.Task[None] | None = None

    @property
    def containers(self) -> ContainerEngine:
        """Itself."""
        return self

    async def obstacle(self, image: str | None) -> Unavailable | None:
        """Return why containers of this image cannot be run, found by running one."""
        image = image or DEFAULT_IMAGE
        async with self._looking:
            if image not in self._known:
                self._known[image] = await self._look(image)
            return self._known[image]

    def new_workspace(self, image: str | None = None) -> Workspace:
        """Make an empty folder."""
        del image  # there is one kind
        path = self._folder / f"workspace-{next(self._numbers)}"
        path.mkdir(mode=0o700)
        return Workspace(path, remove_later=self.remove_later)

    async def fill(self, spec: BoxSpec, workspace: Workspace, /) -> None:
        """Copy what the image holds at the box's workdir into the workspace."""
        name = self.new_name()
        image = spec.image or DEFAULT_IMAGE
        try:
            labels = (*self.labels(spec.label), "--network", "none", "--entrypoint", _NOTHING)
            made = await self.tool("create", "--name", name, "--pull", "never", *labels, image)
            if made.exit_code != 0:
                raise SandboxError(f"{self.name}: no container of {image} could be made ({last_words(made)})")
            copied = await self.tool("cp", f"{name}:{spec.workdir}/.", str(workspace.path), wall_s=_PULL_S)
            if copied.exit_code != 0:
                raise SandboxError(
                    f"{image}: {spec.workdir} cannot be copied out of the image ({last_words(copied)})"
                )
        finally:
            self.remove_soon(name)

    async def execute(self, spec: BoxSpec, workspace: Workspace, command: Command, streams: Streams) -> Ended:
        """Run a command in a fresh container."""
        limits = command.limits or spec.limits
        name = self.new_name()
        argv = [*self.program.run, "--name", name, *self._flags(spec, limits)]
        if streams.given != b"":
            argv.append("--interactive")
        argv += ["--workdir", command.workdir or spec.workdir]
        argv += mount_flags(Mount(workspace.path, spec.workdir, read_only=False))
        for mount in spec.mounts:
            argv += mount_flags(mount)
        for variable, value in dict((("TMPDIR", "/tmp"), *spec.env, *command.env)).items():
            argv += ["--env", f"{variable}={value}"]
        argv += ["--entrypoint", command.argv[0], spec.image or DEFAULT_IMAGE, *command.argv[1:]]
        watch = (lambda _: watch_disk(workspace, limits),)
        try:
            ended = await self.call(
                *argv, streams=streams, limits=limits, kill=partial(self._kill, name), watch=watch
            )
            return await self._explained(name, ended, limits)
        finally:
            self.remove_soon(name)

    async def open_living(self, spec: LivingSpec) -> LivingBox:
        """Start a container that stays.

        Raises:
            SandboxError: It does not start; `obstacle` may have said why.
        """
        if obstacle := await self.obstacle(spec.image):
            raise SandboxError(obstacle.reason)
        name = self.new_name()
        argv = (*self.program.run, "--detach", "--name", name, *self._living_flags(spec), spec.image)
        try:
            started = await self.call(*argv, *(() if spec.server else ("infinity",)))
            if started.exit_code != 0:
                raise SandboxError(
                    f"{self.name}: no container of {spec.image} starts ({last_words(started)})"
                )
            return await LivingBox.started(self, spec, name)
        except BaseException:
            self.remove_soon(name)
            raise

    async def close(self) -> None:
        """Remove the containers of this engine, and its folder."""
        while self._removal is not None:
            await self._removal
        listed = await self.tool("ps", "-aq", "--filter", f"label={_ENGINE}={self._folder.name}")
        left = listed.stdout.decode(errors="replace").split()
        if left:
            await self.tool("rm", "-f", "-v", *left)
        await super().close()
        await asyncio.to_thread(remove_tree, self._folder)

    async def remove_leftovers(self) -> None:
        """Remove the containers of processes that were killed, and nothing else."""
        listed = await self.tool("ps", "-a", "--filter", f"label={_OWNER}", "--format", "{{.Names}}")
        names = left_behind(listed.stdout.decode(errors="replace").split())
        if names:
            await self.tool("rm", "-f", "-v", *names)

    async def _look(self, image: str) -> Unavailable | None:
        if not await self.has_image(image):
            if not self._pull:
                return Unavailable(
                    f"the image {image} is not here; --helmbench-pull would fetch it", NO_IMAGE
                )
            if refusal := await self.pull(image):
                return Unavailable(f"the image {image} could not be pulled ({refusal})", NO_IMAGE)
        # Only starting one shows whether limits can be set here; an image without a shell is fine (127).
        spec = BoxSpec(image=image)
        with self.new_workspace() as workspace:
            try:
                tried = await self._tried(spec, workspace)
            except SandboxError as error:
                return Unavailable(str(error))
        if tried.exit_code in (0, 127):
            return None
        return Unavailable(f"{self.name} cannot run containers of {image} ({last_words(tried)})", NO_IMAGE)

    async def has_image(self, image: str) -> bool:
        """Return whether an image is on this machine."""
        return (await self.tool("image", "inspect", "--format", "{{.Id}}", image)).exit_code == 0

    async def pull(self, image: str) -> str:
        """Fetch an image; return the engine's words where that failed, else nothing."""
        pulled = await self.tool("pull", image, wall_s=_PULL_S)
        return "" if pulled.exit_code == 0 else last_words(pulled)

    async def _tried(self, spec: BoxSpec, workspace: Workspace) -> Ended:
        """Start a container. Where one starts only without a read-only `/proc`, none has it from here on."""
        command = Command(("/bin/sh", "-c", ":"))
        with suppress(SandboxError):
            tried = await self.execute(spec, workspace, command, Streams())
            if tried.exit_code in (0, 127) or not self._proc.flags:
                return tried
        closed, self._proc = self._proc, ReadOnlyProc((), self._folder)
        tried = await self.execute(spec, workspace, command, Streams())
        if tried.exit_code not in (0, 127):
            self._proc = closed
        return tried

    def _living_flags(self, spec: LivingSpec) -> Iterator[str]:
        yield from ("--pull", "never", "--no-healthcheck", "--stop-signal", "KILL")
        yield from self.confinement(read_only=bool(spec.server))
        if spec.server:
            yield from spec.server
        else:
            yield from ("--hostname", "sandbox", "--log-driver", "none", "--entrypoint", "sleep")
            for name in _PACKAGE_MANAGERS_NEED:
                yield from ("--cap-add", name)
            yield from () if spec.network else ("--network", "none")
        for variable, value in spec.env:
            yield from ("--env", f"{variable}={value}")
        yield from () if spec.user is None else ("--user", spec.user)
        yield from bound_flags(spec.limits, _LIVING_OPEN_FILES)
        yield from (*self.program.private, *self._proc.flags, *self.labels(spec.label))

    def _flags(self, spec: BoxSpec, limits: Limits) -> Iterator[str]:
        yield from ("--pull", "never", "--network", "none", "--hostname", "sandbox", "--user", self._user)
        yield from self.confinement()
        for name in spec.capabilities:
            yield from ("--cap-add", name)
        # Removing kills at once: nothing in a box has anything to put in order.
        yield from ("--log-driver", "none", "--stop-signal", "KILL")
        yield from ("--tmpfs", f"/tmp:rw,exec,nosuid,nodev,mode=1777,size={limits.disk_bytes}")
        yield from ("--shm-size", str(min(limits.disk_bytes, _SHARED_MEMORY_BYTES)))
        yield from bound_flags(limits, _OPEN_FILES)
        yield from ("--ulimit", f"cpu={math.ceil(limits.cpus * limits.wall_s)}")
        yield from ("--ulimit", f"fsize={limits.disk_bytes}")
        yield from (*self.program.private, *self._proc.flags)
        if Path("/sys/fs/selinux/enforce").exists():
            yield from ("--security-opt", "label=disable")
        yield from self.labels(spec.label)

    def confinement(self, *, read_only: bool = True) -> Iterator[str]:
        """Return the flags that take privileges and system calls from whatever runs in a container."""
        yield from ("--read-only",) if read_only else ()
        yield from ("--cap-drop", "ALL", "--security-opt", "no-new-privileges")
        if self._profile.exists():
            yield from ("--security-opt", f"seccomp={self._profile}")

    def labels(self, label: str) -> Iterator[str]:
        """Return the flags that mark a container as ours."""
        yield from ("--label", f"{_OWNER}={this_process().mark}", "--label", f"{_ENGINE}={self._folder.name}")
        if label:
            yield from ("--label", f"{_TASK}={excerpt(label)}")

    def new_name(self) -> str:
        """Return a name for a container: it carries our mark, so that the next session may remove it."""
        folder = self._folder.name.rpartition("-")[2]
        return f"{_NAME}{this_process().mark}-{folder}{next(self._numbers)}"

    async def _kill(self, name: str, process: Process) -> None:
        """Kill the container, with it its command line; nothing is left to do when it has ended."""
        if process.returncode is not None:
            return
        await self.tool("kill", name)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _STOP_S)
        await kill_one(process)

    async def _explained(self, name: str, ended: Ended, limits: Limits) -> Ended:
        """Tell the engine's own failures, and the kernel's kill for want of memory, from the command's end.

        Raises:
            SandboxError: The container never ran.
        """
        if ended.exit_code not in (125, 137):
            return ended
        asked = "{{.State.OOMKilled}} {{.State.StartedAt.Year}}"
        state = await self.tool("inspect", "--format", asked, "--type", "container", name)
        killed, _, year = state.stdout.decode(errors="replace").strip().partition(" ")
        if ended.exit_code == 125 and (state.exit_code != 0 or year in ("0", "1")):
            raise SandboxError(f"{self.name}: no container could be made ({last_words(ended)})")
        if killed == "true":
            return replace(ended, exit_code=None, reason=f"more than {limits.memory_bytes} bytes of memory")
        return ended

    def remove_soon(self, name: str) -> None:
        """Remove a container while others run, many with one command."""
        self._done.append(name)
        if self._removal is None:
            self._removal = asyncio.create_task(self._remove_done())

    async def _remove_done(self) -> None:
        try:
            while self._done:
                names, self._done = self._done, []
                await self.tool("rm", "-f", "-v", *names)
        finally:
            self._removal = None

    async def reaped(self, *arguments: str, wall_s: float, launcher: Path, kill: Kill) -> Ended:
        """Run the command line below our launcher: all that it has started on this machine ends with it, or with us."""
        settings = f"CORE=0,reap={os.getpid()}"
        argv = launched((self._path, *arguments), str(self._folder), settings, str(launcher))
        launch = Launch(argv=argv, env=tool_environment(), kill=kill)
        return await supervise(launch, Streams(given=b""), Limits(wall_s=wall_s))

    async def tool(self, *arguments: str, wall_s: float = _TOOL_S) -> Ended:
        """Run the command line, with no more of the environment than it needs to find its engine."""
        return await run_tool((self._path, *arguments), tool_environment(), wall_s=wall_s)

    async def call(
        self,
        *arguments: str,
        streams: Streams = _NO_STREAMS,
        limits: Limits = _TOOL_LIMITS,
        kill: Kill = kill_one,
        watch: tuple[LimitWatch, ...] = (),
    ) -> Ended:
        """Run the command line around a command, or for an archive, within limits."""
        launch = Launch(
            argv=(self._path, *arguments),
            env={**tool_environment(), **self._proc.environment},
            folder=self._folder,  # podman writes a file named `oom` where it is called
            kill=kill,
            watch=watch,
        )
        return await supervise(launch, streams, limits)


async def find_containers(
    kind: EngineKind, pull: Granted[bool], *, program: ContainerProgram, name: str = ""
) -> ContainerEngine | Unavailable:
    """Return the engine, or why there is none; containers of killed sessions are removed.

    Args:
        pull: Whether images may be fetched.
        program: What its command line does in its own way.
        name: Of the command line; empty where it is that of the engine.
    """
    name = name or kind.name
    path = shutil.which(name)
    if path is None:
        return Unavailable(f"{name} is not installed")
    asked = (path, "info", "--format", program.rootless_question)
    try:
        info = await run_tool(asked, tool_environment(), wall_s=_TOOL_S)
    except SandboxError as error:
        return Unavailable(str(error))
    said = info.stdout.decode(errors="replace").strip()
    if info.exit_code != 0 or not said:
        return Unavailable(f"{name} does not work here ({last_words(info)})")
    rootless = program.rootless_sign in said
    filters = True
    if program.server_question:
        asked = (path, "version", "--format", program.server_question)
        answer = await run_tool(asked, tool_environment(), wall_s=_TOOL_S)
        filters = program.server_sign not in answer.stdout.decode(errors="replace")
    engine = ContainerEngine(kind, program, path, rootless=rootless, pull=pull, filters=filters)
    await engine.remove_leftovers()
    return engine


def left_behind(names: Iterable[str]) -> list[str]:
    """Return those names of containers or networks that processes gave which have surely ended."""
    marked = ((name, Owner.read(name.removeprefix(_NAME).rpartition("-")[0])) for name in names)
    return [
        name for name, owner in marked if name.startswith(_NAME) and owner is not None and owner.is_gone()
    ]
