"""Git in a sandbox, deaf to everything but its arguments: no hooks, no configuration of user or repository."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import Box, Command, Ended, Limits
from pytest_helmbench.sandbox.workspace import Workspace

_MIB = 1024 * 1024
GIT_LIMITS = Limits(
    wall_s=300.0,
    cpus=2.0,
    memory_bytes=2048 * _MIB,
    pids=64,
    output_bytes=32 * _MIB,
    disk_bytes=8192 * _MIB,
)
"""Bounds of one git command: large repositories fit."""

# The system's own programs first: the PATH of an image may lead into the working tree.
_FIND_GIT = """\
PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:$PATH
command -v git >/dev/null || exit 127
"""
_LARGEST_CONFIG = 1 * _MIB
_ENVIRONMENT = (
    ("HOME", "/nonexistent"),
    ("XDG_CONFIG_HOME", "/nonexistent"),
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_CONFIG_COUNT", "0"),
    ("GIT_CONFIG_PARAMETERS", ""),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ALLOW_PROTOCOL", ""),
    ("GIT_PAGER", "cat"),
    ("GIT_EDITOR", "false"),
    ("GIT_ASKPASS", "false"),
    ("GIT_AUTHOR_NAME", "helmbench"),
    ("GIT_AUTHOR_EMAIL", "helmbench@localhost"),
    ("GIT_AUTHOR_DATE", "2000-01-01T00:00:00Z"),
    ("GIT_COMMITTER_NAME", "helmbench"),
    ("GIT_COMMITTER_EMAIL", "helmbench@localhost"),
    ("GIT_COMMITTER_DATE", "2000-01-01T00:00:00Z"),
    ("LC_ALL", "C"),
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
def hardened(workspace: Workspace, git_dir: str) -> Iterator[None]:
    """Make a repository deaf: its own configuration, attributes and hooks are gone, for good.

    Inside, a configuration stands that lets git do nothing but what it is told; at the end, a plain one, so that
    nothing of a foreign repository runs where somebody calls git in it.

    Args:
        workspace: That holds the repository.
        git_dir: Git's own folder in it, such as `.git`.
    """
    own = workspace.get(f"{git_dir}/config", limit_bytes=_LARGEST_CONFIG) or b""
    form = _SHA256 if _IS_SHA256.search(own) else _SHA1
    for name in ("config.worktree", "index.lock", "info/grafts", "hooks"):
        workspace.remove(f"{git_dir}/{name}")
    attributes = f"{git_dir}/info/attributes"
    workspace.put(f"{git_dir}/config", f"{form}{_PLAIN}{_DEAF}".encode())
    workspace.put(attributes, _ATTRIBUTES)
    try:
        yield
    finally:
        workspace.put(f"{git_dir}/config", f"{form}{_PLAIN}".encode())
        workspace.remove(attributes)


class Git:
    """Git over the files of a box, in a repository whose configuration is ours (`hardened`).

    Args:
        box: Whose workspace is the working tree.
        git_dir: Git's own folder, absolute inside the box; None for the usual one.
    """

    def __init__(self, box: Box, git_dir: str | None = None) -> None:
        self._box = box
        self.tree = box.workdir
        self._env = (
            *_ENVIRONMENT,
            ("GIT_DIR", box.inside(git_dir) if git_dir is not None else f"{box.workdir}/.git"),
            ("GIT_WORK_TREE", box.workdir),
        )

    async def run(self, script: str, *arguments: str) -> Ended:
        """Run a shell script of git commands at the top of the working tree, in one sandbox.

        It ends with the first command that fails; 127 when there is no git.

        Raises:
            SandboxError: The sandbox could not be made.
        """
        argv = ("/bin/sh", "-ec", f"{_FIND_GIT}{script}", "sh", *arguments)
        return await self._box.run(Command(argv, None, self._env, limits=GIT_LIMITS))


def said(ended: Ended) -> str:
    """Return how a command ended, for people: why we stopped it, else its last words, else its exit code."""
    if ended.reason:
        return ended.reason
    lines = ended.stderr.decode(errors="replace").strip().splitlines()[-_LAST_LINES:]
    return excerpt(" / ".join(line.strip() for line in lines)) or f"exit code {ended.exit_code}"
