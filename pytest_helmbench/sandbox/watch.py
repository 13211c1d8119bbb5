"""Limits that no kernel enforces for us: memory, CPU time and size of a process tree, disk space."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.sandbox.box import Limits, disk_breach
from pytest_helmbench.sandbox.workspace import Workspace

__all__ = ["children_of", "watch_disk", "watch_family"]

_EVERY_S = 0.1
_DISK_EVERY_S = 0.5
_DISK_SHARE = 20  # looking takes at most one part in so many of the time
_OWN_PIDS = 4  # what stands around the command: the sandbox's own processes and the launcher


@dataclass(frozen=True, slots=True)
class _Use:
    """The use of resources by one process."""

    pid: int
    threads: int
    cpu_s: float
    resident_bytes: int


async def watch_family(pid: int, limits: Limits) -> str:
    """Return, once it happens, which limit a process and its descendants have left."""
    while True:
        await asyncio.sleep(_EVERY_S)
        uses = tuple(_uses(pid))
        if sum(use.threads for use in uses) > limits.pids + _OWN_PIDS:
            return f"more than {limits.pids} processes"
        if sum(use.cpu_s for use in uses) > limits.cpus * limits.wall_s:
            return f"more than {limits.cpus * limits.wall_s:g} s of CPU time"
        resident_bytes = sum(use.resident_bytes for use in uses)
        # What forks share counts once for each of them; only then is the dearer, exact sum worth its time.
        if resident_bytes > limits.memory_bytes < sum(map(_proportional_bytes, uses)):
            return f"more than {limits.memory_bytes} bytes of memory"


async def watch_disk(workspace: Workspace, limits: Limits) -> str:
    """Return, once it happens, that the workspace has outgrown its limit."""
    pause_s = _DISK_EVERY_S
    while True:
        await asyncio.sleep(pause_s)
        started = time.monotonic()
        reason = await asyncio.to_thread(disk_breach, workspace, limits)
        if reason:
            return reason
        pause_s = max(_DISK_EVERY_S, _DISK_SHARE * (time.monotonic() - started))


def children_of(pid: int) -> list[int]:
    """Return the children of a process, those of all its threads."""
    found: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{pid}/task").iterdir():
            with suppress(OSError):
                found += map(int, (task / "children").read_bytes().split())
    return found


def _uses(pid: int) -> Iterator[_Use]:
    """Yield a process and all below it; those that end meanwhile are left out."""
    open_pids = [pid]
    while open_pids:
        one = open_pids.pop()
        with suppress(OSError):
            fields = Path(f"/proc/{one}/stat").read_bytes().rpartition(b")")[2].split()
            ticks = sum(map(int, fields[11:15]))
            pages = int(Path(f"/proc/{one}/statm").read_bytes().split()[1])
            yield _Use(
                pid=one,
                threads=int(fields[17]),
                cpu_s=ticks / os.sysconf("SC_CLK_TCK"),
                resident_bytes=pages * os.sysconf("SC_PAGE_SIZE"),
            )
        open_pids += children_of(one)


def _proportional_bytes(use: _Use) -> int:
    with suppress(OSError):
        for line in Path(f"/proc/{use.pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024
    return use.resident_bytes
