"""An external agent: a program of the user's on this machine, which reaches its model through the relay alone."""

from __future__ import annotations

import asyncio
import os
import shlex
import shutil
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import field
from functools import partial
from pathlib import Path

from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Event
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import excerpt, scrub, without_surrogates
from pytest_helmbench.gateway.relay.relay import RelayAddress
from pytest_helmbench.sandbox.box import Limits, Streams
from pytest_helmbench.sandbox.fence import Enclosed, Fence, FenceView, OpenPort, program_files
from pytest_helmbench.sandbox.forward import HostProxy
from pytest_helmbench.sandbox.local import LocalPrograms, host_python, launched
from pytest_helmbench.sandbox.processes import Launch, end_launched, supervise
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

_KEPT = 16 * 1024


_INTO_THE_FENCE = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "TERM", "USER", "LOGNAME")
_PROXY_PORT = 3128  # in the fence's own network, whose ports are all free but the relay's
_PASSED_ON = (*_INTO_THE_FENCE, "HOME", "SHELL", "SSL_CERT_FILE", "SSL_CERT_DIR")
_NOT_STARTED = (126, 127)  # as shells and our launcher say it
_SHELL = "{shell}"
_SHELL_PROGRAM = """\
#!{} -ISE
import base64, json, sys, urllib.request

if len(sys.argv) < 2:
    sys.exit("usage: shell PROGRAM [ARGUMENT ...]")
given = b"" if sys.stdin is None or sys.stdin.isatty() else sys.stdin.buffer.read()
body = json.dumps({{"argv": sys.argv[1:], "stdin": base64.b64encode(given).decode()}}).encode()
request = urllib.request.Request("{}", body, {{"Authorization": "Bearer {}"}})
with urllib.request.build_opener(urllib.request.ProxyHandler({{}})).open(request) as reply:
    ended = json.load(reply)
sys.stdout.buffer.write(base64.b64decode(ended["stdout"]))
sys.stderr.buffer.write(base64.b64decode(ended["stderr"]))
sys.exit(ended["exit_code"])
"""
"""Runs its arguments in a box, by way of the relay, with what it reads; stopped commands end with 124."""


class AgentCommandError(HelmbenchError):
    """`--helmbench-agent` names nothing that can be started."""


