"""The verdict over a workspace: a checker runs over it in a fresh sandbox in which nothing of it is trusted."""

from __future__ import annotations

import asyncio
import posixpath
import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from pytest_helmbench.benchmarks.packs.evidence.verdicts import Ran, runs_tests, tail, weighed
from pytest_helmbench.benchmarks.packs.evidence.witnesses import (
    Witness,
    WitnessSettings,
    opened_witness,
    with_path,
)
from pytest_helmbench.benchmarks.packs.families.terminal_task.check import CannotStartError, TerminalFinding
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import (
    CheckerFiles,
    capabilities_of,
    denied_commands,
    lay_out,
    opened_place,
    restore,
    take_away,
    terminal_tests_of,
    workdir_of,
)
from pytest_helmbench.benchmarks.packs.families.terminal_task.quiet_git import git_environment
from pytest_helmbench.benchmarks.packs.task import CommandCheck, FileCheck, PackTask, PlannedFile
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.users_word import NOTHING_NAMED, UsersWord
from pytest_helmbench.sandbox.box import Box, BoxSpec, Command, Engine, Limits, Mount
from pytest_helmbench.sandbox.closed_programs import closed_programs
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

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

_PYTHON_OPTIONS = ("-I", "-S", "-B", "-c")
_PYTEST_PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")


@dataclass(frozen=True, slots=True)
class Checking:
    """The checker of a row.

    Args:
        task: The row.
        checker: Of the row.
        engine: What runs it.
        evaluator: Its files.
        assets: Public files of the row.
        allowed: Dangerous commands that the user allows.
    """

    task: PackTask
    checker: CommandCheck | FileCheck
    engine: Engine
    evaluator: CheckerFiles
    assets: Sequence[PlannedFile]
    allowed: UsersWord[tuple[str, ...]]

    @property
    def name(self) -> str:
        """The field of the row that holds it."""
        return "eval.checker.command" if isinstance(self.checker, CommandCheck) else "eval.checker.path"

    @property
    def wall_s(self) -> float:
        """Its time limit."""
        return self.checker.timeout_s or self.task.environment.timeout_s or CHECK_LIMITS.wall_s

    async def run(self, workspace: Workspace, *, collects: bool = False) -> Ran:
        """Run it over a workspace, which it may change.

        Raises:
            CannotStartError: There is nothing to start.
            SandboxError: The sandbox failed.
        """
        image, uid = self.task.environment.image, workspace.uid
        # The same user's, since the checker reads it; nobody can guess where it will lie, so that no link leads there.
        folder = Workspace(self.engine.new_workspace(image).path, uid=uid)
        try:
            await asyncio.to_thread(lay_out, folder, self.evaluator.files)
            place = f"/evaluator-{secrets.token_hex(16)}"
            lent = _own_pytest(self.task, f"{place}-packages")
            async with opened_witness(self.engine, image, uid) as witness:
                mounts = (Mount(folder.path, place), witness.mount, *lent)
                spec = self._spec(workspace, mounts)
                if not spec.capabilities:  # whoever makes a root of his own copies its programs
                    spec = replace(spec, mounts=(*mounts, *await closed_programs(self.engine, image)))
                async with await self.engine.open(spec) as box:
                    witness.prepare(WitnessSettings(box.workdir, False, (), collects))
                    run = _Check(self, box, folder, place, witness, lends_pytest=bool(lent))
                    return await run.run()
        finally:
            await asyncio.to_thread(folder.close)

    async def without(self, collects: bool) -> Ran:
        """Run it over a workspace as the agent found it."""
        async with opened_place(self.task, self.engine, CHECK_LIMITS, self.assets, self.allowed) as ground:
            return await self.run(ground.workspace, collects=collects)

    def _spec(self, workspace: Workspace, mounts: tuple[Mount, ...]) -> BoxSpec:
        environment = self.task.environment
        return BoxSpec(
            image=environment.image,
            workdir=workdir_of(self.task),
            workspace=workspace,
            mounts=mounts,
            env=(("HOME", "/tmp"),) if environment.image is None else (),
            limits=CHECK_LIMITS,
            label=self.task.id,
            capabilities=capabilities_of(self.task, self.allowed),
        )


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


