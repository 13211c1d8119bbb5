"""No sandbox at all: a plain process in a temporary folder, for users who say so."""

from __future__ import annotations

import os
import signal
from asyncio import wait_for
from asyncio.subprocess import Process
from contextlib import suppress
from functools import partial
from pathlib import PurePosixPath

from pytest_helmbench.sandbox.box import (
    BoxSpec,
    Command,
    Ended,
    Engine,
    SandboxEngine,
    SandboxSearch,
    Streams,
)
from pytest_helmbench.sandbox.local import (
    LocalEngine,
    launched,
    limits_text,
    local_environment,
)
from pytest_helmbench.sandbox.processes import Launch, supervise
from pytest_helmbench.sandbox.watch import HAS_PROC, watch_disk, watch_family
from pytest_helmbench.sandbox.workspace import Workspace

__all__ = ["ENGINE", "UnprotectedEngine"]

_GRACE_S = 1.0


class UnprotectedEngine(LocalEngine):
    """Runs commands as this user, with resource limits and an empty environment, and nothing else between."""

    def new_workspace(self, image: str | None = None) -> Workspace:
        """Make an empty folder."""
        del image  # there is one kind
        return Workspace(self._local.new_folder(), remove_later=self.remove_later)

    def inside(self, path: str, spec: BoxSpec, workspace: Workspace, /) -> str:
        """Return where a path of the box really lies: in the workspace, or where a mount comes from."""
        asked = PurePosixPath(path)
        places = [(PurePosixPath(spec.workdir), workspace.path)]
        places += [(PurePosixPath(mount.target), mount.source) for mount in spec.mounts]
        for target, source in sorted(places, key=lambda place: len(place[0].parts), reverse=True):
            if asked.is_relative_to(target):
                return str(source / asked.relative_to(target))
        return path

    async def execute(self, spec: BoxSpec, workspace: Workspace, command: Command, streams: Streams) -> Ended:
        """Run a command as this user."""
        limits = command.limits or spec.limits
        settings = limits_text(limits, count_pids=False) + f",reap={os.getpid()}"
        folder = self.inside(command.workdir or spec.workdir, spec, workspace)
        with Workspace(self._local.new_folder()) as temporary:
            env = dict((*local_environment(), *spec.env, *command.env))
            env["TMPDIR"] = str(temporary.path)
            launch = Launch(
                argv=launched(command.argv, folder, settings, str(self._local.launcher)),
                env=env,
                kill=_kill,
                watch=(
                    *((partial(watch_family, limits=limits),) if HAS_PROC else ()),
                    lambda _: watch_disk(workspace, limits),
                ),
            )
            return await supervise(launch, streams, limits)


async def _find(kind: SandboxEngine, search: SandboxSearch) -> Engine:
    return UnprotectedEngine(kind, search)


async def _kill(process: Process) -> None:
    """Let the launcher kill what it has below it, then kill its group."""
    if process.returncode is None:
        process.terminate()
        with suppress(TimeoutError):
            await wait_for(process.wait(), _GRACE_S)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


ENGINE = SandboxEngine(
    name="none",
    finder=_find,
    runs_images=False,
    no_images=", and the sandbox is `none`",
    warning="--helmbench-sandbox=none: code of models and packs ran unprotected, with the rights of this user",
)
