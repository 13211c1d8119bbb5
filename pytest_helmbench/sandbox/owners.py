"""Owners of sandboxes: a mark that tells dead processes from living ones, and the folders that carry it."""

from __future__ import annotations

import os
import re
import secrets
import signal
import socket
import subprocess
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from itertools import chain
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.workspace import SandboxError, remove_tree

_FOLDER = "helmbench-"
_USUAL_PLACE = Path("/tmp")
_MARK = re.compile(r"([0-9a-f]{16})\.(\d+)\.(\d+)\.([0-9a-f]+)")

_MARK_IN_PATH = re.compile(rb"/helmbench-([0-9a-f]{16}\.[0-9.]+\.[0-9a-f]+)-")
_ENDED = "ended"
_ENDED_STATES = ("Z", "X")


@dataclass(frozen=True, slots=True)
class Owner:
    """A process, distinguished from every other that had or will have its number.

    Args:
        machine: 16 hex digits for this boot of this machine and this space of process numbers.
        uid: Number of the user.
        pid: Number of the process; another may get it later.
        start: When it started, as hex digits; no time unit is meant.
    """

    machine: str
    uid: int
    pid: int
    start: str

    @property
    def mark(self) -> str:
        """The text that labels and folder names carry."""
        return f"{self.machine}.{self.uid}.{self.pid}.{self.start}"

    @classmethod
    def read(cls, mark: str) -> Owner | None:
        """Return the owner of a mark; None when it is not one of ours."""
        found = _MARK.fullmatch(mark)
        return cls(found[1], int(found[2]), int(found[3]), found[4]) if found else None

    def is_gone(self) -> bool:
        """Return whether the process has surely ended: of this machine and user, and no longer there."""
        if (self.machine, self.uid) != (this_process().machine, this_process().uid):
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            pass  # it runs with the rights of another
        start = _start_of(self.pid)
        return start is not None and start != self.start


@cache
def this_process() -> Owner:
    """Return the mark of the running process."""
    return process_owner(os.getpid())


def process_owner(pid: int) -> Owner:
    """Return the mark of a process of this machine."""
    return Owner(_machine(), os.getuid(), pid, _start_of(pid) or "0")


def new_folder() -> Path:
    """Make a folder that the next start removes should this process be killed.

    Raises:
        SandboxError: The disk refuses.
    """
    try:
        return Path(tempfile.mkdtemp(prefix=f"{_FOLDER}{this_process().mark}-"))
    except OSError as error:
        raise SandboxError(
            f"{tempfile.gettempdir()}: no folder for a sandbox can be made ({error.strerror})\n"
            "  hint: TMPDIR may name another place"
        ) from error


def remove_leftover_folders() -> None:
    """Remove the folders of processes that were killed, and nothing else.

    A sandbox over such a folder is ended first. It ends by itself as a rule; a signal may have killed half of it.
    """
    for pid in _leftover_sandboxes():
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    for path in chain.from_iterable(
        place.glob(f"{_FOLDER}*") for place in {_USUAL_PLACE, Path(tempfile.gettempdir())}
    ):
        owner = Owner.read(path.name.removeprefix(_FOLDER).rpartition("-")[0])
        if owner is None or not owner.is_gone():
            continue
        # Several workers start at the same time and find the same folder: the one that renames it removes it.
        mine = path.with_name(f"{_FOLDER}{this_process().mark}-{secrets.token_hex(4)}")
        with suppress(OSError):
            path.rename(mine)
            remove_tree(mine)


def _leftover_sandboxes() -> Iterable[int]:
    """Yield the processes of bubblewrap that name a folder of a process that was killed."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            program, *words = path.read_bytes().split(b"\0")
            mark = _MARK_IN_PATH.search(b"\0".join(words)) if program.endswith(b"bwrap") else None
            owner = Owner.read(mark[1].decode()) if mark else None
            if owner is not None and owner.is_gone():
                yield int(path.parent.name)


def _machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id")
    parts = [boot.read_text().strip() if boot.exists() else socket.gethostname()]
    with suppress(OSError):
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return sha256(" ".join(parts).encode()).hexdigest()[:16]


def _start_of(pid: int) -> str | None:
    """Return when a process started; None when that cannot be seen."""
    try:
        # The name in brackets may hold spaces and brackets itself.
        fields = (
            Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        )
        # An ended process stays in the table until its parent waits for it, which may take time.
        return _ENDED if fields[0] in _ENDED_STATES else f"{int(fields[19]):x}"
    except OSError:
        pass
    with suppress(OSError):
        ps = subprocess.run(["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, check=False)
        if ps.stdout.strip():
            return sha256(ps.stdout.strip()).hexdigest()[:16]
    return None