@dataclass(frozen=True, slots=True)
class _Check:
    """One run of a checker."""

    checking: Checking
    box: Box
    folder: Workspace
    place: str
    witness: Witness
    lends_pytest: bool

    async def run(self) -> Ran:
        """Run it to its end."""
        match self.checking.checker:
            case CommandCheck(command, workdir):
                return await self._start(with_path(command, self.box.inside(self.witness.place)), workdir)
            case FileCheck("script"):
                return await self._start(self._script())
            case _:
                return await self._start(self._tests())

    def _script(self) -> tuple[str, ...]:
        data = self._entry_data()
        if data is None:
            raise CannotStartError(f"{self.checking.name}: a script is a file")
        script = self._inside()
        if data.startswith(b"#!"):
            self.folder.put(str(self.checking.evaluator.entry), data, mode=0o755)
            return (script,)
        return (self._python, "-B", script) if script.endswith(".py") else ("sh", script)

    def _tests(self) -> tuple[str, ...]:
        box = self.box
        lent = f"{self.place}-packages"
        # Without a sandbox nothing is mounted, and all that is installed here would come along.
        lent = lent if self.lends_pytest and box.inside(f"{lent}/pytest") == f"{lent}/pytest" else ""
        own = box.inside(self.witness.place)
        arguments = (box.workdir, box.inside(self.place), self._inside(), lent, own)
        return (self._python, *_PYTHON_OPTIONS, _inside_text("run_tests.py"), *arguments)

    async def _start(self, argv: tuple[str, ...], workdir: str | None = None) -> Ran:
        """Run a program that finds nothing of the workspace in its environment."""
        box, task = self.box, self.checking.task
        secret = secrets.token_hex(16)
        launch = ("/bin/sh", "-c", _inside_text("launch.sh"), "sh", box.workdir, secret)
        env = (
            ("SECUREBENCH_WORKSPACE", box.workdir),
            ("SECUREBENCH_EVALUATOR", box.inside(self.place)),
            *self.witness.env(box),
            *await asyncio.to_thread(git_environment, box.workspace),
            # Plugins that this machine happens to have take no part in a verdict; those of an image belong to it.
            *((("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1"),) if task.environment.image is None else ()),
        )
        limits = replace(CHECK_LIMITS, wall_s=self.checking.wall_s)
        cwd = posixpath.normpath(posixpath.join(workdir_of(task), workdir or ""))
        with self.witness.listening():
            ended = await box.run(Command((*launch, *argv), cwd, env, limits=limits))
        fault = _last_said(ended.stderr, secret)
        if fault is not None:
            raise CannotStartError(f"{self.checking.name}: {excerpt(fault)}")
        return Ran(ended, self.witness.seen())

    @property
    def _python(self) -> str:
        return self.box.python if self.box.python.startswith("/") else "@python"

    def _inside(self) -> str:
        """Return what the checker's file is called in the box."""
        return self.box.inside(posixpath.normpath(f"{self.place}/{self.checking.evaluator.entry or '.'}"))

    def _entry_data(self) -> bytes | None:
        entry = self.checking.evaluator.entry
        if entry in (None, "."):
            return None
        return self.folder.get(str(entry), limit_bytes=CHECK_LIMITS.disk_bytes)


def _last_said(stream: bytes, secret: str) -> str | None:
    """Return what stands behind the secret in the last line that starts with it; None when none does."""
    mark = f"{secret} ".encode()
    lines = [line for line in stream.split(b"\n") if line.startswith(mark)]
    return lines[-1][len(mark) :].decode(errors="replace") if lines else None


@lru_cache
def _inside_text(name: str) -> str:
    folder = files("pytest_helmbench.benchmarks.packs.families.terminal_task.inside")
    return folder.joinpath(name).read_text(encoding="utf-8")


_TIMEOUT_CODE = 124
_REASONS: dict[tuple[Verdict, str | None], str] = {
    (Verdict.FAILED, "tests_failed"): "check_failed",
    (Verdict.ERROR, "broken_off"): "unfit_tests",
    (Verdict.ERROR, "does_not_load"): "unfit_tests",
}
_NO_FILES = CheckerFiles()
_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")
_MISSING_PROGRAM = re.compile(rb"(?:^|: )([\w.+-]+): (?:command )?not found\s*$", re.MULTILINE)


async def evaluate_terminal(
    task: PackTask,
    workspace: Workspace,
    engine: Engine,
    *,
    evaluator: CheckerFiles = _NO_FILES,
    assets: Sequence[PlannedFile] = (),
    allowed_commands: UsersWord[tuple[str, ...]] = NOTHING_NAMED,
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
    checking = Checking(task, tests.checker, engine, evaluator, assets, allowed_commands)
    try:
        taken = await asyncio.to_thread(take_away, workspace, workdir_of(task))
    except SandboxError as error:  # folders without end
        return TerminalFinding(Verdict.FAILED, "limit", excerpt(str(error)))
    try:
        await asyncio.to_thread(restore, workspace, assets)
        found = await _found(checking, await checking.run(workspace))
    except CannotStartError as error:
        return TerminalFinding(Verdict.ERROR, "cannot_start", str(error))
    except SandboxError as error:
        return TerminalFinding(Verdict.ERROR, "sandbox", excerpt(str(error)))
    return replace(found, taken=taken)


async def _found(checking: Checking, ran: Ran) -> TerminalFinding:
    """Return the verdict over a checker that has run."""
    name, ended, checker = checking.name, ran.ended, checking.checker
    if ended.timed_out or ended.exit_code == _TIMEOUT_CODE:
        after = f" after {checking.wall_s:g} s" if ended.timed_out else ""
        return TerminalFinding(Verdict.FAILED, "timeout", f"{name}: stopped{after}", tail(ended))
    if ended.exit_code is None:
        return TerminalFinding(Verdict.FAILED, "limit", f"{name}: stopped: {ended.reason}", tail(ended))
    is_tests = isinstance(checker, FileCheck) and checker.source == "pytest"
    names_tests = is_tests or (isinstance(checker, CommandCheck) and runs_tests(checker.command))
    found = await weighed(
        ran, checking.without, names_tests=names_tests, excuses=lambda each: _is_packs(each, checking.task)
    )
    if found.verdict is Verdict.PASSED:
        return TerminalFinding(Verdict.PASSED)
    output = "\n".join((*found.details, tail(ended)))
    reason = _REASONS.get((found.verdict, found.reason), found.reason)
    return TerminalFinding(found.verdict, reason, f"{name}: {found.message}", output)


def _is_packs(ran: Ran, task: PackTask) -> bool:
    """Return whether a breakdown that is there from the start is the pack's.

    It is not where something is missing that the agent was to make: a module that the task names, or a program of the
    workspace.
    """
    if ran.seen.broken:
        public = " ".join(map(str, task.public().values()))
        missing = [_MISSING_MODULE.search(why) for _, why in ran.seen.broken]
        words = (found[1].partition(".")[0] for found in missing if found is not None)
        return not any(re.search(rf"\b{re.escape(word)}\b", public) for word in words)
    return _MISSING_PROGRAM.search(ran.ended.stderr) is not None or ran.ended.exit_code not in (126, 127)
