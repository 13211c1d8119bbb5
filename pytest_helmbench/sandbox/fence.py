"""The fence around programs of this machine that run beside us: Node with a pack, agents, verifiers.

They see the system's programs and the files that they are given, and a network that leads nowhere but to ports that we
open for them.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from asyncio.subprocess import Process
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import Limits, Unavailable
from pytest_helmbench.sandbox.bubble import AS_USER, SYSTEM, Bubble, BubbleKit, own_view, system_view
from pytest_helmbench.sandbox.cgroups import find_group_place
from pytest_helmbench.sandbox.detection import NO_SANDBOX
from pytest_helmbench.sandbox.local import LocalPrograms
from pytest_helmbench.sandbox.processes import run_tool
from pytest_helmbench.sandbox.workspace import SandboxError

_REMEDY = "  hint: install bubblewrap (bwrap), or run it with your rights: --helmbench-unprotected"
_TEMPORARY_BYTES = 1024 * 2**20
_SHARED_MEMORY_BYTES = 64 * 2**20
_OPEN_FILES = 4096
_TRIAL_S = 20.0
_ANSWER_S = 10.0
_LONGEST_ANSWER = 200


@dataclass(frozen=True, slots=True)
class FenceView:
    """The view of a program in the fence.

    Args:
        env: Its whole environment.
        reads: Files and folders that it may read, where they are.
        writes: Those that it may write as well.
        mounts: Further ones, that it sees elsewhere and may write: place in the fence by place here.
        limits: Memory and processes of all that it starts.
    """

    folder: str
    env: Mapping[str, str]
    reads: tuple[Path, ...] = ()
    writes: tuple[Path, ...] = ()
    mounts: tuple[tuple[Path, str], ...] = ()
    limits: Limits = Limits(memory_bytes=4096 * 2**20, pids=512)


@dataclass(frozen=True, slots=True)
class OpenPort:
    """A port of this machine that a program in the fence may reach, at the same number.

    Args:
        number: On the loopback device, the same on both sides.
        serve: Serves the connections of a listening socket.
        owner: The server behind the port; a number may go to another server later.
    """

    number: int
    serve: Callable[[socket.socket], Awaitable[object]]
    owner: object


class Enclosed:
    """A program in the fence, before it is started and while it runs.

    Args:
        gate: Where sockets of its network are asked for.
    """

    def __init__(
        self, bubble: Bubble, argv: tuple[str, ...], descriptors: tuple[int, ...], gate: socket.socket
    ) -> None:
        self._bubble = bubble
        self.argv = argv
        self.descriptors = descriptors
        self._gate = gate
        self._asking, self._opening = asyncio.Lock(), asyncio.Lock()
        self._open_ports: dict[int, object] = {}
        self._waiting: asyncio.Event | None = None

    def go(self) -> None:
        """Have the program itself started, now or as soon as what stands before it is ready."""
        self._gate.send(b"go")

    async def open(self, ports: Iterable[OpenPort]) -> None:
        """Let the program reach ports of ours; those that it reaches already stay.

        Raises:
            OSError: Its network is gone.
        """
        async with self._opening:
            for port in ports:
                if self._open_ports.get(port.number) is not port.owner:
                    await port.serve(await self.socket("listen", port.number))
                    self._open_ports[port.number] = port.owner

    async def socket(self, word: str, port: int) -> socket.socket:
        """Return a socket of its network: one that listens at a port, or one that is connected to it.

        Args:
            word: `listen` or `connect`.
            port: On its loopback device.

        Raises:
            OSError: There is none.
        """
        loop = asyncio.get_running_loop()
        self._bubble.keep_own_end()  # so that the end of the other side is seen
        async with self._asking, asyncio.timeout(_ANSWER_S):
            await loop.sock_sendall(self._gate, f"{word} {port}".encode())
            self._waiting = asyncio.Event()
            loop.add_reader(self._gate, self._waiting.set)
            try:
                await self._waiting.wait()
            finally:
                self._stop_waiting()
            said, descriptors, _, _ = socket.recv_fds(self._gate, _LONGEST_ANSWER, 1)
        if not descriptors:
            raise OSError(f"{word} {port}: {said.decode(errors='replace') or 'no answer'}")
        made = socket.socket(fileno=descriptors[0])
        made.setblocking(False)
        return made

    def breach(self) -> str:
        """Return which limit the kernel has seen passed; empty for none."""
        return self._bubble.breach()

    def let_go(self) -> None:
        """Have it end, and all that it has started."""
        self._stop_waiting()
        if self._gate.fileno() >= 0:
            self._gate.close()

    def _stop_waiting(self) -> None:
        """Wait for no answer any more: the number of a gate that is closed is soon another's."""
        if self._waiting is not None:
            asyncio.get_running_loop().remove_reader(self._gate)
            self._waiting.set()
            self._waiting = None

    async def end(self, process: Process) -> None:
        """End its process and all that it has started, and let go of everything."""
        self.let_go()
        await self._bubble.kill(process)
        await self.close()

    async def close(self) -> None:
        """Let go of everything."""
        self.let_go()
        await asyncio.to_thread(self._bubble.close)


