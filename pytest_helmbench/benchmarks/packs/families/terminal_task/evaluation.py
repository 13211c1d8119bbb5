"""The verdict over a workspace: the checker runs in a fresh sandbox, and trusts nothing in the workspace."""

from __future__ import annotations

import asyncio
import posixpath
import re
import secrets
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from pytest_helmbench.benchmarks.packs.families.terminal_task.evaluator_files import Evaluator
from pytest_helmbench.benchmarks.packs.families.terminal_task.finding import TerminalFinding
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import (
    capabilities_of,
    denied_commands,
    lay_out,
    restore,
    terminal_tests_of,
    workdir_of,
)
from pytest_helmbench.benchmarks.packs.task import CommandCheck, FileCheck, PackTask, PlannedFile
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.sandbox.box import Box, BoxSpec, Command, Ended, Engine, Limits, Mount
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

__all__ = ["CHECK_LIMITS", "evaluate_terminal"]

_MIB = 1024 * 1024
CHECK_LIMITS = Limits(
    wall_s=600.0,
    cpus=2.0,
    memory_bytes=2048 * _MIB,
    pids=256,
    output_bytes=4 * _MIB,
    disk_bytes=4096 * _MIB,
)
"""Bounds of a checker; the row's own timeout takes the place of `wall_s`."""

_OUTPUT_TAIL = 4_000
_TIMEOUT_CODE = 124
_PYTHON_OPTIONS = ("-I", "-S", "-B", "-c")
_INTERNAL = 3  # pytest's own, but code that the tests import brings it about as well
_OWN_LINE = re.compile(rb"^[0-9a-f]{32} .*\n?", re.MULTILINE)
_ENDED = re.compile(r"ended (\d{1,9}) (\d{1,9}) (\d{1,9}) (.*)")
_FAULTS = {
    4: "pytest cannot use the checker's folder",
    5: "there are no tests",
    70: "the tests cannot be run",
}
_PYTEST_PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")


_NO_FILES = Evaluator()


@dataclass(frozen=True, slots=True)
class _Counts:
    """What the runner of tests says."""

    code: int
    passed: int
    failed: int
    why: str


async def evaluate_terminal(
    task: PackTask,
    workspace: Workspace,
    engine: Engine,
    *,
    evaluator: Evaluator = _NO_FILES,
    assets: Sequence[PlannedFile] = (),
    allowed_commands: Collection[str] = (),
) -> TerminalFinding:
    """Run a task's checker over a workspace.

    Args:
        task: Of terminal_task.
        workspace: As the agent left it; the checker may change it.
        engine: What runs the checker.
        evaluator: Files of the checker.
        assets: Public files of the row; those that are read-only come back before the checker runs.
        allowed_commands: Dangerous commands that the user allows.

    Raises:
        ConfigError: The task is of another family, or has no checker.

    Source:
        Benchmark packs, section 4, terminal_task.
    """
    tests = terminal_tests_of(task)
    denied = denied_commands(task, allowed_commands)
    if denied is not None:
        return TerminalFinding(Verdict.ERROR, "denied_command", denied)
    # The same user's, since the checker reads it; nobody can guess where it will lie, so that no link leads there.
    folder = Workspace(engine.new_workspace(task.environment.image).path, uid=workspace.uid)
    try:
        await asyncio.to_thread(restore, workspace, assets)
        await asyncio.to_thread(lay_out, folder, evaluator.files)
        place = f"/evaluator-{secrets.token_hex(16)}"
        mounts = (Mount(folder.path, place), *_own_pytest(task, f"{place}-packages"))
        spec = replace(_spec(task, workspace, mounts), capabilities=capabilities_of(task, allowed_commands))
        async with await engine.open(spec) as box:
            check = _Check(task, tests.checker, evaluator.entry, box, folder, place, len(mounts) > 1)
            return await check.run()
    except SandboxError as error:
        return TerminalFinding(Verdict.ERROR, "sandbox", excerpt(str(error)))
    finally:
        await asyncio.to_thread(folder.close)


