"""Images of verifiers: built from a folder under a tag that is its content, by one process at a time."""

from __future__ import annotations

import asyncio
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.verifiers.running import AbsentVerifierError
from pytest_helmbench.core.users_word import UsersWord
from pytest_helmbench.sandbox.box import Ended
from pytest_helmbench.sandbox.containers import ContainerEngine, last_words
from pytest_helmbench.sandbox.image_builds import BuildBounds, ImageRights, build
from pytest_helmbench.sandbox.owners import Owner, new_folder, this_process
from pytest_helmbench.sandbox.workspace import SandboxError, remove_tree

__all__ = ["NO_IMAGES", "build_image", "content_tag", "pull_image"]

_REPOSITORY = "localhost/helmbench-verifier"
_HINT = (
    "--helmbench-build builds it from the pack's Dockerfile; --helmbench-verifier=URL names another verifier"
)
_BUILD_S = 1800.0
_TURN_S = 0.1
_BLOCK = 2**20


def content_tag(folder: Path) -> str:
    """Return the name of the image that a folder makes: the same for the same names, modes and contents."""
    digest = sha256()
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        for part in (name.encode("utf-8", "surrogateescape"), *_content(path)):
            digest.update(len(part).to_bytes(8, "big"))
            digest.update(part)
    return f"{_REPOSITORY}:{digest.hexdigest()[:32]}"


NO_IMAGES = ImageRights()


async def build_image(
    engine: ContainerEngine, folder: Path, tell: Callable[[], None], *, rights: ImageRights
) -> str:
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
    except OSError as error:
        raise AbsentVerifierError("failed", f"cannot be built ({error})") from error
    if await _is_here(engine, tag):
        return tag
    if not rights.build:
        raise AbsentVerifierError("missing_dependency", "needs an image that nobody asked to build", _HINT)
    turn = _Turn(tag.rpartition(":")[2])
    try:
        await turn.come()
        if not await _is_here(engine, tag):  # another process may have built it meanwhile
            tell()
            await build(engine, folder, tag, rights, BuildBounds(wall_s=_BUILD_S))
    except SandboxError as error:
        raise AbsentVerifierError("failed", f"cannot run: {error}") from error
    except OSError as error:
        raise AbsentVerifierError("failed", f"cannot be built ({error})") from error
    finally:
        turn.end()
    return tag


async def pull_image(
    engine: ContainerEngine, image: str, tell: Callable[[], None], *, allowed: UsersWord[bool]
) -> str:
    """Return an image that a manifest names; it is fetched, where that is allowed, unless it is there.

    Raises:
        AbsentVerifierError: It cannot be fetched, or may not be.
    """
    if not await _is_here(engine, image):
        if not allowed:
            what = f"needs the image {image}, which is not here"
            raise AbsentVerifierError(
                "missing_dependency", what, f"--helmbench-pull, or {engine.name} pull {image}"
            )
        tell()
        pulled = await engine.tool("pull", image, wall_s=_BUILD_S)
        _want(pulled, f"{engine.name} could not pull its image {image}")
    return image


def _want(ended: Ended, otherwise: str) -> None:
    if ended.exit_code != 0:
        raise AbsentVerifierError("failed", f"cannot run: {otherwise} ({last_words(ended)})")


async def _is_here(engine: ContainerEngine, image: str) -> bool:
    return (await engine.tool("image", "inspect", "--format", "{{.Id}}", image)).exit_code == 0


def _content(path: Path) -> Iterator[bytes]:
    """Yield what an image may take from a file: what it is, whether it can be run, and what is in it."""
    if path.is_symlink():
        yield b"link"
        yield os.fsencode(path.readlink())
    elif path.is_file():
        yield b"program" if path.stat().st_mode & 0o111 else b"file"
        content = sha256()
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                content.update(block)
        yield content.digest()
    else:
        yield b"folder"


class _Turn:
    """The turn of one process to build an image; the others of its user wait, unless it was killed.

    Args:
        name: Of the image.
    """

    def __init__(self, name: str) -> None:
        self._lock = Path(tempfile.gettempdir(), f"helmbench-build-{os.getuid()}-{name}")
        self._folder = new_folder()
        self._own = self._folder / "owner"
        self._held = False

    async def come(self) -> None:
        """Wait for it, for so long as a build may take.

        Raises:
            OSError: The disk refuses.
        """
        # A link is made in one step: what holds the turn is in the file as soon as its name is there.
        self._own.write_text(this_process().mark, encoding="ascii")
        for _ in range(round(_BUILD_S / _TURN_S)):
            if self._take():
                break
            await asyncio.sleep(_TURN_S)

    def end(self) -> None:
        """Give it to the next."""
        remove_tree(self._folder)
        if self._held:
            self._lock.unlink(missing_ok=True)

    def _take(self) -> bool:
        with suppress(FileExistsError):
            self._lock.hardlink_to(self._own)
            self._held = True
            return True
        with suppress(OSError):
            holder = Owner.read(self._lock.read_text(encoding="ascii", errors="replace"))
            if holder is None or holder.is_gone():
                self._lock.unlink()
        return False
