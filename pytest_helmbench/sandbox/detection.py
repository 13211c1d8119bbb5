"""Which sandbox there is: found by trying, in a fixed order."""

from __future__ import annotations

import asyncio
import sys

from pytest_helmbench.sandbox.box import (
    Box,
    BoxSpec,
    Command,
    Ended,
    Engine,
    SandboxMode,
    Streams,
    Unavailable,
)
from pytest_helmbench.sandbox.bubblewrap import find_bubblewrap
from pytest_helmbench.sandbox.containers import find_containers
from pytest_helmbench.sandbox.owners import remove_leftover_folders
from pytest_helmbench.sandbox.unprotected import UnprotectedEngine
from pytest_helmbench.sandbox.workspace import Workspace

__all__ = ["find_engine"]


async def find_engine(mode: SandboxMode, *, pull: bool) -> Engine | Unavailable:
    """Return what runs foreign code in this session, or why nothing does; what killed sessions left is removed.

    Args:
        mode: `auto` takes docker, else podman, for rows with an image, and bubblewrap for rows without; where only
            one kind works, it takes that.
        pull: Whether images may be fetched.
    """
    if sys.platform == "win32":
        return Unavailable("sandboxes need Linux or macOS")
    await asyncio.to_thread(remove_leftover_folders)
    match mode:
        case SandboxMode.NONE:
            return UnprotectedEngine()
        case SandboxMode.BWRAP:
            return await find_bubblewrap()
        case SandboxMode.DOCKER | SandboxMode.PODMAN:
            return await find_containers(mode.value, pull=pull)
    containers = await find_containers("docker", pull=pull)
    reasons = []
    if isinstance(containers, Unavailable):
        reasons.append(containers.reason)
        containers = await find_containers("podman", pull=pull)
    local = await find_bubblewrap()
    if isinstance(containers, Unavailable) and isinstance(local, Unavailable):
        return Unavailable("no sandbox: " + "; ".join((*reasons, containers.reason, local.reason)))
    if isinstance(containers, Unavailable):
        return local
    return containers if isinstance(local, Unavailable) else _EitherEngine(containers, local)


class _EitherEngine(Engine):
    """Containers for boxes with an image, programs of this machine for the others."""

    runs_images = True

    def __init__(self, containers: Engine, local: Engine) -> None:
        super().__init__()
        self.name = f"{containers.name}+{local.name}"
        self._containers = containers
        self._local = local

    async def obstacle(self, image: str | None) -> Unavailable | None:
        return await self._one(image).obstacle(image)

    def new_workspace(self, image: str | None = None) -> Workspace:
        return self._one(image).new_workspace(image)

    async def open(self, spec: BoxSpec) -> Box:
        return await self._one(spec.image).open(spec)

    async def execute(self, spec: BoxSpec, workspace: Workspace, command: Command, streams: Streams) -> Ended:
        return await self._one(spec.image).execute(spec, workspace, command, streams)

    def python(self, image: str | None) -> str:
        return self._one(image).python(image)

    async def close(self) -> None:
        await self._containers.close()
        await self._local.close()

    def _one(self, image: str | None) -> Engine:
        return self._local if image is None else self._containers
