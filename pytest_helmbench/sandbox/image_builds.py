"""Builds of container images from somebody else's Dockerfile: in bounds, without a network, and gone when we are."""

from __future__ import annotations

import asyncio
import os
import shutil
from asyncio.subprocess import Process
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.users_word import NOT_ALLOWED, UsersWord
from pytest_helmbench.sandbox.containers import ContainerEngine, last_words
from pytest_helmbench.sandbox.dockerfiles import refuse_foreign_mounts, refuse_links_out, refuse_other_ways
from pytest_helmbench.sandbox.local import LocalPrograms
from pytest_helmbench.sandbox.processes import kill_one
from pytest_helmbench.sandbox.workspace import SandboxError

__all__ = ["BuildBounds", "ImageRights", "build"]

_MIB = 1024 * 1024
_LOOK_S = 0.5
_GRACE_S = 10.0


@dataclass(frozen=True, slots=True)
class ImageRights:
    """What the user allows; a manifest says nothing about it.

    Args:
        build: Images may be built from what packs bring (`--helmbench-build`).
        pull: Images may be fetched (`--helmbench-pull`), those that a Dockerfile starts from too.
        network: What a Dockerfile runs may reach the network (`--helmbench-build-network`).
    """

    build: UsersWord[bool] = NOT_ALLOWED
    pull: UsersWord[bool] = NOT_ALLOWED
    network: UsersWord[bool] = NOT_ALLOWED


@dataclass(frozen=True, slots=True)
class BuildBounds:
    """What a build may use.

    Args:
        wall_s: Seconds.
        memory_bytes: Of all that it runs together.
        disk_bytes: What it takes of the disk where images are, and the size of the image.
    """

    wall_s: float = 1800.0
    memory_bytes: int = 2048 * _MIB
    disk_bytes: int = 8192 * _MIB


async def build(
    engine: ContainerEngine, folder: Path, tag: str, rights: ImageRights, bounds: BuildBounds
) -> None:
    """Build the image of a folder.

    Args:
        engine: That builds and keeps it.
        folder: With a Dockerfile.
        tag: Its name.
        rights: What the user allows.
        bounds: What it may use.

    Raises:
        SandboxError: It cannot be built, or not within the bounds; in words that go behind a name.
    """
    await asyncio.to_thread(refuse_links_out, folder)
    refuse_foreign_mounts(folder / "Dockerfile")
    if not rights.network:
        refuse_other_ways(folder / "Dockerfile")
    local = await asyncio.to_thread(LocalPrograms)
    try:
        ended = await engine.reaped(
            *("build", *_flags(engine, rights, bounds), "--tag", tag, *_context(folder)),
            wall_s=bounds.wall_s,
            launcher=local.launcher,
            kill=_end,
            watch=_disk_watch(await engine.store(), bounds),
        )
    finally:
        await asyncio.to_thread(local.close)
    if ended.exit_code != 0:
        hint = "" if rights.network else "; it has no network unless --helmbench-build-network is given"
        raise SandboxError(f"{engine.name} could not build its image ({last_words(ended)}){hint}")
    size = (await engine.tool("image", "inspect", "--format", "{{.Size}}", tag)).stdout.strip()
    if size.isdigit() and int(size) > bounds.disk_bytes:
        await engine.tool("rmi", "-f", tag)
        raise SandboxError(f"its image has more than {bounds.disk_bytes} bytes")


def _context(folder: Path) -> tuple[str, ...]:
    """Return the folder, and its Dockerfile by name: podman would take a Containerfile beside it first."""
    return "--file", str(folder / "Dockerfile"), str(folder)


def _flags(engine: ContainerEngine, rights: ImageRights, bounds: BuildBounds) -> Iterator[str]:
    yield from engine.program.private_build
    yield from engine.program.build_here if not rights.pull else ()
    if not rights.network:
        yield from ("--network", "none")
    yield from ("--memory", str(bounds.memory_bytes), "--memory-swap", str(bounds.memory_bytes))
    yield from ("--ulimit", "core=0:0", "--ulimit", f"fsize={bounds.disk_bytes}:{bounds.disk_bytes}")


def _disk_watch(store: Path, bounds: BuildBounds) -> _Watch | None:
    """Return what looks at the disk where the engine keeps images; None where that is on another machine."""
    return _Watch(store, bounds.disk_bytes) if store.is_absolute() and store.is_dir() else None


class _Watch:
    """Looks at what is free on a disk while somebody writes to it.

    Args:
        store: A folder on it.
        most: Bytes that may be taken.
    """

    def __init__(self, store: Path, most: int) -> None:
        self._store = store
        self._most = most
        self._free = shutil.disk_usage(store).free

    async def __call__(self, _pid: int, /) -> str:
        """Return, once it happens, that too much was taken."""
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._free - shutil.disk_usage(self._store).free > self._most:
                return f"more than {self._most} bytes of the disk"


async def _end(process: Process) -> None:
    """Let the launcher kill the command line and all that it has started: its containers would run on."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            process.terminate()
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _GRACE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, 9)
    await kill_one(process)