class AgentFailedError(HelmbenchError):
    """An external agent could not be started, or ended with an exit code of its own.

    Args:
        message: For people; it holds nothing of what the agent wrote.
        run: What is known of it; None when it never ran.
    """

    def __init__(self, message: str, run: ExternalRun | None = None) -> None:
        self.run = run
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class AgentCommand:
    """The command of an external agent.

    Args:
        text: As the user wrote it.
        words: Program and arguments, with `{workspace}`, `{task_file}`, `{base_url}`, `{model}` and `{shell}` in them.
    """

    text: str
    words: tuple[str, ...]

    @staticmethod
    def parse(stated: Granted[str], folder: Path) -> AgentCommand:
        """Split a command as a shell would; no shell runs it.

        Args:
            stated: As the user wrote it.
            folder: Where that was. The agent starts in the workspace, so words that name a file from here are made
                absolute.

        Raises:
            AgentCommandError: It cannot be split, is empty, or its program is not there.
        """
        text = stated.value
        try:
            words = shlex.split(text)
        except ValueError as error:
            message = f"--helmbench-agent: {excerpt(text)!r} cannot be split: {str(error).lower()}"
            raise AgentCommandError(f"{message}\n  hint: quote it as in a shell") from error
        if not words:
            raise AgentCommandError("--helmbench-agent: there is no command")
        found = tuple(str(folder / word) if _is_file(folder, word) else word for word in words)
        if shutil.which(found[0]) is None:
            message = f"--helmbench-agent: the program {excerpt(words[0])!r} is not there"
            raise AgentCommandError(f"{message}\n  hint: give its path, or put it on PATH")
        return AgentCommand(text, found)

    @property
    def wants_shell(self) -> bool:
        """Whether it is given a program that runs commands in a box."""
        return any(_SHELL in word for word in self.words)

    def files(self) -> tuple[Path, ...]:
        """Return what it names of this machine: the program, its virtual environment, files among the arguments."""
        program = shutil.which(self.words[0])
        named = [Path(word) for word in self.words[1:] if Path(word).is_absolute() and Path(word).is_file()]
        return (*(program_files(program) if program else ()), *named)

    def argv(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Return program and arguments with their placeholders filled in, one after the other; other braces stay."""
        words = list(self.words)
        for name, value in values.items():
            words = [word.replace(f"{{{name}}}", value) for word in words]
        return tuple(words)


@dataclass(frozen=True, slots=True)
class AgentNeeds:
    """The rights that the user gave an agent beside its model.

    Args:
        variables: Names of variables of the environment.
        mounts: Files and folders that it may read.
        hosts: Machines that it may reach, by HTTP and HTTPS: `NAME` or `NAME:PORT`.
    """

    variables: tuple[str, ...] = ()
    mounts: tuple[Path, ...] = ()
    hosts: tuple[str, ...] = ()

    @staticmethod
    def parse(
        variables: Granted[tuple[str, ...]],
        mounts: Granted[tuple[str, ...]],
        hosts: Granted[tuple[str, ...]],
        folder: Path,
    ) -> AgentNeeds:
        """Return the needs as options say them, paths as written in a folder.

        Raises:
            AgentCommandError: A file is not there.
        """
        paths = tuple(Path(os.path.normpath(folder / Path(mount).expanduser())) for mount in mounts.value)
        for path in paths:
            if not path.exists():
                raise AgentCommandError(f"--helmbench-agent-mount: {excerpt(str(path))} is not there")
        return AgentNeeds(variables.value, paths, hosts.value)


@dataclass(frozen=True, slots=True)
class ExternalTask:
    """The task of an external agent.

    Args:
        address: Where its model is, and the token for it.
        model: Id of the model under test; whatever the agent asks for, this one answers.
        fence: What keeps it in; None to run it with our rights.
        open_ports: The ports that it reaches then.
        needs: What else it is given then.
    """

    message: str
    workspace: Workspace
    address: RelayAddress
    model: str
    wall_s: float = 3600.0
    fence: Fence | None = None
    open_ports: tuple[OpenPort, ...] = ()
    needs: AgentNeeds = field(default_factory=AgentNeeds)


@dataclass(frozen=True, slots=True)
class ExternalRun:
    """How an external agent ended. The workspace that it left is judged.

    Args:
        exit_code: None when it was killed at its time limit.
        stdout_tail: Its last words, scrubbed.
    """

    exit_code: int | None
    wall_s: float
    stdout_tail: str
    stderr_tail: str

    def events(self) -> tuple[Event, ...]:
        """Return it as a transcript; its calls are on record as such."""
        payload = {
            "exit_code": self.exit_code,
            "wall_s": round(self.wall_s, 3),
            "stdout": self.stdout_tail,
            "stderr": self.stderr_tail,
        }
        return (Event("end", payload),)


async def run_external(command: AgentCommand, task: ExternalTask) -> ExternalRun:
    """Run an agent to its end; then nothing of it is left, nor when this process is killed.

    Its environment is made from nothing: no key of ours is in it.

    Raises:
        AgentFailedError: It cannot be started, or its exit code is not 0.
        asyncio.CancelledError: The item ends.
    """
    programs = await asyncio.to_thread(LocalPrograms)
    if task.fence is not None and task.workspace.uid is not None:
        await asyncio.to_thread(_hand_over, task.workspace.path, os.getuid())
    try:
        (programs.folder / "tmp").mkdir()
        (programs.folder / "task.md").write_text(without_surrogates(task.message), encoding="utf-8")
        shell = programs.folder / "shell"
        shell.write_text(
            _SHELL_PROGRAM.format(host_python(), f"{task.address.base_url}/shell", task.address.token)
        )
        shell.chmod(0o755)
        run = await _run(command, task, programs)
    finally:
        await asyncio.to_thread(programs.close)
    if task.workspace.uid is not None:
        await asyncio.to_thread(_hand_over, task.workspace.path, task.workspace.uid)
    if run.exit_code in _NOT_STARTED:
        said = excerpt(run.stderr_tail.rpartition("\n")[2])
        raise AgentFailedError(f"the agent cannot be started: {said or excerpt(command.text)}")
    if run.exit_code not in (0, None):
        message = f"the agent ended with exit code {run.exit_code}: {excerpt(command.text)}"
        raise AgentFailedError(f"{message}\n  hint: its last words on stderr are shown with the item", run)
    return run


async def _run(command: AgentCommand, task: ExternalTask, programs: LocalPrograms) -> ExternalRun:
    limits, streams = Limits(wall_s=task.wall_s, output_bytes=_KEPT), Streams(keeps_end=True)
    enclosed = await asyncio.to_thread(_enclosed, command, task, programs.folder)
    proxy = HostProxy(task.needs.hosts)
    try:
        if enclosed is None:
            # The launcher ends with us, and takes with it what has left the agent's process group.
            argv, env = _command_line(command, task, programs.folder, _PASSED_ON)
            settings = f"CORE=0,reap={os.getpid()}"
            argv = launched(argv, str(task.workspace.path), settings, str(programs.launcher))
            launch = Launch(argv, env, end_launched)
        else:
            begin = partial(_begin, enclosed, task, proxy)
            launch = Launch(enclosed.argv, {}, enclosed.end, descriptors=enclosed.descriptors, watch=(begin,))
        ended = await supervise(launch, streams, limits)
    except SandboxError as error:
        raise AgentFailedError(f"the agent cannot be started: {excerpt(str(error))}") from error
    finally:
        proxy.close()
        if enclosed is not None:
            await enclosed.close()
    out, err = (scrub(said.decode("utf-8", "replace")).strip() for said in (ended.stdout, ended.stderr))
    return ExternalRun(ended.exit_code, ended.wall_s, out, err)


async def _begin(enclosed: Enclosed, task: ExternalTask, proxy: HostProxy, _pid: int) -> str:
    """Open what an agent in the fence may reach, then have it started; it is stopped for no reason of ours."""
    await enclosed.open(task.open_ports)
    if task.needs.hosts:
        await proxy.serve(await enclosed.socket("listen", _PROXY_PORT))
    enclosed.go()
    await asyncio.Event().wait()
    return ""


def _enclosed(command: AgentCommand, task: ExternalTask, folder: Path) -> Enclosed | None:
    """Return how an agent is started in the fence; None where it runs with our rights."""
    if task.fence is None:
        return None
    argv, env = _command_line(command, task, folder, _INTO_THE_FENCE)
    env.update({name: os.environ[name] for name in task.needs.variables if name in os.environ})
    env["HOME"] = env["TMPDIR"]
    if task.needs.hosts:
        names = ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy")
        env.update(dict.fromkeys(names, f"http://127.0.0.1:{_PROXY_PORT}"))
    reads = (folder / "task.md", folder / "shell", *command.files(), *task.needs.mounts)
    writes = (task.workspace.path, folder / "tmp")
    return task.fence.enclose(FenceView(str(task.workspace.path), env, reads, writes), argv)


def _command_line(
    command: AgentCommand, task: ExternalTask, folder: Path, passed: Iterable[str]
) -> tuple[tuple[str, ...], dict[str, str]]:
    """Return program and arguments of an agent, and its whole environment, into which some variables of ours pass."""
    values = {
        "workspace": str(task.workspace.path),
        "task_file": str(folder / "task.md"),
        "shell": str(folder / "shell"),
        "base_url": task.address.base_url,
        "model": task.model,
    }
    return command.argv(values), {
        **{name: os.environ[name] for name in passed if name in os.environ},
        **dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(folder / "tmp")),
        **dict.fromkeys(("NO_PROXY", "no_proxy"), "127.0.0.1,localhost"),
        **dict.fromkeys(("OPENAI_BASE_URL", "OPENAI_API_BASE"), values["base_url"]),
        "OPENAI_API_KEY": task.address.token,
        "HELMBENCH_MODEL": values["model"],
        "HELMBENCH_WORKSPACE": values["workspace"],
        "HELMBENCH_TASK_FILE": values["task_file"],
    }


def _is_file(folder: Path, word: str) -> bool:
    with suppress(OSError, ValueError):
        return not Path(word).is_absolute() and (folder / word).is_file()
    return False


def _hand_over(place: Path, uid: int) -> None:
    """Give a folder and all in it to a user: the one that commands in the sandbox are, or us."""
    os.chown(place, uid, uid, follow_symlinks=False)
    for _, folders, names, descriptor in os.fwalk(place, follow_symlinks=False):
        for name in (*folders, *names):
            with suppress(FileNotFoundError):
                os.chown(name, uid, uid, dir_fd=descriptor, follow_symlinks=False)
