"""The repository of a task at its base commit, from its image, a clone or a bundle."""

from __future__ import annotations

import asyncio
import posixpath
import re
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PackFaultError, PatchPhase, PatchTests
from pytest_helmbench.benchmarks.packs.families.repo_patch.git import GIT_LIMITS, Git, hardened, said
from pytest_helmbench.benchmarks.packs.task import ConfigError, PackTask, PlannedFile
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import BoxSpec, Engine
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_WORKDIR = "/workspace"
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/etc", "/proc", "/sys", "/dev")
_BUNDLE = ".git/helmbench.bundle"
_COPIED = ("HEAD", "packed-refs", "shallow", "refs", "objects")
_UNREADABLE = 65
_WHERE = "environment.image and environment.workdir say where it is, or environment.repository names a bundle"
_LARGEST_FILE = 1024 * 1024
_HEX = re.compile(r"[0-9a-fA-F]{4,64}")
_REVISION = re.compile(r"(?![-/])(?!.*(?:\.\.|//|@\{|\.lock$))[\w./+@-]{1,200}")

# Says where the repository is and what the base commit is, and checks that out where it is asked to.
_FIND = f"""
bundle=$GIT_WORK_TREE/{_BUNDLE}
if [ -f "$bundle" ]; then
  git bundle unbundle "$bundle" > "$bundle.refs" || exit {_UNREADABLE}
  while read -r commit name; do
    case $name in
      refs/*) git update-ref "$name" "$commit";;
      HEAD) git update-ref --no-deref HEAD "$commit";;
    esac
  done < "$bundle.refs"
  rm -f "$bundle" "$bundle.refs"
fi
git rev-parse --verify --quiet "HEAD^{{commit}}" || echo none
base=$(git rev-parse --verify --quiet "$1^{{commit}}") || base=none
echo "$base"
if [ "$base" != none ] && [ "$2" = check-out ]; then
  git update-ref --no-deref HEAD "$base"
  git read-tree --reset -u HEAD
fi
"""


@dataclass(frozen=True, slots=True)
class Checkout:
    """A repository at its base commit.

    Args:
        spec: Boxes over it are opened with this.
        workspace: The working tree, with git's own folder in it.
        commit: The base commit in full.
        modules: Names of what stands at the top of the repository, or of its `src`: its own, whatever else has them.
    """

    spec: BoxSpec
    workspace: Workspace
    commit: str
    modules: tuple[str, ...] = ()

    @contextmanager
    def quiet(self) -> Iterator[None]:
        """Inside, git does nothing but what it is told."""
        with hardened(self.workspace, ".git"):
            yield


@asynccontextmanager
async def opened_checkout(
    task: PackTask, engine: Engine, assets: Sequence[PlannedFile] = ()
) -> AsyncIterator[Checkout]:
    """Lay out a fresh copy of a task's repository, and remove it at the end.

    Args:
        task: Of repo_patch.
        engine: What runs git.
        assets: Public files of the row, laid over the working tree.

    Raises:
        PackFaultError: There is no repository, or it is not at the base commit.
        SandboxError: The sandbox failed.
    """
    environment = task.environment
    base = base_commit_of(task)
    workdir = workdir_of(task)
    workspace = engine.new_workspace(environment.image)
    spec = BoxSpec(
        image=environment.image, workdir=workdir, workspace=workspace, limits=GIT_LIMITS, label=task.id
    )
    try:
        if environment.repository is not None:
            commit = await _from_pack(spec, workspace, engine, environment.repository, base)
        else:
            commit = await _from_image(spec, workspace, engine, base)
        for item in assets:
            await asyncio.to_thread(_lay_out, workspace, item)
        yield Checkout(spec, workspace, commit, await asyncio.to_thread(_modules, workspace))
    finally:
        await asyncio.to_thread(workspace.close)


def base_commit_of(task: PackTask) -> str:
    """Return the commit that a task starts from, as the row names it."""
    return str(task.input_value("base_commit", "")).strip()


def patch_tests_of(task: PackTask) -> PatchTests:
    """Return what a task's patch is held to.

    Raises:
        ConfigError: The task is of another family, or has no tests.
    """
    if not isinstance(task.check, PatchTests):
        raise ConfigError(f"{task.id}: eval.tests: there is no command that judges a patch")
    return task.check


def workdir_of(task: PackTask) -> str:
    """Return where commands find the repository: what the environment says, else where the tests run.

    Raises:
        PackFaultError: It is no folder of its own.
    """
    tests = patch_tests_of(task).command.workdir or ""
    stated = task.environment.workdir or (tests if tests.startswith("/") else _WORKDIR)
    path = posixpath.normpath(posixpath.join("/", stated))
    path = "/" + path.lstrip("/")
    if path == "/" or any(path == name or path.startswith(f"{name}/") for name in _SYSTEM):
        message = (
            f"the repository cannot be at {excerpt(stated)!r}: give environment.workdir a folder of its own"
        )
        raise PackFaultError(PatchPhase.BASE_COMMIT, "no_repository", message)
    return path


