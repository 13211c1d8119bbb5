"""The repository of a task at its base commit, and git over it: deaf to everything but its arguments."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentRow, FindingError
from pytest_helmbench.benchmarks.packs.evidence.witnesses import CHECK_LIMITS, lay_out, system_free
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.repo_patch.check import PatchPhase, PatchTests
from pytest_helmbench.benchmarks.packs.task import PackTask
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import Box, BoxSpec, Command, Ended, Engine
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_MIB = 1024 * 1024
GIT_LIMITS = replace(CHECK_LIMITS, wall_s=300.0, pids=64, output_bytes=32 * _MIB, disk_bytes=8192 * _MIB)
"""Bounds of one git command: large repositories fit."""

# The system's own programs first: the PATH of an image may lead into the working tree.
_FIND_GIT = """\
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
command -v git >/dev/null || exit 127
"""
_NAME, _MAIL, _DATE = "helmbench", "helmbench@localhost", "2000-01-01T00:00:00Z"
_ENVIRONMENT = (
    *((name, "/nonexistent") for name in ("HOME", "XDG_CONFIG_HOME")),
    *((name, "/dev/null") for name in ("GIT_CONFIG_SYSTEM", "GIT_CONFIG_GLOBAL")),
    *((name, "1") for name in ("GIT_CONFIG_NOSYSTEM", "GIT_ATTR_NOSYSTEM", "GIT_NO_REPLACE_OBJECTS")),
    *((name, "0") for name in ("GIT_CONFIG_COUNT", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT")),
    *((name, "") for name in ("GIT_CONFIG_PARAMETERS", "GIT_ALLOW_PROTOCOL")),
    *((name, "false") for name in ("GIT_EDITOR", "GIT_ASKPASS")),
    *(("GIT_NO_LAZY_FETCH", "1"), ("GIT_PAGER", "cat"), ("LC_ALL", "C")),
    *(("GIT_AUTHOR_NAME", _NAME), ("GIT_AUTHOR_EMAIL", _MAIL), ("GIT_AUTHOR_DATE", _DATE)),
    *(("GIT_COMMITTER_NAME", _NAME), ("GIT_COMMITTER_EMAIL", _MAIL), ("GIT_COMMITTER_DATE", _DATE)),
)
_SHA1 = "[core]\n\trepositoryformatversion = 0\n"
_SHA256 = "[extensions]\n\tobjectFormat = sha256\n[core]\n\trepositoryformatversion = 1\n"
_PLAIN = """\
[core]
\tbare = false
\tfilemode = true
\tsymlinks = true
"""
_DEAF = """\
\thooksPath = /dev/null
\tfsmonitor = false
\tattributesFile = /dev/null
\texcludesFile = /dev/null
\tautocrlf = false
\teol = lf
\tsafecrlf = false
\tquotePath = false
\tuntrackedCache = false
\tlogAllRefUpdates = false
\tlooseCompression = 1
[gc]
\tauto = 0
[maintenance]
\tauto = false
[submodule]
\trecurse = false
[diff]
\trenames = false
[apply]
\twhitespace = nowarn
"""
_IS_SHA256 = re.compile(rb"^\s*objectformat\s*=\s*\"?sha256", re.IGNORECASE | re.MULTILINE)
# Stands above every .gitattributes of the repository: files are the bytes that they are.
_ATTRIBUTES = b"* -text !eol -ident !filter !diff !merge !working-tree-encoding !whitespace\n"
_LAST_LINES = 3


@contextmanager
def harden(workspace: Workspace) -> Iterator[None]:
    """Make a repository deaf: its own configuration, attributes and hooks are gone, for good.

    Inside, the configuration lets git do nothing but run its arguments; at the end it is a plain one. So nothing of a
    foreign repository runs when git is called in it.
    """
    own = workspace.get(".git/config", limit_bytes=_MIB) or b""
    form = _SHA256 if _IS_SHA256.search(own) else _SHA1
    for name in ("config.worktree", "index.lock", "info/grafts", "hooks"):
        workspace.remove(f".git/{name}")
    attributes = ".git/info/attributes"
    workspace.put(".git/config", f"{form}{_PLAIN}{_DEAF}".encode())
    workspace.put(attributes, _ATTRIBUTES)
    try:
        yield
    finally:
        workspace.put(".git/config", f"{form}{_PLAIN}".encode())
        workspace.remove(attributes)


class Git:
    """Git over the files of a box, in a repository whose configuration is ours (`harden`).

    Args:
        box: Whose workspace is the working tree.
        git_dir: Git's own folder, absolute inside the box; None for the usual one.
    """

    def __init__(self, box: Box, git_dir: str | None = None) -> None:
        self._box = box
        place = git_dir or f"{box.workdir}/.git"
        self._env = (*_ENVIRONMENT, ("GIT_DIR", place), ("GIT_WORK_TREE", box.workdir))

    async def run(self, script: str, *arguments: str) -> Ended:
        """Run a shell script of git commands at the top of the working tree, in one sandbox.

        It ends with the first command that fails; 127 when there is no git.

        Raises:
            SandboxError: The sandbox could not be made.
        """
        argv = ("/bin/sh", "-ec", f"{_FIND_GIT}{script}", "sh", *arguments)
        return await self._box.run(Command(argv, None, self._env, limits=GIT_LIMITS))


@asynccontextmanager
async def open_git(engine: Engine, spec: BoxSpec, git_dir: str | None = None) -> AsyncIterator[Git]:
    """Open git over the workspace of a box, whose repository is deaf meanwhile."""
    async with await engine.open(spec) as box:
        with harden(box.workspace):
            yield Git(box, git_dir)


def ending_of(ended: Ended) -> str:
    """Return how a command ended, for people: why we stopped it, else its last words, else its exit code."""
    if ended.reason:
        return ended.reason
    lines = ended.stderr.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
    return excerpt(" / ".join(line.strip() for line in lines)) or f"exit code {ended.exit_code}"


_WORKDIR = "/workspace"
_BUNDLE = ".git/helmbench.bundle"
_COPIED = ("HEAD", "packed-refs", "shallow", "refs", "objects")
_UNREADABLE = 65
_WHERE = "environment.image and environment.workdir say where it is, or environment.repository names a bundle"
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
        modules: Names of what stands at the top of the repository, or of its `src`: its own, whatever else has them.
    """

    spec: BoxSpec
    workspace: Workspace
    modules: tuple[str, ...] = ()


