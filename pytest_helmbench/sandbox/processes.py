"""One process of ours around foreign code: its streams, its end, and limits that no kernel enforces for us."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TypeAlias

from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import Ended, Limits, Streams, disk_breach
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_CHUNK = 64 * 1024
_FLOOD = 16  # times the output limit that is still read and dropped
_AFTER_KILL_S = 5.0
_LAUNCHER_S = 10.0
_TOOL_OUTPUT = 4 * 1024 * 1024
_EVERY_S = 0.1
_DISK_EVERY_S = 0.5
_DISK_SHARE = 20  # looking takes at most one part in so many of the time
_OWN_PIDS = 4  # what stands around the command: the sandbox's own processes and the launcher

Kill: TypeAlias = Callable[[Process], Awaitable[None]]
LimitWatch: TypeAlias = Callable[[int], Coroutine[object, None, str]]


@dataclass(frozen=True, slots=True)
class Launch:
    """How a process is started, watched and stopped.

    Args:
        argv: Program and arguments, on this machine.
        env: Its whole environment.
        kill: Ends it and everything below it; called at most once, also after it ended by itself.
        descriptors: Open files that it inherits.
        watch: Runs beside it with its number; returns the reason to stop it.
    """

    argv: tuple[str, ...]
    env: Mapping[str, str]
    kill: Kill
    folder: Path | None = None
    descriptors: tuple[int, ...] = ()
    watch: tuple[LimitWatch, ...] = ()


class Collected:
    """The kept part of a stream.

    Args:
        limit: Bytes that are kept.
        overflow: Set when the output does not end; None to keep the end of the stream, however much comes.
    """

    def __init__(self, limit: int, overflow: asyncio.Event | None = None) -> None:
        self.data = bytearray()
        self.cut = False
        self._limit = limit
        self._overflow = overflow

    async def read(self, stream: asyncio.StreamReader | None) -> None:
        """Read to the end, whatever comes: an unread stream never closes."""
        if stream is None:
            return
        seen = 0
        while chunk := await stream.read(_CHUNK):
            if self._overflow is None:
                self.data += chunk
                del self.data[: -self._limit]
                continue
            seen += len(chunk)
            room = self._limit - len(self.data)
            self.data += chunk[:room]
            self.cut = self.cut or len(chunk) > room
            if seen > _FLOOD * self._limit:
                self._overflow.set()


async def supervise(launch: Launch, streams: Streams, limits: Limits) -> Ended:
    """Run a process to its end, or stop it when it leaves its limits; then nothing of it is left.

    Raises:
        SandboxError: It could not be started.
    """
    started = time.monotonic()
    process = await _start(launch, streams)
    overflow = asyncio.Event()
    out, err = (Collected(limits.output_bytes, None if streams.keeps_end else overflow) for _ in range(2))
    waiting = asyncio.create_task(_none(process.wait()))
    reading = asyncio.create_task(_read(process, out, err, streams.given))
    watching = [asyncio.create_task(watch(process.pid)) for watch in launch.watch]
    watching.append(asyncio.create_task(_overflowed(overflow, limits)))
    reason, timed_out = "", False
    try:
        done, _ = await asyncio.wait(
            (waiting, reading, *watching), timeout=limits.wall_s, return_when=asyncio.FIRST_COMPLETED
        )
        timed_out = not done
        # The reason to stop the process; empty when it ended by itself.
        reason = next(filter(None, (task.result() for task in done)), "")
        if timed_out:
            reason = f"no end within {limits.wall_s:g} s"
    finally:
        for watcher in watching:
            watcher.cancel()
        await asyncio.shield(_end(launch, process, (waiting, reading)))
    return Ended(
        exit_code=None if reason else _exit_code(process),
        stdout=bytes(out.data),
        stderr=bytes(err.data),
        timed_out=timed_out,
        output_cut=out.cut or err.cut,
        reason=reason,
        wall_s=time.monotonic() - started,
    )


async def run_tool(
    argv: Sequence[str],
    env: Mapping[str, str],
    *,
    wall_s: float,
    descriptors: tuple[int, ...] = (),
) -> Ended:
    """Run a program of this machine that is not foreign code, such as the command line of an engine.

    Raises:
        SandboxError: It could not be started.
    """
    launch = Launch(argv=tuple(argv), env=env, kill=kill_one, descriptors=descriptors)
    limits = Limits(wall_s=wall_s, output_bytes=_TOOL_OUTPUT)
    return await supervise(launch, Streams(given=b""), limits)


def last_words(ended: Ended) -> str:
    """Return the last words of a command line, for people."""
    lines = [
        line for line in ended.stderr.decode(errors="replace").splitlines() if line and "--help" not in line
    ]
    return excerpt(lines[-1]) if lines else ended.reason or f"exit code {ended.exit_code}"


async def exited(process: Process) -> None:
    """Wait for the end of a process alone: `wait()` also waits for its pipes, which others may hold (Python 3.11)."""
    while True:
        await asyncio.sleep(_EVERY_S)
        if process.returncode is not None:
            return


async def kill_one(process: Process) -> None:
    """Kill the process itself and wait for it."""
    send_signal(process, signal.SIGKILL)
    await process.wait()


async def end_launched(process: Process) -> None:
    """Let the launcher end the program and all that it has started, then kill what is left of its process group."""
    stop_launched(process)
    if process.returncode is None:
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _LAUNCHER_S)
    kill_group(process)
    await kill_one(process)


def stop_launched(process: Process) -> None:
    """Have the launcher end the program and all that it has started."""
    send_signal(process, signal.SIGTERM)
    send_signal(process, signal.SIGCONT)  # a program can stop its launcher, which would hear nothing


def send_signal(process: Process, number: int) -> None:
    """Send a signal to a process that has not ended. The process's own methods reap it, behind asyncio's back."""
    if process.returncode is None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, number)


def kill_group(process: Process) -> None:
    """Kill what is left of the process group of a process, whether that has ended or not."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


