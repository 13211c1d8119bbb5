"""The verdict over a workspace: a checker runs over it in a fresh sandbox in which nothing of it is trusted."""

from __future__ import annotations

import asyncio
import posixpath
import re
import secrets
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow, FindingError
from pytest_helmbench.benchmarks.packs.evidence.verdicts import (
    NOT_STARTED,
    CommandJudge,
    CommandRun,
    runs_tests,
    tail,
)
from pytest_helmbench.benchmarks.packs.evidence.witnesses import (
    CHECK_LIMITS,
    Witness,
    WitnessSettings,
    lay_out,
    open_witness,
)
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.families.terminal_task.check import TerminalTests
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import (
    EVALUATORS,
    CheckerFiles,
    open_place,
    remove_strays,
    spec_of,
)
from pytest_helmbench.benchmarks.packs.task import CommandCheck, FileCheck
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.sandbox.box import Command, Mount
from pytest_helmbench.sandbox.workspace import EntryKind, SandboxError, Workspace

_PYTHON_OPTIONS = ("-I", "-S", "-B", "-c")
_PYTEST_PACKAGES = ("pytest", "_pytest", "py", "pluggy", "iniconfig", "packaging", "pygments")
_TIMEOUT_CODE = 124
_REASONS: dict[tuple[Verdict, str | None], str] = {
    (Verdict.FAILED, "tests_failed"): "check_failed",
    (Verdict.ERROR, "broken_off"): "unfit_tests",
    (Verdict.ERROR, "does_not_load"): "unfit_tests",
}
_NO_FILES = CheckerFiles()
_MISSING = re.compile(
    r"No module named '(?P<module>[\w.]+)'|not found: (?P<program>\S+)"
    r"|(?:^|: |command |open |execute )(?P<quote>['‘])?(?P<path>[^\s:'‘’]+)['’]?: "
    r"(?:(?P<search>(?:command )?not found)|No such file|[Pp]ermission denied|cannot execute)",
    re.MULTILINE,
)


async def evaluate_terminal(
    row: AgentRow, workspace: Workspace, evaluator: CheckerFiles = _NO_FILES
) -> AgentFinding:
    """Run a row's checker over a workspace.

    Args:
        row: Of terminal_task; those of its assets that are read-only come back before the checker runs.
        workspace: As the agent left it; the checker may change it.

    Raises:
        ConfigError: The row is of another family.
        SandboxError: The sandbox failed.

    Source:
        Benchmark packs, section 4, terminal_task.
    """
    checker = RowChecker(row, check_of(row.task, TerminalTests).checker, evaluator)
    try:
        removed = await asyncio.to_thread(remove_strays, workspace, spec_of(row).workdir)
    except SandboxError as error:
        return AgentFinding(Verdict.FAILED, "limit", excerpt(str(error)))
    try:
        await asyncio.to_thread(lay_out, workspace, [item for item in row.assets if item.read_only])
        return replace(await checker.finding(await checker.run(workspace)), removed=removed)
    except FindingError as error:
        return error.finding


