"""A pack's own server as a process of this machine: on a free loopback port, and gone when we are."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from asyncio.subprocess import DEVNULL, PIPE, STDOUT, Process
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.bench_pack import VerifierSpec
from pytest_helmbench.benchmarks.bench_packs.verifiers.commands import find_command
from pytest_helmbench.benchmarks.bench_packs.verifiers.running import AbsentVerifierError, Running, health_of
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.users_word import NOTHING_NAMED, UsersWord
from pytest_helmbench.sandbox.fence import Door, Enclosed, Fence, View, program_files
from pytest_helmbench.sandbox.forward import Forward
from pytest_helmbench.sandbox.local import LocalPrograms, launched, local_environment
from pytest_helmbench.sandbox.workspace import SandboxError

__all__ = ["OwnServers", "ProcessVerifier", "start_process", "tail"]

_LOOPBACK = "127.0.0.1"
_GRACE_S = 1.0
_AFTER_KILL_S = 5.0
_KEPT = 16 * 2**10
_SHOWN_LINES = 6
_SHOWN = 600
_TRIES = 3
_PORT_TAKEN = ("EADDRINUSE", "ddress already in use")
_NOTE = "the pack's own server, unprotected on this machine"
_FENCED = "the pack's own server, in a sandbox on this machine"
_GIVE_URL = "run it yourself and give its URL: --helmbench-verifier=URL"
_FROM_OURS = ("PATH", "HOME", "LANG", "LC_ALL", "TZ")

Health = Callable[[str], Awaitable[str | None]]


class ProcessVerifier(Running):
    """A server that we started.

    Args:
        process: The launcher around it.
        port: That it was told to listen on.
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
        super().__init__(f"http://{_LOOPBACK}:{port}", "custom_url", _FENCED if around else _NOTE)
        self._around = around
        self.process = process
        self.said = bytearray()
        """The end of its output."""
        self._programs = programs
        self._listening = asyncio.create_task(self._listen())

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
            elif self.process.returncode is None:
                self.process.terminate()
                self.process.send_signal(signal.SIGCONT)  # it hears nothing while the server has it stopped
                with suppress(TimeoutError):
                    await asyncio.wait_for(self.process.wait(), _GRACE_S)
        finally:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            await self.process.wait()
            # What still holds the pipe outlived the kill; it is not waited for long.
            await asyncio.wait((self._listening,), timeout=_AFTER_KILL_S)
            self._listening.cancel()
            self._programs.close()

    async def admit(self, door: Door) -> None:
        """Open a port of ours in its network; one that is open stays, and one that has died is noticed elsewhere."""
        if self._around is not None and self.process.returncode is None:
            with suppress(OSError):
                await self._around[0].open((door,))

    async def last_words(self) -> str:
        """Return how the server ended, and what it said last."""
        code = await self.process.wait()
        await asyncio.wait((self._listening,), timeout=_GRACE_S)
        return f"its server ended with exit code {code}{tail(bytes(self.said))}"

    async def _listen(self) -> None:
        stream = self.process.stdout
        if stream is None:
            return
        while chunk := await stream.read(_KEPT):
            self.said += chunk
            del self.said[:-_KEPT]


def tail(said: bytes) -> str:
    """Return the last lines of an output as they stand behind a sentence; empty when there are none."""
    lines = [line for line in said.decode(errors="replace").splitlines() if line.strip()]
    return f": {excerpt(' | '.join(lines[-_SHOWN_LINES:]), _SHOWN)}" if lines else ""


@dataclass(frozen=True, slots=True)
class OwnServers:
    """How packs' own servers are run.

    Args:
        node: Path of Node; None looks for it.
        fence: What keeps it in; None to run it with our rights.
        variables: Names of variables that it gets. In the fence it reads what paths in them name.
    """

    node: str | None = None
    fence: Fence | None = None
    variables: UsersWord[tuple[str, ...]] = NOTHING_NAMED


