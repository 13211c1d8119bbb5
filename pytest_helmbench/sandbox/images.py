"""Images that benchmarks bring or name: built from a folder under a tag that is its content, in bounds, or fetched."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.problem import HintedError
from pytest_helmbench.core.whole_file import content_digest
from pytest_helmbench.sandbox.containers import ContainerEngine
from pytest_helmbench.sandbox.local import LocalPrograms
from pytest_helmbench.sandbox.processes import end_launched, last_words
from pytest_helmbench.sandbox.workspace import SandboxError

MISSING, FAILED = "missing_dependency", "failed"
_REPOSITORY = "localhost/helmbench"
_BUILDS = "--helmbench-build=offline builds it from its Dockerfile"
_BUILD_S = 1800.0
_BUILD_MEMORY = 2 * 2**30
_TURN_S = 0.1


class ImageError(HintedError):
    """An image is missing: `missing_dependency` where the user has not allowed what it takes, else `failed`."""


@dataclass(frozen=True, slots=True)
class ImageRights:
    """The rights that the user grants; a manifest cannot.

    Args:
        build: Images may be built from what packs bring, and what their Dockerfiles run has a network when `online`
            (`--helmbench-build`).
        pull: Images may be fetched (`--helmbench-pull`), those that a Dockerfile starts from too.
    """

    build: Granted[str] | None = None
    pull: Granted[bool] = NOT_ALLOWED


def content_tag(folder: Path) -> str:
    """Return the name of the image that a folder makes: the same for the same names, modes and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = os.fsencode(path.relative_to(folder).as_posix())
        kind = b"program" if path.lstat().st_mode & 0o111 else b"file"
        digest.update(b"%d:" % len(name) + name + kind + content_digest(path))
    return f"{_REPOSITORY}:{digest.hexdigest()[:32]}"


async def image_obstacle(
    engine: ContainerEngine, source: str | Path, rights: ImageRights
) -> ImageError | None:
    """Return the right without which an image cannot be had; None where it is here, or may be. Nothing is made of it.

    Args:
        source: Its name, or a folder with a Dockerfile.
    """
    lack = _lack(engine, source, rights)
    return None if lack is None or await engine.has_image(await _name_of(source)) else lack


def _lack(engine: ContainerEngine, source: str | Path, rights: ImageRights) -> ImageError | None:
    """Return what is said where an image is not there and the user does not allow what it takes."""
    if isinstance(source, str):
        reason, hint = f"needs the image {source}, which is not here", f"or {engine.name} pull {source}"
        return None if rights.pull else ImageError(MISSING, reason, f"--helmbench-pull, {hint}")
    reason = "needs an image that was not built, since you have not asked for it"
    return None if rights.build else ImageError(MISSING, reason, _BUILDS)


async def _name_of(source: str | Path) -> str:
    return source if isinstance(source, str) else await asyncio.to_thread(content_tag, source)


async def ready_image(
    engine: ContainerEngine,
    source: str | Path,
    rights: ImageRights,
    *,
    wall_s: float = _BUILD_S,
    tell: Callable[[str, str], None] = lambda _phase, _sentence: None,
) -> str:
    """Return the name of an image; it is fetched or built, where that is allowed, unless it is there.

    Args:
        source: Its name, or a folder with a Dockerfile.
        wall_s: Seconds that building may take.
        tell: Called before it is fetched (`pulling_image`) or built (`building_image`), with a sentence.

    Raises:
        ImageError: It cannot be had, or may not be.
    """
    if isinstance(source, Path) and not (source / "Dockerfile").is_file():
        raise ImageError(FAILED, f"has no Dockerfile in {source}")
    try:
        name = await _name_of(source)
        if await engine.has_image(name):
            return name
        if lack := _lack(engine, source, rights):
            raise lack
        if isinstance(source, str):
            tell("pulling_image", f"The image {name} is fetched.")
            if refusal := await engine.pull(name):
                raise SandboxError(f"{engine.name} could not pull its image {name} ({refusal})")
            return name
        async with _turn(name.rpartition(":")[2]):
            if not await engine.has_image(name):  # another process may have built it meanwhile
                tell("building_image", "The image is built.")
                await build(engine, source, name, rights, wall_s)
    except SandboxError as error:
        raise ImageError(FAILED, f"cannot run: {error}") from error
    except OSError as error:
        raise ImageError(FAILED, f"cannot be built ({error})") from error
    return name


@asynccontextmanager
async def _turn(name: str) -> AsyncIterator[None]:
    """Hold the turn to build an image; other processes of the user wait, and a killed one lets go of it."""
    import fcntl  # not on Windows, where nothing is built

    path = Path(tempfile.gettempdir(), f"helmbench-build-{os.getuid()}-{name}")
    lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        while True:
            with suppress(BlockingIOError):
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            await asyncio.sleep(_TURN_S)
        try:
            yield
        finally:
            await asyncio.to_thread(path.unlink, missing_ok=True)
    finally:
        os.close(lock)


async def build(
    engine: ContainerEngine, folder: Path, tag: str, rights: ImageRights, wall_s: float = _BUILD_S
) -> None:
    """Build the image of a folder.

    Args:
        folder: With a Dockerfile; no link in it leads out of the pack.
        wall_s: Seconds that it may take.

    Raises:
        SandboxError: It cannot be built, or not within the bounds; in words that go behind a name.
    """
    local = await asyncio.to_thread(LocalPrograms)
    is_online = rights.build is not None and rights.build.value == "online"
    network = () if is_online else ("--network", "none")
    try:
        ended = await engine.reaped(
            *("build", *engine.program.private_build, *(() if rights.pull else engine.program.build_here)),
            *(*network, "--memory", str(_BUILD_MEMORY), "--memory-swap", str(_BUILD_MEMORY)),
            *("--ulimit", "core=0:0", "--tag", tag),
            # podman would take a Containerfile beside the Dockerfile first
            *("--file", str(folder / "Dockerfile"), str(folder)),
            wall_s=wall_s,
            launcher=local.launcher,
            kill=end_launched,
        )
    finally:
        await asyncio.to_thread(local.close)
    if ended.exit_code != 0:
        hint = "" if is_online else "; what it runs has no network unless --helmbench-build=online is given"
        if not rights.pull and b"image not known" in ended.stderr:
            hint = "; --helmbench-pull fetches the images that it starts from"
        raise SandboxError(f"{engine.name} could not build its image ({last_words(ended)}){hint}")