@dataclass(frozen=True, slots=True)
class RowChecker:
    """The checker of a row, with its files."""

    row: AgentRow
    checker: CommandCheck | FileCheck
    evaluator: CheckerFiles

    @property
    def name(self) -> str:
        """The field of the row that holds it."""
        return "eval.checker.command" if isinstance(self.checker, CommandCheck) else "eval.checker.path"

    @property
    def wall_s(self) -> float:
        """Its time limit."""
        return self.checker.timeout_s or self.row.task.environment.timeout_s or CHECK_LIMITS.wall_s

    async def finding(self, ran: CommandRun) -> AgentFinding:
        """Return the verdict over a checker that has run."""
        ended, checker = ran.ended, self.checker
        if ended.timed_out or ended.exit_code == _TIMEOUT_CODE:
            after = f" after {self.wall_s:g} s" if ended.timed_out else ""
            return AgentFinding(Verdict.FAILED, "timeout", f"{self.name}: stopped{after}", tail(ended))
        if ended.exit_code is None:
            message = f"{self.name}: stopped: {ended.reason}"
            return AgentFinding(Verdict.FAILED, "limit", message, tail(ended))
        is_tests = isinstance(checker, FileCheck) and checker.source == "pytest"
        names_tests = is_tests or (isinstance(checker, CommandCheck) and runs_tests(checker.command))
        found = await CommandJudge(self.name, ran, self.without, names_tests, self._is_packs).finding()
        return replace(found, reason=_REASONS.get((found.verdict, found.reason), found.reason))

    def _is_packs(self, ran: CommandRun) -> bool:
        """Return whether a breakdown that is there from the start is the pack's.

        It is not where a module or a file is missing that the task names: the agent was to make it. Programs are
        looked for outside of the workspace, unless their folder is named. Nor is it where no test was reached: what
        comes before may be the agent's work.
        """
        ended, why = ran.ended, "\n".join(why for _, why in ran.seen.broken)
        public = " ".join(map(str, self.row.task.public().values()))
        missing = list(_MISSING.finditer(why or ended.stderr.decode("utf-8", "replace")))
        for found in missing if why else missing[-1:]:  # the exit code is that of the last command
            module, path = (found["module"] or "").partition(".")[0], found["path"] or found["program"] or ""
            is_searched = "/" not in path and (found["program"] or found["quote"] or found["search"])
            word, before = module or posixpath.basename(path), "/" if is_searched else r"(?<![\w.-])"
            if word and re.search(rf"{before}{re.escape(word)}(?![\w-])", public):
                return False
        return bool(ran.seen.sessions) or ended.exit_code in NOT_STARTED

    async def run(self, workspace: Workspace, *, collects: bool = False) -> CommandRun:
        """Run it over a workspace, which it may change.

        Raises:
            FindingError: There is nothing to start.
            SandboxError: The sandbox failed.
        """
        spec, engine = spec_of(self.row), self.row.engine
        home = Workspace(engine.new_workspace(spec.image).path, uid=workspace.uid)
        place = f"/evaluator-{secrets.token_hex(16)}"
        try:
            home.put_folder("evaluator")
            folder = Workspace(home.path / "evaluator", uid=workspace.uid)
            await asyncio.to_thread(lay_out, folder, self.evaluator.files)
            mounts = [Mount(folder.path, place)]
            if self.evaluator.inputs:
                await asyncio.to_thread(lay_out, home, self.evaluator.inputs)
                # Settings of their own: pytest does not look for those of the workspace above them.
                home.put(f"{EVALUATORS}/pytest.ini", b"[pytest]\n")
                mounts.append(Mount(home.path / EVALUATORS, f"{spec.workdir}/{EVALUATORS}"))
            lent = () if spec.image is not None else _own_pytest(f"{place}-packages")
            spec = replace(spec, mounts=(*mounts, *lent))
            settings = WitnessSettings(False, (), collects, place)
            async with open_witness(engine, spec, workspace, settings) as witness:
                argv = self._argv(witness, folder, place, lends_pytest=bool(lent))
                return await self._start(witness, place, argv)
        finally:
            await asyncio.to_thread(home.close)

    async def without(self, collects: bool) -> CommandRun:
        """Run it over a workspace as the agent found it."""
        async with open_place(self.row) as (_, workspace):
            return await self.run(workspace, collects=collects)

    def _argv(
        self, witness: Witness, folder: Workspace, place: str, *, lends_pytest: bool
    ) -> tuple[str, ...]:
        """Return how the checker is called in its box."""
        box, entry = witness.box, self.evaluator.entry
        if isinstance(self.checker, CommandCheck):
            return witness.with_path(self.checker.command)
        python = box.python if box.python.startswith("/") else "@python"
        path = posixpath.normpath(f"{place}/{entry or '.'}")
        if self.checker.source == "pytest":
            lent = f"{place}-packages" if lends_pytest else ""
            arguments = (box.workdir, place, path, lent, witness.place)
            return (python, *_PYTHON_OPTIONS, _inside_text("run_tests.py"), *arguments)
        data = None
        if entry is not None and entry != ".":
            data = folder.get(entry, limit_bytes=CHECK_LIMITS.disk_bytes)
        if entry is None or data is None:
            raise self._cannot_start("a script is a file")
        if data.startswith(b"#!"):
            folder.put(entry, data, mode=0o755)
            return (path,)
        return (python, "-B", path) if path.endswith(".py") else ("sh", path)

    async def _start(self, witness: Witness, place: str, argv: tuple[str, ...]) -> CommandRun:
        """Run a program that finds nothing of the workspace in its environment, and git that runs nothing of it."""
        box, secret = witness.box, secrets.token_hex(16)
        launch = ("/bin/sh", "-c", _inside_text("launch.sh"), "sh", box.workdir, secret)
        limits = replace(CHECK_LIMITS, wall_s=self.wall_s)

        async def listed(names: Sequence[str]) -> bytes:
            paths = (f"{box.workdir}/{name}" for name in names)
            command = Command((*launch, "sh", "-c", _GIT_LISTS, "sh", *paths), "/", limits=CHECK_LIMITS)
            return (await box.run(command)).stdout

        env = (
            ("SECUREBENCH_WORKSPACE", box.workdir),
            ("SECUREBENCH_EVALUATOR", place),
            *self._test_folder(place),
            *await _quiet_settings(box.workspace, listed),
        )
        workdir = self.checker.workdir if isinstance(self.checker, CommandCheck) else None
        cwd = posixpath.normpath(posixpath.join(box.workdir, workdir or ""))
        ran = await witness.run((*launch, *argv), cwd, env, limits)
        mark = f"{secret} ".encode()
        said = [line for line in ran.ended.stderr.split(b"\n") if line.startswith(mark)]
        if said:
            fault = said[-1].removeprefix(mark).decode(errors="replace")
            raise self._cannot_start(excerpt(fault))
        return ran

    def _cannot_start(self, why: str) -> FindingError:
        return FindingError(Verdict.ERROR, "cannot_start", f"{self.name}: {why}")

    def _test_folder(self, place: str) -> tuple[tuple[str, str], ...]:
        """Return what tells a checker that is a file or folder where its tests are: a script has them beside it."""
        entry = self.evaluator.entry
        if entry is None or not isinstance(self.checker, FileCheck):
            return ()
        beside = "tests" if self.checker.source == "script" else "."
        return (("TEST_DIR", posixpath.normpath(posixpath.join(place, posixpath.dirname(entry), beside))),)


