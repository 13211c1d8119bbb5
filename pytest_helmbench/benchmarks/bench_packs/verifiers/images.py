"""Images of verifiers: built from a pack's folder under a tag that is its content, in bounds, or fetched."""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.format.manifest import content_digest
from pytest_helmbench.benchmarks.bench_packs.verifiers.running import AbsentVerifierError, TellPhase
from pytest_helmbench.core.granted import NOT_ALLOWED, Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.containers import ContainerEngine
from pytest_helmbench.sandbox.local import LocalPrograms
from pytest_helmbench.sandbox.processes import end_launched, last_words
from pytest_helmbench.sandbox.workspace import SandboxError

_REPOSITORY = "localhost/helmbench-verifier"
_HINT = (
    "--helmbench-build=offline builds it from its Dockerfile; --helmbench-verifier=URL names another verifier"
)
_BUILD_S = 1800.0
_BUILD_MEMORY = 2 * 2**30
_TURN_S = 0.1


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

    @property
    def network(self) -> bool:
        """Whether what a Dockerfile runs has a network."""
        return self.build is not None and self.build.value == "online"


def content_tag(folder: Path) -> str:
    """Return the name of the image that a folder makes: the same for the same names, modes and contents."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        name = os.fsencode(path.relative_to(folder).as_posix())
        kind = b"program" if path.lstat().st_mode & 0o111 else b"file"
        digest.update(b"%d:" % len(name) + name + kind + content_digest(path))
    return f"{_REPOSITORY}:{digest.hexdigest()[:32]}"


async def built_image(engine: ContainerEngine, folder: Path, tell: TellPhase, rights: ImageRights) -> str:
    """Return the name of the image of a folder; it is built, where that is allowed, unless it is there.

    Args:
        engine: That keeps it.
        folder: With a Dockerfile.
        tell: Called before a build.
        rights: What the user allows.

    Raises:
        AbsentVerifierError: It cannot be built, or may not be.
    """
    if not (folder / "Dockerfile").is_file():
        raise AbsentVerifierError("failed", f"has no Dockerfile in {folder}")
    try:
        tag = await asyncio.to_thread(content_tag, folder)
        if await engine.has_image(tag):
            return tag
        if rights.build is None:
            raise AbsentVerifierError(
                "missing_dependency",
                "needs an image that was not built, since you have not asked for it",
                _HINT,
            )
        async with _turn(tag.rpartition(":")[2]):
            if not await engine.has_image(tag):  # another process may have built it meanwhile
                tell("building_image", "The image of the verifier is built.")
                await build(engine, folder, tag, rights)
    except SandboxError as error:
        raise AbsentVerifierError("failed", f"cannot run: {error}") from error
    except OSError as error:
        raise AbsentVerifierError("failed", f"cannot be built ({error})") from error
    return tag


async def pulled_image(engine: ContainerEngine, image: str, tell: TellPhase, rights: ImageRights) -> str:
    """Return an image that a manifest names; it is fetched, where that is allowed, unless it is there.

    Raises:
        AbsentVerifierError: It cannot be fetched, or may not be.
    """
    if not await engine.has_image(image):
        if not rights.pull:
            what = f"needs the image {image}, which is not here"
            raise AbsentVerifierError(
                "missing_dependency", what, f"--helmbench-pull, or {engine.name} pull {image}"
            )
        tell("pulling_image", f"The image {image} is fetched.")
        if refusal := await engine.pull(image):
            said = f"{engine.name} could not pull its image {image} ({refusal})"
            raise AbsentVerifierError("failed", f"cannot run: {said}")
    return image


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
        yield
        await asyncio.to_thread(path.unlink, missing_ok=True)
    finally:
        os.close(lock)


async def build(
    engine: ContainerEngine, folder: Path, tag: str, rights: ImageRights, wall_s: float = _BUILD_S
) -> None:
    """Build the image of a folder.

    Args:
        engine: That builds and keeps it.
        folder: With a Dockerfile; no link in it leads out of the pack.
        tag: Its name.
        rights: What the user allows.
        wall_s: Seconds that it may take.

    Raises:
        SandboxError: It cannot be built, or not within the bounds; in words that go behind a name.
    """
    local = await asyncio.to_thread(LocalPrograms)
    network = () if rights.network else ("--network", "none")
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
        hint = (
            "" if rights.network else "; what it runs has no network unless --helmbench-build=online is given"
        )
        raise SandboxError(f"{engine.name} could not build its image ({last_words(ended)}){hint}")
