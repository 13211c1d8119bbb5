"""The boxes of a task folder: their image, their files, their health, their shell, and what they used."""

from __future__ import annotations

import asyncio
import os
import tarfile
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import field, replace
from io import BytesIO
from pathlib import Path
from secrets import token_hex

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentRow, FindingError
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.task_folder.check import (
    BoxNeeds,
    FolderTask,
    HealthCheck,
    filled_env,
)
from pytest_helmbench.benchmarks.packs.row_tools import RowTools
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import BOX_EVENT, Event, Verdict
from pytest_helmbench.core.scrub import excerpt, secrets_of
from pytest_helmbench.sandbox.box import Command, Limits
from pytest_helmbench.sandbox.containers import ContainerEngine
from pytest_helmbench.sandbox.images import ImageError, ready_image
from pytest_helmbench.sandbox.living import BoxUse, LivingBox, LivingSpec
from pytest_helmbench.sandbox.owners import new_folder
from pytest_helmbench.sandbox.workspace import SandboxError, remove_tree

LOGS = ("/logs/agent", "/logs/artifacts", "/logs/verifier")
"""Folders that Harbor makes in every box."""

UNHEALTHY = "unhealthy"
_BASH = 'if command -v bash >/dev/null 2>&1; then exec bash -c "$1"; else exec sh -c "$1"; fi'
_OUTPUT_BYTES = 64 * 1024
_ID_S = 30.0
_PROCESSES = 4096
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Load:
    """The files that are put into a box at one time, as files of root unless they come from an archive.

    Args:
        folders: That are made, open to all users.
        base: Folders of this machine, each with its place in the box, where they join what stands there.
        archive: A tar file whose entries come along as they are; None for none. It goes over `base`.
        trees: More folders of this machine, over those before.
        texts: Contents by path, which all users may write.
        replaced: Paths that are removed before, so that what is not put there does not stand there.
    """

    folders: Sequence[str] = ()
    base: Sequence[tuple[Path, str]] = ()
    archive: Path | None = None
    trees: Sequence[tuple[Path, str]] = ()
    texts: Mapping[str, bytes] = field(default_factory=dict)
    replaced: Sequence[str] = ()

    def write(self, file: tarfile.TarFile) -> None:
        """Write it all; names lead from `/`."""
        for name in self.folders:
            file.addfile(_Entry(name, tarfile.DIRTYPE, 0o777))
        _add_trees(file, self.base)
        if self.archive is not None:
            with tarfile.open(self.archive) as other:
                for member in other:
                    file.addfile(member, other.extractfile(member) if member.isreg() else None)
        _add_trees(file, self.trees)
        for name, content in self.texts.items():
            file.addfile(_Entry(name, tarfile.REGTYPE, 0o666, len(content)), BytesIO(content))


@dataclass(frozen=True, slots=True)
class TaskPlace:
    """A task folder that is worked on: the agent's box, and a folder of ours for what passes between boxes.

    Args:
        owner: User and group to whom what is handed over belongs; None where the engine knows owners, and for root.
    """

    row: AgentRow
    tools: RowTools
    task: FolderTask
    box: LivingBox
    passage: Path
    owner: tuple[int, int] | None = None

    @property
    def source(self) -> Path:
        """The task folder on this machine."""
        return self.tools.files.root / self.task.folder

    def fresh_box(self, load: Load) -> AbstractAsyncContextManager[LivingBox]:
        """Open the box that judges, with files in it; the agent never saw it."""
        return _opened(self.row, self.tools, "verifier", self.task.verifier, self.passage, load)


@asynccontextmanager
async def open_task(row: AgentRow, tools: RowTools) -> AsyncIterator[TaskPlace]:
    """Open the box of an agent, laid out and healthy, and remove all at the end.

    Raises:
        FindingError: Its image cannot be built, or it does not become healthy.
        SandboxError: The engine failed.
    """
    task, passage = check_of(row.task, FolderTask), new_folder()
    try:
        async with _opened(row, tools, "agent", task.agent, passage, Load()) as box:
            yield TaskPlace(row, tools, task, box, passage, await _owner(box, task.agent_user))
    finally:
        await asyncio.to_thread(remove_tree, passage)


async def _owner(box: LivingBox, user: str | None) -> tuple[int, int] | None:
    """Return the numbers of the agent's user and group, where the engine forgets owners; None for root.

    Raises:
        FindingError: The box has no such user.
    """
    name = user or box.user
    if not box.takes_as_root or name in ("", "0", "root"):
        return None
    told = await box.run(bash("id -u; id -g", wall_s=_ID_S), user=user)
    numbers = told.stdout.split()
    if told.exit_code != 0 or len(numbers) != 2:
        raise FindingError(Verdict.ERROR, "no_user", f"agent.user: the box has no user {name!r}")
    return int(numbers[0]), int(numbers[1])