def _own_pytest(task: PackTask, place: str) -> tuple[Mount, ...]:
    """Return the mounts that lend a Python of this machine the pytest that is here."""
    if task.environment.image is not None:
        return ()
    mounts = []
    for name in _PYTEST_PACKAGES:
        spec = find_spec(name)
        source = Path(spec.origin) if spec is not None and spec.origin is not None else Path()
        source = source.parent if source.name == "__init__.py" else source
        if not source.name or not source.exists():
            return ()
        mounts.append(Mount(source, f"{place}/{source.name}"))
    return tuple(mounts)


def _spec(task: PackTask, workspace: Workspace, mounts: tuple[Mount, ...]) -> BoxSpec:
    environment = task.environment
    return BoxSpec(
        image=environment.image,
        workdir=workdir_of(task),
        workspace=workspace,
        mounts=mounts,
        env=(("HOME", "/tmp"),) if environment.image is None else (),
        limits=CHECK_LIMITS,
        label=task.id,
    )


@dataclass(frozen=True, slots=True)
class _Check:
    """One run of a checker."""

    task: PackTask
    checker: CommandCheck | FileCheck
    entry: str | None
    box: Box
    folder: Workspace
    place: str
    lends_pytest: bool

    async def run(self) -> TerminalFinding:
        """Run it and read its end."""
        match self.checker:
            case CommandCheck(command, workdir):
                return await self._run_program(command, "eval.checker.command", workdir)
            case FileCheck("script"):
                return await self._run_script()
            case _:
                return await self._run_tests()

    async def _run_program(
        self, argv: tuple[str, ...], name: str, workdir: str | None = None
    ) -> TerminalFinding:
        secret = secrets.token_hex(16)
        ended = await self._start(argv, secret, workdir=workdir)
        fault = _last_said(ended.stderr, secret)
        if fault is not None:
            return TerminalFinding(Verdict.ERROR, "cannot_start", f"{name}: {excerpt(fault)}")
        return self._stopped(ended, name) or self._finding(ended, name)

    async def _run_script(self) -> TerminalFinding:
        name = "eval.checker.path"
        data = self._entry_data()
        if data is None:
            return TerminalFinding(Verdict.ERROR, "cannot_start", f"{name}: a script is a file")
        script = self._inside()
        if data.startswith(b"#!"):
            self.folder.put(str(self.entry), data, mode=0o755)
            return await self._run_program((script,), name)
        if script.endswith(".py"):
            return await self._run_program((self._python, "-I", "-B", script), name)
        return await self._run_program(("sh", script), name)

    async def _run_tests(self) -> TerminalFinding:
        name = "eval.checker.path"
        secret = secrets.token_hex(16)
        code = _inside_text("run_tests.py")
        box = self.box
        lent = f"{self.place}-packages"
        # Without a sandbox nothing is mounted, and all that is installed here would come along.
        lent = lent if self.lends_pytest and box.inside(f"{lent}/pytest") == f"{lent}/pytest" else ""
        arguments = (box.workdir, box.inside(self.place), self._inside(), lent)
        argv = (self._python, *_PYTHON_OPTIONS, code, *arguments)
        ended = await self._start(argv, secret, stdin=f"{secret}\n".encode())
        fault = _last_said(ended.stderr, secret)
        stopped = self._stopped(ended, name)
        if fault is not None or (stopped is None and _last_said(ended.stdout, secret) is None):
            why = fault or excerpt(ended.stderr[-_OUTPUT_TAIL:].decode(errors="replace"))
            return TerminalFinding(
                Verdict.ERROR, "cannot_start", f"{name}: the tests cannot be started: {why}"
            )
        return stopped or self._tests_finding(ended, secret, name)

    async def _start(
        self, argv: tuple[str, ...], secret: str, *, stdin: bytes = b"", workdir: str | None = None
    ) -> Ended:
        """Run a program that finds nothing of the workspace in its environment."""
        box = self.box
        launch = ("/bin/sh", "-c", _inside_text("launch.sh"), "sh", box.workdir, secret)
        env = (
            ("SECUREBENCH_WORKSPACE", box.workdir),
            ("SECUREBENCH_EVALUATOR", box.inside(self.place)),
            ("PYTHONDONTWRITEBYTECODE", "1"),
            ("PYTHONNOUSERSITE", "1"),
            # Plugins that this machine happens to have take no part in a verdict; those of an image belong to it.
            *((("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),) if self.task.environment.image is None else ()),
        )
        limits = replace(CHECK_LIMITS, wall_s=self._wall_s)
        cwd = posixpath.normpath(posixpath.join(workdir_of(self.task), workdir or ""))
        return await box.run(Command((*launch, *argv), cwd, env, stdin, limits))

    @property
    def _wall_s(self) -> float:
        return self.checker.timeout_s or self.task.environment.timeout_s or CHECK_LIMITS.wall_s

    @property
    def _python(self) -> str:
        return self.box.python if self.box.python.startswith("/") else "@python"

    def _inside(self) -> str:
        """Return what the checker's file is called in the box."""
        return self.box.inside(posixpath.normpath(f"{self.place}/{self.entry or '.'}"))

    def _entry_data(self) -> bytes | None:
        if self.entry in (None, "."):
            return None
        return self.folder.get(str(self.entry), limit_bytes=CHECK_LIMITS.disk_bytes)

    def _stopped(self, ended: Ended, name: str) -> TerminalFinding | None:
        """Return what it means that a checker was stopped; None when it was not."""
        if ended.timed_out or ended.exit_code == _TIMEOUT_CODE:
            after = f" after {self._wall_s:g} s" if ended.timed_out else ""
            return TerminalFinding(Verdict.FAILED, "timeout", f"{name}: stopped{after}", _tail(ended))
        if ended.exit_code is None:
            return TerminalFinding(Verdict.FAILED, "limit", f"{name}: stopped: {ended.reason}", _tail(ended))
        return None

    def _finding(self, ended: Ended, name: str) -> TerminalFinding:
        if ended.exit_code == 0:
            return TerminalFinding(Verdict.PASSED)
        message = f"{name} ended with exit code {ended.exit_code}"
        return TerminalFinding(Verdict.FAILED, "check_failed", message, _tail(ended))

    def _tests_finding(self, ended: Ended, secret: str, name: str) -> TerminalFinding:
        counts = _counts(_last_said(ended.stdout, secret))
        output = _tail(ended)
        if counts is None or counts.code == _INTERNAL:
            message = f"{name}: the tests were broken off (exit code {ended.exit_code})"
            return TerminalFinding(Verdict.FAILED, "broken_off", message, output)
        code, passed, failed = counts.code, counts.passed, counts.failed
        if code == 0 and ended.exit_code == 0 and passed and not failed:
            return TerminalFinding(Verdict.PASSED)
        if code in _FAULTS:
            why = excerpt(counts.why) or _FAULTS[code]
            return TerminalFinding(Verdict.ERROR, "unfit_tests", f"{name}: {why}")
        if code == 0:
            return TerminalFinding(Verdict.FAILED, "no_test_passed", f"{name}: no test has passed", output)
        message = (
            f"{name}: {failed} of {passed + failed} tests failed"
            if failed
            else f"{name}: tests failed to load"
        )
        return TerminalFinding(Verdict.FAILED, "check_failed", message, output)


def _last_said(stream: bytes, secret: str) -> str | None:
    """Return what stands behind the secret in the last line that starts with it; None when none does."""
    mark = f"{secret} ".encode()
    lines = [line for line in stream.split(b"\n") if line.startswith(mark)]
    return lines[-1][len(mark) :].decode(errors="replace") if lines else None


def _counts(said: str | None) -> _Counts | None:
    """Return what the runner says at its end; None when it never came to that."""
    found = _ENDED.fullmatch(said or "")
    return _Counts(int(found[1]), int(found[2]), int(found[3]), found[4]) if found is not None else None


def _tail(ended: Ended) -> str:
    raw = ended.stdout[-_OUTPUT_TAIL:] + b"\n" + ended.stderr[-_OUTPUT_TAIL:]
    return scrub(_OWN_LINE.sub(b"", raw).decode("utf-8", "replace")).strip()


@lru_cache
def _inside_text(name: str) -> str:
    return (
        files("pytest_helmbench.benchmarks.packs.families.terminal_task.inside")
        .joinpath(name)
        .read_text(encoding="utf-8")
    )
