"""The verdict over a workspace, by what the row's checker makes of it in a fresh sandbox."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.evidence.verdicts import Ran, runs_tests, tail, weighed
from pytest_helmbench.benchmarks.packs.families.terminal_task.checking import CHECK_LIMITS, Checking
from pytest_helmbench.benchmarks.packs.families.terminal_task.evaluator_files import Evaluator
from pytest_helmbench.benchmarks.packs.families.terminal_task.finding import CannotStartError, TerminalFinding
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import (
    denied_commands,
    restore,
    take_away,
    terminal_tests_of,
    workdir_of,
)
from pytest_helmbench.benchmarks.packs.task import CommandCheck, FileCheck, PackTask, PlannedFile
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.core.users_word import NOTHING_NAMED, UsersWord
from pytest_helmbench.sandbox.box import Engine
from pytest_helmbench.sandbox.workspace import SandboxError, Workspace

__all__ = ["CHECK_LIMITS", "evaluate_terminal"]

_TIMEOUT_CODE = 124
_REASONS: dict[tuple[Verdict, str | None], str] = {
    (Verdict.FAILED, "tests_failed"): "check_failed",
    (Verdict.ERROR, "broken_off"): "unfit_tests",
    (Verdict.ERROR, "does_not_load"): "unfit_tests",
}
_NO_FILES = Evaluator()
_MISSING_MODULE = re.compile(r"No module named '([\w.]+)'")
_MISSING_PROGRAM = re.compile(rb"(?:^|: )([\w.+-]+): (?:command )?not found\s*$", re.MULTILINE)


async def evaluate_terminal(
    task: PackTask,
    workspace: Workspace,
    engine: Engine,
    *,
    evaluator: Evaluator = _NO_FILES,
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
    # Whoever runs programs of its own may run what it judges.
    beside = ran.seen.mixed if is_tests else True
    if found.verdict is Verdict.PASSED:
        return TerminalFinding(Verdict.PASSED, in_process=beside)
    output = "\n".join((*found.details, tail(ended)))
    reason = _REASONS.get((found.verdict, found.reason), found.reason)
    return TerminalFinding(found.verdict, reason, f"{name}: {found.message}", output, in_process=beside)


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