@asynccontextmanager
async def open_checkout(row: AgentRow) -> AsyncIterator[Checkout]:
    """Lay out a fresh copy of a row's repository, and remove it at the end.

    Raises:
        FindingError: The repository is missing, or is not at the base commit.
        SandboxError: The sandbox failed.
    """
    task, engine = row.task, row.engine
    image, workdir = task.environment.image, _workdir_of(task)
    workspace = engine.new_workspace(image)
    spec = BoxSpec(image=image, workdir=workdir, workspace=workspace, limits=GIT_LIMITS, label=task.id)
    try:
        await _put_base(row, spec, workspace)
        await asyncio.to_thread(lay_out, workspace, row.assets)
        yield Checkout(spec, workspace, await asyncio.to_thread(_modules, workspace))
    finally:
        await asyncio.to_thread(workspace.close)


def _workdir_of(task: PackTask) -> str:
    """Return where commands find the repository: what the environment says, else where the tests run."""
    tests = check_of(task, PatchTests).command.workdir or ""
    stated = task.environment.workdir or (tests if tests.startswith("/") else _WORKDIR)
    path = system_free(stated)
    if path is None:
        message = (
            f"the repository cannot be at {excerpt(stated)!r}: give environment.workdir a folder of its own"
        )
        raise FindingError(Verdict.ERROR, "no_repository", message, PatchPhase.BASE_COMMIT)
    return path


async def _put_base(row: AgentRow, spec: BoxSpec, workspace: Workspace) -> None:
    """Copy the repository: a clone or bundle of the pack, or that of the image, which must be at the base commit."""
    source, base = row.task.environment.repository, str(row.task.input_value("base_commit", "")).strip()
    if source is not None:
        await asyncio.to_thread(_put_repository, workspace, source)
    else:
        await _fill(row.engine, spec, workspace, base)
    head, commit = await _found(row.engine, spec, base, checks_out=source is not None)
    place = repr(excerpt(head or "no commit"))
    if source is not None and commit is None:
        raise _wrong(base, f"which {source.name} does not hold: it is at {place}")
    if source is None and (commit is None or commit != head):
        raise _wrong(base, f"but the repository of {spec.image} is at {place}")


async def _fill(engine: Engine, spec: BoxSpec, workspace: Workspace, base: str) -> None:
    """Copy the repository out of the image."""
    if spec.image is None:
        raise _missing(base, "the row names neither an image nor a repository")
    obstacle = await engine.obstacle(spec.image)
    if obstacle is not None:
        raise SandboxError(obstacle.reason)
    try:
        await engine.open(replace(spec, fill_from_image=True))
    except SandboxError as error:
        # The brackets hold the name of a container, another one in every run.
        raise _missing(base, excerpt(str(error).partition(" (")[0])) from error
    if workspace.get(".git/HEAD", limit_bytes=_MIB) is None:
        raise _missing(base, f"{spec.workdir} of {spec.image} is not a git repository")


async def _found(
    engine: Engine, spec: BoxSpec, base: str, *, checks_out: bool
) -> tuple[str | None, str | None]:
    """Return the commit that the repository was at, and the base commit; None for what is not there."""
    revision = base if _HEX.fullmatch(base) or _REVISION.fullmatch(base) else ""
    async with open_git(engine, spec) as git:
        ended = await git.run(_FIND, revision, "check-out" if checks_out else "")
    if ended.exit_code == 127:
        raise _missing(base, f"there is no git in {spec.image or 'the sandbox'}")
    if ended.exit_code != 0:
        what = "bundle" if ended.exit_code == _UNREADABLE else "repository"
        raise _missing(base, f"the {what} cannot be read: {ending_of(ended)}")
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


def _missing(base: str, why: str) -> FindingError:
    message = f"base_commit {excerpt(base)!r} cannot be found: {why}\n  hint: {_WHERE}"
    return FindingError(Verdict.ERROR, "no_repository", message, PatchPhase.BASE_COMMIT)


def _wrong(base: str, what: str) -> FindingError:
    hint = "correct input.base_commit, or the repository"
    message = f"base_commit is {excerpt(base)!r}, {what}\n  hint: {hint}"
    return FindingError(Verdict.ERROR, "wrong_base_commit", message, PatchPhase.BASE_COMMIT)