def _own_pytest(place: str) -> tuple[Mount, ...]:
    """Return the mounts that lend a Python of this machine the pytest that is here."""
    mounts = []
    for name in _PYTEST_PACKAGES:
        spec = find_spec(name)
        source = Path(spec.origin) if spec is not None and spec.origin is not None else Path()
        source = source.parent if source.name == "__init__.py" else source
        if not source.name or not source.exists():
            return ()
        mounts.append(Mount(source, f"{place}/{source.name}"))
    return tuple(mounts)


@lru_cache
def _inside_text(name: str) -> str:
    folder = files("pytest_helmbench.benchmarks.packs.families.terminal_task.inside")
    return folder.joinpath(name).read_text(encoding="utf-8")


_GIT_LISTS = """
command -v git >/dev/null || exit 0
for file; do git config --file "$file" --no-includes --list -z 2>/dev/null; printf '\\0=\\0'; done
"""
"""Lists the settings of files, each file ended by a field `=`."""

_GIT_FILES = ("config", "config.worktree")
_BESIDE_GIT_FILES = ("HEAD", "objects", "refs")  # in a folder of git's
_LARGEST_GIT_FILE = 1024 * 1024
_MOST_GIT_FILES = 200
_MOST_CHARACTERS = 100_000
_VARIABLES = 50  # characters of the names of the two variables that hold a setting
_EMPTY_GIT_FILE = b"[core]\n\trepositoryformatversion = 0\n"
_ALWAYS_SET = {
    **dict.fromkeys(("core.hooksPath", "core.attributesFile"), "/dev/null"),
    **dict.fromkeys(
        ("core.fsmonitor", "core.editor", "core.sshCommand", "core.askPass", "gpg.program"), "false"
    ),
    **dict.fromkeys(("diff.external", "credential.helper"), ""),
    **{"safe.directory": "*", "core.pager": "cat", "gc.auto": "0"},
}
_PLAIN_GIT = (
    *(("GIT_CONFIG_NOSYSTEM", "1"), ("GIT_CONFIG_GLOBAL", "/dev/null"), ("GIT_TERMINAL_PROMPT", "0")),
    *(("GIT_PAGER", "cat"), ("PAGER", "cat"), ("GIT_OPTIONAL_LOCKS", "0"), ("GIT_EXTERNAL_DIFF", "")),
)
_REPLACEMENTS = {
    **dict.fromkeys(("textconv", "clean", "smudge", "pager"), "cat"),
    **dict.fromkeys(("process", "external", "difffilter", "helper"), ""),
    **{"required": "false", "hookspath": "/dev/null", "templatedir": "", "fsmonitor": "false"},
    **dict.fromkeys(("command", "cmd", "driver", "program", "editor", "sshcommand", "askpass"), "false"),
    **dict.fromkeys(("uploadpack", "receivepack", "vcs", "gitproxy", "defaultkeycommand"), "false"),
    **dict.fromkeys(("alternaterefscommand", "packobjectshook", "browser", "proxycommand"), "false"),
}
"""By the last word of a setting that names a program: what represents it."""