async def _from_image(spec: BoxSpec, workspace: Workspace, engine: Engine, base: str) -> str:
    """Copy the repository out of the image; return the commit that it is at."""
    image = spec.image
    if image is None:
        raise _missing(base, "the row names neither an image nor a repository")
    obstacle = await engine.obstacle(image)
    if obstacle is not None:
        raise SandboxError(obstacle.reason)
    try:
        await (await engine.open(replace(spec, fill_from_image=True))).close()
    except SandboxError as error:
        # What follows in brackets names a container that is different every time.
        raise _missing(base, excerpt(str(error).partition(" (")[0])) from error
    if workspace.get(".git/HEAD", limit_bytes=_LARGEST_FILE) is None:
        raise _missing(base, f"{spec.workdir} of {image} is no git repository")
    head, commit = await _found(spec, workspace, engine, base, check_out=False)
    if commit is None or commit != head:
        raise _wrong(base, f"but the repository of {image} is at {_shown(head or 'no commit')}")
    return head


async def _from_pack(spec: BoxSpec, workspace: Workspace, engine: Engine, source: Path, base: str) -> str:
    """Copy a clone or a bundle, and check the base commit out; return it."""
    await asyncio.to_thread(_put_repository, workspace, source)
    head, commit = await _found(spec, workspace, engine, base, check_out=True)
    if commit is None:
        raise _wrong(base, f"which {source.name} does not hold: it is at {_shown(head or 'no commit')}")
    return commit


async def _found(
    spec: BoxSpec, workspace: Workspace, engine: Engine, base: str, *, check_out: bool
) -> tuple[str | None, str | None]:
    """Return the commit that the repository was at, and the base commit; None for what is not there."""
    revision = base if _HEX.fullmatch(base) or _REVISION.fullmatch(base) else ""
    with hardened(workspace, ".git"):
        async with await engine.open(spec) as box:
            ended = await Git(box).run(_FIND, revision, "check-out" if check_out else "")
    if ended.exit_code == 127:
        raise _missing(base, f"there is no git in {spec.image or 'the sandbox'}")
    if ended.exit_code == _UNREADABLE:
        raise _missing(base, f"the bundle cannot be read: {said(ended)}")
    if ended.exit_code != 0:
        raise _missing(base, f"the repository cannot be read: {said(ended)}")
    head, commit = (None if line == "none" else line for line in ended.stdout.decode().split())
    return head, commit


def _put_repository(workspace: Workspace, source: Path) -> None:
    """Copy what git needs of a clone, a bare repository or a bundle, and nothing that could be run."""
    for name in ("refs/heads", "objects/info", "objects/pack", "info"):
        workspace.put_folder(f".git/{name}")
    workspace.put(".git/HEAD", b"ref: refs/heads/main\n")
    if source.is_file():
        workspace.put_tree(source, _BUNDLE)
        return
    git_dir = source / ".git" if (source / ".git").is_dir() else source
    config = git_dir / "config"
    if config.is_file() and not config.is_symlink():
        workspace.put_tree(config, ".git/config")
    for name in _COPIED:
        if (git_dir / name).exists():
            workspace.put_tree(git_dir / name, f".git/{name}")
    for name in ("alternates", "http-alternates"):
        workspace.remove(f".git/objects/info/{name}")


def _modules(workspace: Workspace) -> tuple[str, ...]:
    names = (entry.name.removeprefix("src/") for entry in workspace.entries())
    return tuple(sorted({name.removesuffix(".py") for name in names if "/" not in name}))


def _lay_out(workspace: Workspace, item: PlannedFile) -> None:
    if item.is_folder:
        workspace.put_folder(item.target, mode=item.mode | 0o700)
    else:
        workspace.put_tree(item.source, item.target)


def _missing(base: str, why: str) -> PackFaultError:
    message = f"base_commit {_shown(base)} cannot be found: {why}\n  hint: {_WHERE}"
    return PackFaultError(PatchPhase.BASE_COMMIT, "no_repository", message)


def _wrong(base: str, what: str) -> PackFaultError:
    message = f"base_commit is {_shown(base)}, {what}\n  hint: correct input.base_commit, or the repository"
    return PackFaultError(PatchPhase.BASE_COMMIT, "wrong_base_commit", message)


def _shown(base: str) -> str:
    return repr(excerpt(base))