async def _start(launch: Launch, streams: Streams) -> Process:
    try:
        return await asyncio.create_subprocess_exec(
            *launch.argv,
            env=dict(launch.env),
            cwd=launch.folder,
            stdin=PIPE if streams.stdin is None else streams.stdin,
            stdout=PIPE if streams.stdout is None else streams.stdout,
            stderr=PIPE,
            pass_fds=launch.descriptors,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:  # ValueError: a NUL in an argument
        raise SandboxError(f"{launch.argv[0]}: could not be started ({error})") from error


async def _none(coroutine: Awaitable[object]) -> str:
    await coroutine
    return ""


async def _read(process: Process, out: Collected, err: Collected, given: bytes | None) -> str:
    await asyncio.gather(out.read(process.stdout), err.read(process.stderr), _feed(process, given))
    await process.wait()
    return ""


async def _feed(process: Process, given: bytes | None) -> None:
    if process.stdin is None:
        return
    with suppress(ConnectionError):  # who ends without reading needs no more
        if given:
            process.stdin.write(given)
            await process.stdin.drain()
    process.stdin.close()


async def _overflowed(overflow: asyncio.Event, limits: Limits) -> str:
    await overflow.wait()
    return f"more than {_FLOOD * limits.output_bytes} bytes of output"


async def _end(launch: Launch, process: Process, tasks: tuple[asyncio.Task[str], ...]) -> None:
    await launch.kill(process)
    # A process that still holds the pipes outlived the kill: do not wait long for it.
    await asyncio.wait(tasks, timeout=_AFTER_KILL_S)
    for task in tasks:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _exit_code(process: Process) -> int | None:
    code = process.returncode
    return 128 - code if code is not None and code < 0 else code


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
        # This sum counts shared memory once per fork; above the limit, take the dearer, exact sum.
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
