"""Programs of this machine in a sandbox: a folder with what they need, their Python, and their launcher."""

from __future__ import annotations

import math
import py_compile
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

from pytest_helmbench.sandbox.box import Limits
from pytest_helmbench.sandbox.owners import new_folder
from pytest_helmbench.sandbox.seccomp import filter_program
from pytest_helmbench.sandbox.workspace import remove_tree

_OPEN_FILES = 1024
_SLACK_PIDS = 2  # the sandbox's own first process, and the launcher


class LocalPrograms:
    """A folder of our own with what sandboxes of this machine need."""

    def __init__(self) -> None:
        self.folder = new_folder()
        self.launcher = self.folder / "launch.pyc"
        source = Path(__file__).with_name("inside") / "launch.py"
        py_compile.compile(str(source), cfile=str(self.launcher), dfile="launch.py", doraise=True)
        etc = self.folder / "etc"
        etc.mkdir()
        (etc / "passwd").write_text("root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n")
        (etc / "group").write_text("root:x:0:\nnogroup:x:65534:\n")
        (etc / "hosts").write_text("127.0.0.1 localhost\n::1 localhost\n")
        self.seccomp: Path | None = None
        """File with the filter of system calls; None for a processor that is not known."""
        program = filter_program()
        if program is not None:
            self.seccomp = self.folder / "seccomp"
            self.seccomp.write_bytes(program)
        self._workspaces = self.folder / "workspaces"
        self._workspaces.mkdir()

    def new_folder(self) -> Path:
        """Make a folder for a workspace."""
        return Path(mkdtemp(dir=self._workspaces))

    def close(self) -> None:
        """Remove the folder."""
        remove_tree(self.folder)


@cache
def host_python() -> Path:
    """Return the interpreter itself: no link, no shim, no virtual environment."""
    plain = Path(sys.base_prefix, "bin", f"python{sys.version_info.major}.{sys.version_info.minor}")
    return (plain if plain.exists() else Path(sys.executable)).resolve()


def local_environment() -> tuple[tuple[str, str], ...]:
    """Return the whole environment of a command of this machine: made from nothing, so that no key is in it."""
    path = ":".join((str(host_python().parent), "/usr/local/bin", "/usr/bin", "/bin"))
    return (("PATH", path), ("LANG", "C.UTF-8"), ("TMPDIR", "/tmp"))


def launched(command: Sequence[str], folder: str, limits: str, launcher: str) -> tuple[str, ...]:
    """Return the arguments of a command with the launcher before it.

    Args:
        limits: What the launcher takes on.
        launcher: Its path, as the command sees it.
    """
    return (str(host_python()), "-ISE", launcher, limits, folder, *command)


def limits_text(limits: Limits, *, count_pids: bool) -> str:
    """Return the limits as the launcher reads them.

    Args:
        limits: What a command may use.
        count_pids: Whether the kernel counts the sandbox's processes apart from all others of the user.
    """
    bounds = {
        "CORE": 0,
        "CPU": math.ceil(limits.cpus * limits.wall_s),
        # Reserved but unused address space is not counted, which garbage collectors of other languages need.
        "DATA": limits.memory_bytes,
        "FSIZE": limits.disk_bytes,
        "NOFILE": _OPEN_FILES,
    }
    if count_pids:
        bounds["NPROC"] = limits.pids + _SLACK_PIDS
    return ",".join(f"{name}={value}" for name, value in bounds.items())