@asynccontextmanager
async def _opened(
    row: AgentRow, tools: RowTools, part: str, needs: BoxNeeds, passage: Path, load: Load
) -> AsyncIterator[LivingBox]:
    """Open a healthy box with files in it; what it was given and has used is on record, whatever becomes of it."""
    engine = row.engine.containers
    if engine is None:
        raise SandboxError("task folders need docker or podman")
    source = tools.files.root / check_of(row.task, FolderTask).folder
    spec = LivingSpec(
        image=await _image(tools, engine, needs, source),
        env=filled_env(needs.env, tools.variables),
        workdir=needs.workdir,
        limits=Limits(cpus=needs.cpus, memory_bytes=needs.memory_mb * _MIB, pids=_PROCESSES),
        network=needs.network and tools.settings.gives_network,
        label=row.task.id,
        hidden=secrets_of(tools.variables),
    )
    async with await engine.open_living(spec) as box:
        loose = None if box.workdir in load.replaced else needs.loose
        base = () if loose is None else ((source / loose, box.workdir),)
        if load.replaced:
            await box.run(Command(("rm", "-rf", "--", *load.replaced), workdir="/"), user="0")
        await put(box, replace(load, folders=LOGS, base=base), passage)
        if needs.health is not None:
            await _be_healthy(box, needs.health)
        started = time.monotonic()
        try:
            yield box
        finally:
            wall_s = time.monotonic() - started
            row.events.append(Event(BOX_EVENT, _figures(box, await box.use(), part, needs, wall_s)))


async def _image(tools: RowTools, engine: ContainerEngine, needs: BoxNeeds, source: Path) -> str:
    wanted, rights = needs.source(source), tools.image_rights
    try:
        return await ready_image(engine, wanted, rights, wall_s=needs.build_timeout_s)
    except ImageError as error:
        raise FindingError(Verdict.ERROR, "no_image", f"a box {error}") from error


async def put(box: LivingBox, load: Load, passage: Path) -> None:
    """Put files into a box, by an archive in a folder of ours.

    Raises:
        SandboxError: The engine refuses, as where a link stands in the place of a folder.
    """

    def write() -> Path:
        path = passage / f"{token_hex(4)}.tar"
        with tarfile.open(path, "w", format=tarfile.GNU_FORMAT) as file:
            load.write(file)
            end = file.offset + 2 * tarfile.BLOCKSIZE
        os.truncate(path, end)  # podman fails where it has to read on behind the end
        return path

    archive = await asyncio.to_thread(write)
    try:
        await box.put(archive)
    finally:
        archive.unlink()


class _Entry(tarfile.TarInfo):
    """A file or folder of root."""

    def __init__(self, path: str, kind: bytes, mode: int, size: int = 0) -> None:
        super().__init__(path[1:])
        self.type = kind
        self.mode = mode
        self.size = size


def _add_trees(file: tarfile.TarFile, trees: Sequence[tuple[Path, str]]) -> None:
    for source, place in trees:
        for path in sorted(source.iterdir()):
            file.add(path, f"{place}/{path.name}"[1:], filter=_of_root)


def _of_root(member: tarfile.TarInfo) -> tarfile.TarInfo:
    return member.replace(uid=0, gid=0, uname="", gname="", deep=False)


def bash(text: str, *, wall_s: float, env: tuple[tuple[str, str], ...] = ()) -> Command:
    """Return a command line as a box runs it by its bash, or by its sh where it has none."""
    limits = Limits(wall_s=wall_s, output_bytes=_OUTPUT_BYTES)
    return Command(("/bin/sh", "-c", _BASH, "sh", text), env=env, limits=limits)


async def _be_healthy(box: LivingBox, check: HealthCheck) -> None:
    """Wait until a box is healthy.

    Raises:
        FindingError: It does not become so.
    """
    started, failures = time.monotonic(), 0
    while True:
        ended = await box.run(bash(check.command, wall_s=check.timeout_sec))
        if ended.exit_code == 0:
            return
        is_starting = time.monotonic() - started < check.start_period_sec
        failures += not is_starting
        if failures >= check.retries:
            why = excerpt((ended.stderr + ended.stdout).decode(errors="replace").strip()) or ended.reason
            message = f"environment.healthcheck: the box does not become healthy ({why or 'it says nothing'})"
            raise FindingError(Verdict.ERROR, UNHEALTHY, message)
        await asyncio.sleep(check.start_interval_sec if is_starting else check.interval_sec)


def _figures(box: LivingBox, use: BoxUse, part: str, needs: BoxNeeds, wall_s: float) -> dict[str, JsonValue]:
    return {
        "engine": box.engine,
        "part": part,
        "asked_cpus": needs.asked_cpus,
        "asked_memory_mb": needs.asked_memory_mb,
        "cpus": needs.cpus,
        "memory_mb": needs.memory_mb,
        "peak_mb": None if use.peak_bytes is None else round(use.peak_bytes / _MIB, 1),
        "memory_kills": use.kills,
        "disk_mb": None,
        "wall_s": round(wall_s, 3),
    }
