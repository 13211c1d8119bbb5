"""Verifiers as processes of this machine, by a command of the user's: on a free loopback port, and gone when we are."""

from __future__ import annotations

import asyncio
import os
import shutil
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from contextlib import suppress
from functools import partial
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.bench_pack import VerifierSpec
from pytest_helmbench.benchmarks.bench_packs.verifiers.running import AbsentVerifierError, Health, Running
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.fence import Enclosed, Fence, FenceView, OpenPort, program_files
from pytest_helmbench.sandbox.forward import Forward
from pytest_helmbench.sandbox.local import LocalPrograms, launched, local_environment
from pytest_helmbench.sandbox.processes import Collected, end_launched
from pytest_helmbench.sandbox.workspace import SandboxError

_LOOPBACK = "127.0.0.1"
_GRACE_S = 1.0
_AFTER_KILL_S = 5.0
_KEPT = 16 * 2**10
_SHOWN_LINES = 6
_SHOWN = 600
_GIVE_URL = "run it yourself and give its URL: --helmbench-verifier=URL"
_PYTHON = ("python", "python3")
_FROM_OURS = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")


class ProcessVerifier(Running):
    """A server that we started.

    Args:
        process: The launcher around it.
        port: The port that the server listens on.
        programs: The folder of this server alone.
        around: The fence around it, with the port that leads in; None for none.
    """

    def __init__(
        self,
        process: Process,
        port: int,
        programs: LocalPrograms,
        around: tuple[Enclosed, Forward] | None = None,
    ) -> None:
        super().__init__(f"http://{_LOOPBACK}:{port}", "custom_url")
        self._around = around
        self.process = process
        self._output = Collected(_KEPT)
        self._programs = programs
        self._listening = asyncio.create_task(self._output.read(process.stdout))

    async def end(self) -> None:
        """Wait for the end of the server."""
        await self.process.wait()

    async def stop(self) -> None:
        """Let the launcher kill the server and all it started, then its group; remove the folder."""
        try:
            if self._around is not None:
                enclosed, forward = self._around
                forward.close()
                await enclosed.end(self.process)
        finally:
            await end_launched(self.process)
            # A process that still holds the pipe outlived the kill: do not wait long for it.
            await asyncio.wait((self._listening,), timeout=_AFTER_KILL_S)
            self._listening.cancel()
            self._programs.close()

    async def open_port(self, port: OpenPort) -> None:
        """Open a port of ours in its network; one that is open stays, and one that has died is noticed elsewhere."""
        if self._around is not None and self.process.returncode is None:
            with suppress(OSError):
                await self._around[0].open((port,))

    async def last_words(self) -> tuple[str, str]:
        ended, code = "", self.process.returncode
        if code is not None:
            await asyncio.wait((self._listening,), timeout=_GRACE_S)
            ended = f"its server ended with exit code {code}"
        return ended, tail(bytes(self._output.data))


def tail(said: bytes) -> str:
    """Return the last lines of an output as they stand behind a sentence; empty when there are none."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return f": {excerpt(' | '.join(lines[-_SHOWN_LINES:]), _SHOWN)}" if lines else ""


async def start_process(
    spec: VerifierSpec, folder: Path, command: tuple[str, ...], fence: Fence | None, health: Health
) -> ProcessVerifier:
    """Start the server of a verifier and wait until it is well.

    Args:
        folder: Where it starts, which it sees.
        command: As the user names it.
        fence: What keeps it in; None to run it with our rights.
        health: Waits for a health check.

    Raises:
        AbsentVerifierError: It did not come up.
    """
    if sys.platform == "win32":
        raise AbsentVerifierError("missing_dependency", "cannot run as a process on Windows", _GIVE_URL)
    name, *arguments = command
    # Python is the one that runs us: packages beside us are found, and no shim stands before it.
    python = sys.executable if name in _PYTHON else None
    program = python or shutil.which(str(folder / name) if "/" in name else name)
    if program is None:
        raise AbsentVerifierError("missing_dependency", f"cannot be started: there is no program {name!r}")
    verifier = await _started((program, *arguments), folder, fence)
    try:
        await verifier.until_well(spec.health_path, health)
    except BaseException:
        await asyncio.shield(verifier.stop())
        raise
    return verifier


async def _started(argv: tuple[str, ...], folder: Path, fence: Fence | None) -> ProcessVerifier:
    port, programs = _free_port(), LocalPrograms()
    started = launched(argv, str(folder), f"CORE=0,reap={os.getpid()}", str(programs.launcher))
    env = _environment(port, programs.new_folder())
    descriptors: tuple[int, ...] = ()
    enclosed: Enclosed | None = None
    try:
        if fence is not None:
            temporary = env["TMPDIR"]
            reads = (folder, *program_files(argv[0]))
            view = FenceView(str(folder), {**env, "HOME": temporary}, reads, (Path(temporary),))
            enclosed = await asyncio.to_thread(fence.enclose, view, argv)
            started, env, descriptors = enclosed.argv, {}, enclosed.descriptors
            enclosed.go()
        process = await asyncio.create_subprocess_exec(
            *started,
            env=env,
            stdin=DEVNULL,
            stdout=PIPE,
            stderr=STDOUT,
            pass_fds=descriptors,
            start_new_session=True,
        )
    except (OSError, SandboxError) as error:
        programs.close()
        if enclosed is not None:
            await enclosed.close()
        raise AbsentVerifierError("failed", f"could not be started ({error})") from error
    if enclosed is None:
        return ProcessVerifier(process, port, programs)
    forward = Forward(partial(enclosed.socket, "connect", port))
    return ProcessVerifier(process, await forward.listen(), programs, (enclosed, forward))


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((_LOOPBACK, 0))
        port: int = listening.getsockname()[1]
        return port


def _environment(port: int, temporary: Path) -> dict[str, str]:
    """Return the whole environment of a server: made from nothing, so that no key is in it."""
    env = dict(local_environment())
    env.update({name: os.environ[name] for name in _FROM_OURS if name in os.environ})
    env.update(PORT=str(port), LISTEN_PORT=str(port), HOST=_LOOPBACK, TMPDIR=str(temporary))
    # The pack's folder stays as it is, and what is said is seen at once.
    env.update(PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
    return env
