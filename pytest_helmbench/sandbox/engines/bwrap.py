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
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import (
    BoxSpec,
    Command,
    Ended,
    Engine,
    EngineKind,
    Limits,
    Streams,
    Unavailable,
)
from pytest_helmbench.sandbox.bubble import AS_USER, Bubble, BubbleKit, own_view, system_view
from pytest_helmbench.sandbox.cgroups import GroupPlace, find_group_place
from pytest_helmbench.sandbox.local import LocalPrograms, host_python, limits_text, local_environment
from pytest_helmbench.sandbox.processes import Launch, supervise, watch_disk, watch_family
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_SHARED_MEMORY_BYTES = 64 * 1024 * 1024
_FIRST_UID = 0x70000000  # above every range that distributions hand out
_UIDS_PER_PROCESS = 1024
# From 5.14 on, processes are counted per namespace of users; before, with all others of the user.
_COUNTS_PIDS = sys.platform == "linux" and [*map(int, re.findall(r"\d+", os.uname().release)[:2])] >= [5, 14]

# Without a namespace for users when we are root: the command then becomes a user of its own, for whom
# the kernel counts processes; root's own are never counted.
_AS_ROOT = (
    *("--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup-try"),
    *("--cap-drop", "ALL", "--cap-add", "CAP_SETUID", "--cap-add", "CAP_SETGID"),
)


class BubblewrapEngine(Engine):
    """Runs programs of this machine in namespaces; images are nothing to it.

    Args:
        start: Program and flags for namespaces and privileges: one of `ways`.
        groups: Where the kernel bounds memory and processes for us; None where it does not.
    """

    def __init__(self, kind: EngineKind, start: tuple[str, ...], groups: GroupPlace | None = None) -> None:
        super().__init__(kind)
        self._local = LocalPrograms()
        self._changes_user = start[1:] == _AS_ROOT
        self._numbers = count()
        self._kit = BubbleKit((*start, *system_view(self._local)), self._local.seccomp, groups)

    async def obstacle(self, image: str | None) -> Unavailable | None:
        """Return that images cannot be used, when one is asked for."""
        if image is None:
            return None
        return Unavailable(
            f"the image {image} needs docker or podman; only {self.name} is used here", "no_image"
        )

    def new_workspace(self, image: str | None = None) -> Workspace:
        """Make an empty folder; as root it belongs to a user of its own."""
        del image  # there is one kind
        uid = None
        if self._changes_user:
            number = next(self._numbers) % _UIDS_PER_PROCESS
            uid = _FIRST_UID + (os.getpid() % 2**18) * _UIDS_PER_PROCESS + number
        return Workspace(self._local.new_folder(), uid=uid, remove_later=self.remove_later)

    async def execute(self, spec: BoxSpec, workspace: Workspace, command: Command, streams: Streams) -> Ended:
        """Run a command in fresh namespaces."""
        limits = command.limits or spec.limits
        settings = limits_text(limits, count_pids=_COUNTS_PIDS)
        settings += "" if workspace.uid is None else f",uid={workspace.uid}"
        bubble = Bubble(self._kit, limits, *os.pipe())
        try:
            launch = Launch(
                argv=bubble.argv(
                    _view(spec, workspace, command, limits),
                    command.argv,
                    command.workdir or spec.workdir,
                    settings,
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

    def python(self, _image: str | None, /) -> str:
        """Return the Python that runs us."""
        return str(host_python())

    async def close(self) -> None:
        """Remove the folders."""
        await super().close()
        await asyncio.to_thread(self._local.close)


def _view(spec: BoxSpec, workspace: Workspace, command: Command, limits: Limits) -> Iterable[str]:
    mounts = [(mount.source, mount.target, mount.read_only) for mount in spec.mounts]
    env = (*local_environment(), *spec.env, *command.env)
    shared = min(limits.disk_bytes, _SHARED_MEMORY_BYTES)
    return own_view(shared, limits.disk_bytes, [(workspace.path, spec.workdir, False), *mounts], env)


async def _find(kind: EngineKind, _pull: Granted[bool]) -> BubblewrapEngine | Unavailable:
    """Try every way in which bubblewrap may work with a command."""
    program = shutil.which("bwrap")
    if program is None or not sys.platform.startswith("linux"):
        return Unavailable("bwrap is not installed")
    why = ""
    groups = await asyncio.to_thread(find_group_place)
    for start in ways(program):
        engine = BubblewrapEngine(kind, start, groups)
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


def ways(program: str) -> Iterable[tuple[str, ...]]:
    """Yield the ways in which bubblewrap may work, with its path, the one with the firmest bounds first."""
    for flags in (*((_AS_ROOT,) if os.getuid() == 0 else ()), *AS_USER):
        yield (program, *flags)


ENGINE = EngineKind(
    name="bwrap",
    finder=_find,
    runs_images=False,
    auto_place=1,
)