async def start_process(spec: VerifierSpec, folder: Path, own: OwnServers, health: Health) -> ProcessVerifier:
    """Start the server of a verifier and wait until it is well.

    Args:
        spec: Of the verifier.
        folder: With the server in it.
        own: How it is run.
        health: Waits for a health check; returns what it saw when it does not pass.

    Raises:
        AbsentVerifierError: It did not come up.
    """
    if sys.platform == "win32":
        raise AbsentVerifierError("missing_dependency", "cannot run as a process on Windows", _GIVE_URL)
    command = find_command(folder)
    if command is None:
        raise AbsentVerifierError(
            "failed", f"has no server in {folder} that Node or Python could start", _GIVE_URL
        )
    program = own.node or shutil.which("node") or ""
    if command.language == "node" and not program:
        raise AbsentVerifierError("missing_dependency", "cannot run as a process: Node is not installed")
    for _ in range(_TRIES - 1):
        try:
            return await _start_once(spec, folder, own, command.argv(program), health)
        except AbsentVerifierError as error:
            # Between our look for a free port and the server's own, somebody else may take it.
            if not any(words in error.reason for words in _PORT_TAKEN):
                raise
    return await _start_once(spec, folder, own, command.argv(program), health)


async def _start_once(
    spec: VerifierSpec, folder: Path, own: OwnServers, argv: tuple[str, ...], health: Health
) -> ProcessVerifier:
    port = _free_port()
    programs = LocalPrograms()
    started = launched(argv, str(folder), f"CORE=0,reap={os.getpid()}", str(programs.launcher))
    env = _environment(port, programs.new_folder(), own.variables.value)
    descriptors: tuple[int, ...] = ()
    enclosed: Enclosed | None = None
    try:
        if own.fence is not None:
            view = _view(folder, own, argv, env)
            enclosed = await asyncio.to_thread(own.fence.enclose, view, argv)
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
    verifier = await _reached(process, port, programs, enclosed)
    try:
        await _until_well(verifier, spec, health)
    except BaseException:
        await asyncio.shield(verifier.stop())
        raise
    return verifier


async def _reached(
    process: Process, port: int, programs: LocalPrograms, enclosed: Enclosed | None
) -> ProcessVerifier:
    if enclosed is None:
        return ProcessVerifier(process, port, programs)
    forward = Forward(partial(enclosed.socket, "connect", port))
    return ProcessVerifier(process, await forward.listen(), programs, (enclosed, forward))


def _view(folder: Path, own: OwnServers, argv: tuple[str, ...], env: Mapping[str, str]) -> View:
    """Return what a server sees in the fence."""
    named = [Path(env[name]) for name in own.variables.value if name in env]
    reads = (folder, *program_files(argv[0]), *(path for path in named if path.is_absolute()))
    temporary = env["TMPDIR"]
    return View(str(folder), {**env, "HOME": temporary}, reads, (Path(temporary),))


async def _until_well(verifier: ProcessVerifier, spec: VerifierSpec, health: Health) -> None:
    """Wait for the health check, or for the end of the server.

    Raises:
        AbsentVerifierError: It ended, or is not well.
    """
    saw = await health_of(health(verifier.url + spec.health_path), verifier.end())
    if verifier.process.returncode is not None:  # then it was another server that is well
        raise AbsentVerifierError("failed", f"did not come up: {await verifier.last_words()}")
    if saw is not None:
        said = tail(bytes(verifier.said))
        raise AbsentVerifierError("failed", f"did not come up: {saw} at {spec.health_path}{said}")


def _free_port() -> int:
    with socket.socket() as listening:
        listening.bind((_LOOPBACK, 0))
        port: int = listening.getsockname()[1]
        return port


def _environment(port: int, temporary: Path, variables: tuple[str, ...]) -> dict[str, str]:
    """Return the whole environment of a server: made from nothing, so that no key is in it that nobody named."""
    env = dict(local_environment())
    env.update({name: os.environ[name] for name in (*_FROM_OURS, *variables) if name in os.environ})
    env.update(PORT=str(port), LISTEN_PORT=str(port), HOST=_LOOPBACK, TMPDIR=str(temporary))
    # The pack's folder stays as it is, and what is said is seen at once.
    env.update(PYTHONDONTWRITEBYTECODE="1", PYTHONUNBUFFERED="1")
    return env
