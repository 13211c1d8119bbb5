"""Detection of the sandbox engine that works here: each is tried, in a fixed order."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.sandbox import engines
from pytest_helmbench.sandbox.box import (
    Box,
    BoxSpec,
    Command,
    Ended,
    Engine,
    EngineKind,
    Streams,
    Unavailable,
)
from pytest_helmbench.sandbox.containers import ContainerEngine
from pytest_helmbench.sandbox.owners import remove_leftover_folders
from pytest_helmbench.sandbox.workspace import Workspace

NO_SANDBOX = "none"
"""The value of `--helmbench-sandbox` that uses nothing."""

AUTO = "auto"
"""The value of `--helmbench-sandbox` that takes what works."""


@cache
def sandbox_engines() -> tuple[EngineKind, ...]:
    """Return all engines that there are, those first that `auto` takes, in its order."""
    found: list[EngineKind] = [
        import_module(f"{engines.__name__}.{module.name}").ENGINE for module in iter_modules(engines.__path__)
    ]
    return tuple(sorted(found, key=lambda kind: (kind.auto_place is None, kind.auto_place or 0, kind.name)))


def image_engines() -> tuple[EngineKind, ...]:
    """Return the engines that run container images, in the order of `auto`."""
    return tuple(kind for kind in sandbox_engines() if kind.runs_images and not kind.is_variant)


async def find_engine(wanted: Granted[str], *, pull: Granted[bool]) -> Engine | Unavailable:
    """Return what runs foreign code in this session, or why nothing does; what killed sessions left is removed.

    Args:
        wanted: Name of an engine; `auto` takes one for rows with an image and one for rows without, and where only one
            of them works, that one.
        pull: Whether images may be fetched.
    """
    name = wanted.value
    if sys.platform == "win32":
        return Unavailable("sandboxes need Linux or macOS")
    if name == NO_SANDBOX:
        return Unavailable(f"--helmbench-sandbox={name}: code of models runs in a sandbox, or not at all")
    await asyncio.to_thread(remove_leftover_folders)
    if name != AUTO:
        return await next(kind for kind in sandbox_engines() if kind.name == name).find(pull)
    taken = [kind for kind in sandbox_engines() if kind.auto_place is not None]
    containers, why_no_containers = await first_engine((one for one in taken if one.runs_images), pull)
    local, why_no_local = await first_engine((one for one in taken if not one.runs_images), pull)
    if containers is not None and local is not None:
        return _EitherEngine(containers, local)
    return containers or local or Unavailable("no sandbox: " + "; ".join((*why_no_containers, *why_no_local)))


async def first_engine(
    kinds: Iterable[EngineKind], pull: Granted[bool]
) -> tuple[Engine | None, tuple[str, ...]]:
    """Return the first engine that works, and why those before it do not."""
    reasons: list[str] = []
    for kind in kinds:
        found = await kind.find(pull)
        if isinstance(found, Engine):
            return found, tuple(reasons)
        if not kind.is_variant:
            reasons.append(found.reason)
    return None, tuple(reasons)


class _EitherEngine(Engine):
    """Containers for boxes with an image, programs of this machine for the others."""

    def __init__(self, containers: Engine, local: Engine) -> None:
        super().__init__(containers.kind)
        self._containers = containers
        self._local = local

    @property
    def name(self) -> str:
        return f"{self._containers.name}+{self._local.name}"

    @property
    def containers(self) -> ContainerEngine | None:
        return self._containers.containers

    async def obstacle(self, image: str | None) -> Unavailable | None:
        return await self._one(image).obstacle(image)

    def new_workspace(self, image: str | None = None) -> Workspace:
        return self._one(image).new_workspace(image)

    async def open(self, spec: BoxSpec) -> Box:
        return await self._one(spec.image).open(spec)

    async def execute(self, spec: BoxSpec, workspace: Workspace, command: Command, streams: Streams) -> Ended:
        return await self._one(spec.image).execute(spec, workspace, command, streams)

    def python(self, image: str | None, /) -> str:
        return self._one(image).python(image)

    async def close(self) -> None:
        await self._containers.close()
        await self._local.close()

    def _one(self, image: str | None) -> Engine:
        return self._local if image is None else self._containers
