"""The verdict over a reply's code: it runs in one sandbox, its tests in another, and only data passes between.

The tests' sandbox says how they ended, over a channel that no code of the reply has an end of, with a word that it
never learns. See the modules in `inside` for what may pass.
"""

from __future__ import annotations

import asyncio
import builtins
import json
import os
import re
import secrets
from contextlib import suppress
from dataclasses import replace
from typing import TypedDict

from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import (
    CodeBlock,
    code_blocks,
    without_thoughts,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.check import CodeTests, code_tests_of
from pytest_helmbench.benchmarks.packs.families.code_completion.finding import CodeFinding, CodePhase
from pytest_helmbench.benchmarks.packs.families.code_completion.other_languages import evaluate_in_image
from pytest_helmbench.benchmarks.packs.families.code_completion.programs import (
    CANDIDATE,
    TESTER,
    Job,
    program,
)
from pytest_helmbench.benchmarks.packs.task import PackTask
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.sandbox.box import Box, BoxSpec, Command, Ended, Engine, Limits

__all__ = ["CODE_LIMITS", "code_image", "evaluate_code"]

_MIB = 1024 * 1024
CODE_LIMITS = Limits(wall_s=30.0, memory_bytes=512 * _MIB, pids=64, output_bytes=_MIB, disk_bytes=64 * _MIB)
"""Bounds of the candidate, and as much for its tests; the row's own timeout takes the place of `wall_s`."""

_STOCK = re.compile(r"(docker\.io/)?(library/)?python(:(?!2)[\w.-]+)?(@sha256:[0-9a-f]+)?")
_NO_CODE = frozenset(
    (
        *(
            "bash",
            "sh",
            "shell",
            "zsh",
            "console",
            "terminal",
            "powershell",
            "output",
            "text",
            "txt",
            "plaintext",
        ),
        *(
            "log",
            "json",
            "yaml",
            "toml",
            "diff",
            "markdown",
            "md",
            "html",
            "css",
            "javascript",
            "js",
            "typescript",
        ),
        *("ts", "sql"),
    )
)
_LAST_WORDS_S = 0.5
_HEAD_BYTES = 8
_TEST_LINE = re.compile(r"at line (\d+) of the tests\Z")
_NAME = "{}"
_WORD = re.compile(r"\w+")
_ONE_NAME = re.compile(r"(?:: |')?(\w+)'?")
_UNFIT = "not expressible"


def code_image(task: PackTask) -> str | None:
    """Return the image that a row's code needs; None where this machine's Python does."""
    image = task.environment.image
    if image is not None and code_tests_of(task).language == "python" and _STOCK.fullmatch(image):
        return None
    return image


async def evaluate_code(
    task: PackTask, reply: str, engine: Engine, *, limits: Limits = CODE_LIMITS, parity: bool = False
) -> CodeFinding:
    """Run a row's tests against the code in a reply.

    Args:
        task: Of code_completion.
        reply: The model's text.
        engine: What runs the code; `engine.obstacle(code_image(task))` says beforehand whether it can.
        limits: Of each of the two processes; the row's own timeout wins.
        parity: The whole reply is the code, as the published rule has it: fences and bare bodies fail.

    Raises:
        SandboxError: A sandbox could not be made.
        TypeError: The task is of another family.
    """
    tests = code_tests_of(task)
    image = code_image(task)
    limits = replace(limits, wall_s=task.environment.timeout_s or limits.wall_s)
    text = reply if parity else without_thoughts(reply)
    if not text.strip():
        finding = CodeFinding(Verdict.FAILED, "no_code", CodePhase.EXTRACT, "the reply holds no code")
    elif tests.language != "python":
        finding = await evaluate_in_image(task, tests, text, engine, limits, parity=parity)
    else:
        spec = BoxSpec(image=image, limits=limits, label=task.id)
        async with await engine.open(spec) as tester, await engine.open(spec) as candidate, engine.places:
            finding = await _Talk(task, tests, text, tester, candidate, parity).judged()
    return replace(finding, image_used=image == task.environment.image)


class _Report(TypedDict):
    """What the process of the tests says of its end; only it can, see `inside/verdict.py`."""

    verdict: str
    phase: str
    message: str
    detail: str
    name: list[str]
    cause: str


@dataclass(frozen=True, slots=True)
class _Talk:
    """One candidate and its tests.

    Args:
        task: The row.
        tests: Of the row.
        text: The reply, without thoughts.
        tester: Where the tests run.
        candidate: Where the reply's code runs.
        parity: The text is the code as it stands.
    """

    task: PackTask
    tests: CodeTests
    text: str
    tester: Box
    candidate: Box
    parity: bool

    async def judged(self) -> CodeFinding:
        """Let the two talk; return what the tests say of it."""
        token = secrets.token_hex(16)
        job: Job = {
            "token": token,
            "tests": self.tests.code,
            "starter": str(self.task.input_value("starter_code") or ""),
            "blocks": [] if self.parity else _python_blocks(code_blocks(self.text)),
            "is_code": self.parity,
            "reply": self.text,
        }
        ended, other = await self._talk(json.dumps(job).encode("ascii"))
        report = _report(ended.stderr, token)
        if report is None:
            return _broken_off(ended)
        return self._finding(report, other)

    async def _talk(self, job: bytes) -> tuple[Ended, Ended | None]:
        """Run both; return how the tests ended, and the candidate if that is known."""
        to_tester, to_candidate = os.pipe(), os.pipe()
        feeding = asyncio.create_task(asyncio.to_thread(_feed, os.dup(to_tester[1]), job))
        testing = asyncio.create_task(
            self.tester.run_joined(_command(self.tester, TESTER), stdin=to_tester[0], stdout=to_candidate[1])
        )
        running = asyncio.create_task(
            self.candidate.run_joined(
                _command(self.candidate, CANDIDATE), stdin=to_candidate[0], stdout=to_tester[1]
            )
        )
        # While we hold an end open, the other side never learns that a process is gone.
        testing.add_done_callback(lambda _: _close(to_tester[0], to_candidate[1]))
        running.add_done_callback(lambda _: _close(to_candidate[0], to_tester[1]))
        try:
            await asyncio.wait((testing, running), return_when=asyncio.FIRST_COMPLETED)
            if running.done() and running.exception() is not None:
                testing.cancel()
            ended = await testing if not testing.cancelled() else None
            # Left alone, it ends by itself; and how it ended may be why.
            await asyncio.wait((running,), timeout=_LAST_WORDS_S)
        finally:
            for task in (testing, running):
                task.cancel()
            await asyncio.wait((testing, running))
            await feeding
        other = None if running.cancelled() else running.result()
        assert ended is not None
        return ended, other

    def _finding(self, report: _Report, other: Ended | None) -> CodeFinding:
        verdict, phase = Verdict(report["verdict"]), CodePhase(report["phase"])
        if verdict is Verdict.PASSED:
            return CodeFinding(verdict)
        message, named = _messages(report, self.task)
        line, output = self._line_of(report["message"]), scrub(report["detail"]).strip()
        if verdict is Verdict.ERROR:
            reason = "not_expressible" if message.startswith(_UNFIT) else "unfit_tests"
            return CodeFinding(verdict, reason, phase, message, output, named=named)
        if other is not None and other.reason:
            reason = "timeout" if other.timed_out else "limit"
            return CodeFinding(verdict, reason, phase, f"the code was stopped: {other.reason}", output)
        reason = "does_not_load" if phase is CodePhase.LOAD else "tests_failed"
        return CodeFinding(verdict, reason, phase, message, output, line=line, named=named)

    def _line_of(self, message: str) -> str:
        """Return the line of the tests that a message speaks of; empty for none."""
        found = _TEST_LINE.search(message)
        lines = self.tests.code.splitlines()
        return excerpt(lines[int(found[1]) - 1]) if found and 0 < int(found[1]) <= len(lines) else ""


def _messages(report: _Report, task: PackTask) -> tuple[str, str]:
    """Return what a report says to anybody, and with the name that it keeps back.

    A name comes from hidden tests, or from code that has been given values of theirs and may say them by it.
    """
    cause = f"{report['cause']}; " if report["cause"] else ""
    message = cause + report["message"]
    if not report["name"]:
        return scrub(message), ""
    name, instead = report["name"]
    named = scrub(cause + report["message"].replace(_NAME, name, 1))
    return (
        named if _is_public(name, task) else scrub(cause + report["message"].replace(_NAME, instead, 1))
    ), named


def _is_public(name: str, task: PackTask) -> bool:
    """Return whether a name is Python's own of an exception, or a single word of the row's public input."""
    own = getattr(builtins, name, None)
    if isinstance(own, type) and issubclass(own, BaseException):
        return True
    word = _ONE_NAME.fullmatch(name)
    return word is not None and any(word[1] in _WORD.findall(str(value)) for value in task.public().values())


def _python_blocks(blocks: tuple[CodeBlock, ...]) -> list[str]:
    """Return the blocks that may be Python: those that say so or say nothing, if there are any."""
    likely = [block.text for block in blocks if block.label not in _NO_CODE and block.text.strip()]
    return likely or [block.text for block in blocks]


def _command(box: Box, names: tuple[str, ...]) -> Command:
    native = box.python.startswith("/")
    name = "run.pyc" if native else "run.py"
    box.workspace.put(name, program(names, compiled=native))
    path = f"{box.workdir}/{name}"
    return Command((box.python, "-ISE", path) if native else (box.python, "-IB", path))


def _feed(descriptor: int, job: bytes) -> None:
    """Write the job, in a thread: it may be larger than a pipe takes at once."""
    data = memoryview(len(job).to_bytes(_HEAD_BYTES, "big") + job)
    with suppress(OSError):  # whoever ended before has read enough
        while data:
            data = data[os.write(descriptor, data) :]
    os.close(descriptor)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _report(stderr: bytes, token: str) -> _Report | None:
    """Return what the tests' process says of their end; None when it never came to that."""
    for line in stderr.splitlines():
        if line.startswith(token.encode()):
            report: _Report = json.loads(line[len(token) :])
            return report
    return None


def _broken_off(ended: Ended) -> CodeFinding:
    """Return what it means that the tests' process ended without a word."""
    failed, error, phase = Verdict.FAILED, Verdict.ERROR, CodePhase.TESTS
    if ended.timed_out:
        return CodeFinding(failed, "timeout", phase, f"the tests were stopped: {ended.reason}")
    if ended.reason:
        return CodeFinding(failed, "limit", phase, f"the tests were stopped: {ended.reason}")
    if ended.stderr or ended.exit_code in (126, 127):
        said = excerpt(ended.stderr.decode(errors="replace").strip().rpartition("\n")[2])
        why = said or f"exit code {ended.exit_code}"
        return CodeFinding(error, "cannot_start", CodePhase.START, f"the tests cannot be started: {why}")
    message = f"the tests were broken off (exit code {ended.exit_code})"
    return CodeFinding(failed, "broken_off", phase, message)