class Fence:
    """Bubblewrap around programs of this machine.

    Args:
        kit: What all of them share.
        local: The folder with what is ours in it.
    """

    def __init__(self, kit: BubbleKit, local: LocalPrograms) -> None:
        self._kit = kit
        self._local = local

    def new_folder(self) -> Path:
        """Make a folder of ours, which goes with the fence."""
        return self._local.new_folder()

    def enclose(self, view: FenceView, argv: Sequence[str], descriptors: Sequence[int] = ()) -> Enclosed:
        """Return how a program is started in the fence.

        Raises:
            SandboxError: The kernel makes no sandbox for it.
        """
        gate, inner = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        gate.setblocking(False)
        bubble = Bubble(self._kit, view.limits, inner.detach(), -1, "gate")
        settings = f"CORE=0,NOFILE={_OPEN_FILES}"
        return Enclosed(
            bubble,
            bubble.argv(_flags(view), argv, view.folder, settings),
            (*bubble.descriptors, *descriptors),
            gate,
        )

    async def close(self) -> None:
        """Remove its folder."""
        await asyncio.to_thread(self._local.close)


def _flags(view: FenceView) -> Iterable[str]:
    binds = [(path, str(path), True) for path in view.reads]
    binds += [(path, str(path), False) for path in view.writes]
    binds += [(path, place, False) for path, place in view.mounts]
    there = [one for one in binds if one[0].exists()]
    return own_view(_SHARED_MEMORY_BYTES, _TEMPORARY_BYTES, there, view.env.items())


def program_files(program: str) -> tuple[Path, ...]:
    """Return what a program needs beside this machine's own: itself, and the virtual environment that it stands in."""
    found: list[Path] = []
    path = Path(program).absolute()
    while True:
        if not any(path.is_relative_to(name) for name in SYSTEM):
            environment = path.parent.parent
            found.append(environment if (environment / "pyvenv.cfg").is_file() else path)
        if not path.is_symlink():
            return tuple(dict.fromkeys(found))
        path = Path(os.path.normpath(path.parent / path.readlink()))


async def find_fence(mode: Granted[str]) -> Fence | Unavailable:
    """Return the fence for programs of this machine, or why there is none, with the remedy.

    Args:
        mode: `--helmbench-sandbox`; whichever engine it names, programs of this machine run in bubblewrap.
    """
    if mode.value == NO_SANDBOX:
        return Unavailable(f"--helmbench-sandbox={mode.value}\n{_REMEDY}")
    program = shutil.which("bwrap")
    if program is None or not sys.platform.startswith("linux"):
        return Unavailable(
            f"there is no sandbox for programs of this machine: bwrap is not installed\n{_REMEDY}"
        )
    local = await asyncio.to_thread(LocalPrograms)
    groups = await asyncio.to_thread(find_group_place)
    why = ""
    for namespaces in AS_USER:
        start = (program, *namespaces, *system_view(local))
        fence = Fence(BubbleKit(start, local.seccomp, groups), local)
        found = await _obstacle(fence)
        if not found:
            return fence
        why = why or found
    await fence.close()
    return Unavailable(f"there is no sandbox for programs of this machine: {why}\n{_REMEDY}")


async def _obstacle(fence: Fence) -> str:
    """Return why nothing runs in it; empty when something does."""
    try:
        enclosed = fence.enclose(FenceView("/", {}), ("true",))
        enclosed.go()
    except SandboxError as error:
        return str(error)
    try:
        tried = await run_tool(enclosed.argv, {}, wall_s=_TRIAL_S, descriptors=enclosed.descriptors)
    except SandboxError as error:
        return str(error)
    finally:
        await enclosed.close()
    return (
        ""
        if tried.exit_code == 0
        else f"bwrap does not work here ({excerpt(tried.stderr.decode(errors='replace'))})"
    )