async def _quiet_settings(
    workspace: Workspace, listed: Callable[[Sequence[str]], Awaitable[bytes]]
) -> tuple[tuple[str, str], ...]:
    """Return the environment of a checker; includes of other settings are taken out of the workspace's own.

    Raises:
        SandboxError: The workspace cannot be read or written.
    """
    entries = [entry for entry in workspace.entries() if entry.kind is not EntryKind.OTHER]
    names = {entry.name for entry in entries}
    found: dict[str, int] = {}
    for entry in entries:
        folder, slash, name = entry.name.rpartition("/")
        if entry.kind is EntryKind.FILE and name in _GIT_FILES:
            if names.isdisjoint(f"{folder}{slash}{sign}" for sign in _BESIDE_GIT_FILES):
                continue
            if len(found) == _MOST_GIT_FILES or entry.size_bytes > _LARGEST_GIT_FILE:
                workspace.put(entry.name, _EMPTY_GIT_FILE, mode=entry.mode)
            else:
                found[entry.name] = entry.mode
    settings = dict(_ALWAYS_SET)
    if found:
        *texts, rest = (await listed(tuple(found))).decode("utf-8", "surrogateescape").split("\0=\0")
        for path, mode in tuple(found.items())[len(texts) :] if texts or rest else ():
            workspace.put(path, _EMPTY_GIT_FILE, mode=mode)  # there was too much to list
        for (path, mode), text in zip(found.items(), texts, strict=False):
            own = [setting.partition("\n") for setting in text.split("\0") if setting]
            kept = [each for each in own if each[0].partition(".")[0] not in ("include", "includeif")]
            if len(kept) < len(own):
                content = "".join(_setting_text(*each) for each in kept)
                workspace.put(path, content.encode("utf-8", "surrogateescape"), mode=mode)
            settings.update(pair for name, _, value in kept for pair in _replacements(name, value))
    if sum(len(name) + len(value) + _VARIABLES for name, value in settings.items()) > _MOST_CHARACTERS:
        settings = dict(_ALWAYS_SET)  # more than an environment holds
        for path, mode in found.items():
            workspace.put(path, _EMPTY_GIT_FILE, mode=mode)
    return (
        *_PLAIN_GIT,
        ("GIT_CONFIG_COUNT", str(len(settings))),
        *((f"GIT_CONFIG_KEY_{place}", key) for place, key in enumerate(settings)),
        *((f"GIT_CONFIG_VALUE_{place}", value) for place, value in enumerate(settings.values())),
    )


def _replacements(name: str, value: str) -> Iterator[tuple[str, str]]:
    section, key = name.partition(".")[0], name.rpartition(".")[2]
    if section == "pager":
        yield name, "cat"
    elif section in ("alias", "submodule", "credential") and value.startswith("!"):
        yield name, "" if section == "credential" else "!false"
    elif key in _REPLACEMENTS and section not in ("alias", "user"):
        yield name, _REPLACEMENTS[key]


def _setting_text(name: str, is_set: str, value: str) -> str:
    """Return a setting as a file holds it."""
    section, _, rest = name.partition(".")
    inner, dot, key = rest.rpartition(".")
    head = f'{section} "{_escaped(inner)}"' if dot else section
    text = _escaped(value).replace("\n", "\\n")
    return f'[{head}]\n\t{key} = "{text}"\n' if is_set else f"[{head}]\n\t{key}\n"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')
