"""Bubblewrap: programs of this machine in namespaces of their own, without a daemon and without images."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import sys
from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import count

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import BoxSpec, Command, Ended, Limits, SandboxEngine, Streams, Unavailable
from pytest_helmbench.sandbox.bubble import Bubble, BubbleKit, own_view, system_view
from pytest_helmbench.sandbox.cgroups import GroupPlace, find_group_place
from pytest_helmbench.sandbox.local import LocalEngine, limits_text, local_environment
from pytest_helmbench.sandbox.processes import Launch, supervise, watch_disk, watch_family
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_SHARED_MEMORY_BYTES = 64 * 1024 * 1024
_FIRST_UID = 0x70000000  # above every range that distributions hand out
_UIDS_PER_PROCESS = 1024
# From 5.14 on, processes are counted per namespace of users; before, with all others of the user.
_COUNTS_PIDS = sys.platform == "linux" and tuple(map(int, re.findall(r"\d+", os.uname().release)[:2])) >= (
    5,
    14,
)

# Without a namespace for users when we are root: the command then becomes a user of its own, for whom
# the kernel counts processes; root's own are never counted.
_AS_ROOT = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"),
)
_AS_USER = ("--unshare-all", "--unshare-user", "--cap-drop", "ALL")


@dataclass(frozen=True, slots=True)
class Way:
    """How bubblewrap works on this machine.

    Args:
        program: Its path.
        flags: The namespaces and privileges.
        drops: Whether commands become another user.
        groups: Where the kernel bounds memory and processes for us; None where it does not.
    """

    program: str
    flags: tuple[str, ...]
    drops: bool
    groups: GroupPlace | None = None


class BubblewrapEngine(LocalEngine):
    """Runs programs of this machine in namespaces.

    Args:
        kind: Which engine it is.
        way: How bubblewrap works here.
    """

    def __init__(self, kind: SandboxEngine, way: Way) -> None:
        super().__init__(kind)
        self._way = way
        self._numbers = count()
        start = (way.program, *way.flags, *system_view(self._local))
        self._kit = BubbleKit(start, self._local.seccomp, way.groups)

    def new_workspace(self, image: str | None = None) -> Workspace:
        """Make an empty folder; as root it belongs to a user of its own."""
        del image  # there is one kind
        uid = None
        if self._way.drops:
            number = next(self._numbers) % _UIDS_PER_PROCESS
            uid = _FIRST_UID + (os.getpid() % 2**18) * _UIDS_PER_PROCESS + number
        return Workspace(self._local.new_folder(), uid=uid, remove_later=self.remove_later)

    async def execute(self, spec: BoxSpec, workspace: Workspace, command: Command, streams: Streams) -> Ended:
        """Run a command in fresh namespaces."""
        limits = command.limits or spec.limits
        bubble = Bubble(self._kit, limits, *os.pipe())
        try:
            launch = Launch(
                argv=bubble.argv(
                    _view(spec, workspace, command, limits),
                    command.argv,
                    command.workdir or spec.workdir,
                    self._settings(limits, workspace),
                ),
                env={},
                kill=bubble.kill,
                descriptors=bubble.descriptors,
                watch=(
                    bubble.watch,
                    partial(watch_family, limits=limits),
                    lambda _: watch_disk(workspace, limits),
                ),
            )
            ended = await supervise(launch, streams, limits)
            bubble.check(ended)
            breach = "" if ended.reason else bubble.breach()
            return replace(ended, exit_code=None, reason=breach) if breach else ended
        finally:
            await asyncio.shield(asyncio.to_thread(bubble.close))

    def _settings(self, limits: Limits, workspace: Workspace) -> str:
        taken_on = limits_text(limits, count_pids=_COUNTS_PIDS)
        return taken_on if workspace.uid is None else f"{taken_on},uid={workspace.uid}"


def _view(spec: BoxSpec, workspace: Workspace, command: Command, limits: Limits) -> Iterable[str]:
    mounts = [(mount.source, mount.target, mount.read_only) for mount in spec.mounts]
    env = (*local_environment(), *spec.env, *command.env)
    shared = min(limits.disk_bytes, _SHARED_MEMORY_BYTES)
    return own_view(shared, limits.disk_bytes, [(workspace.path, spec.workdir, False), *mounts], env)


async def _find(kind: SandboxEngine, _pull: Granted[bool]) -> BubblewrapEngine | Unavailable:
    """Try every way in which bubblewrap may work with a command."""
    program = shutil.which("bwrap")
    if program is None or not sys.platform.startswith("linux"):
        return Unavailable("bwrap is not installed")
    why = ""
    groups = await asyncio.to_thread(find_group_place)
    for way in ways(program, groups):
        engine = BubblewrapEngine(kind, way)
        try:
            async with await engine.open(BoxSpec()) as box:
                ended = await box.run(Command((box.python, "-ISE", "-c", "print('works')")))
            if ended.stdout == b"works\n":
                return engine
            why = why or (ended.stderr.decode(errors="replace").strip() or ended.reason)
        except SandboxError as error:
            why = why or str(error)
        await engine.close()
    return Unavailable(f"bwrap does not work here ({excerpt(why)})")


def ways(program: str, groups: GroupPlace | None = None) -> Iterable[Way]:
    """Yield the ways in which bubblewrap may work, the one with the firmest bounds first."""
    kinds: list[tuple[tuple[str, ...], bool]] = [(_AS_ROOT, True)] if os.getuid() == 0 else []
    kinds += [((*_AS_USER, "--disable-userns"), False), (_AS_USER, False)]  # the last one before 0.8
    for flags, drops in kinds:
        yield Way(program, flags, drops, groups)


ENGINE = SandboxEngine(
    name="bwrap",
    finder=_find,
    runs_images=False,
    auto_place=1,
)
