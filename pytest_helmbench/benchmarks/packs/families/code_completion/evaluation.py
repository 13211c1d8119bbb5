"""The verdict over a reply's code: it runs in one sandbox, its tests in another, and only plain data passes between.

The tests' sandbox says how they ended, over a channel that no code of the reply has an end of, with a word that it
never learns. Where tests need objects (`suite`), both share one sandbox, and the verdict says so.
"""

from __future__ import annotations

import asyncio
import builtins
import importlib.util
import json
import marshal
import os
import re
import secrets
from contextlib import suppress
from dataclasses import replace
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, TypedDict

from pytest_helmbench.benchmarks.packs.evidence.verdicts import NOT_STARTED
from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import CodeBlock, code_blocks
from pytest_helmbench.benchmarks.packs.families.code_completion.check import (
    CodeFinding,
    CodeTests,
    references,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.suite import Suite
from pytest_helmbench.benchmarks.packs.families.family import check_of
from pytest_helmbench.benchmarks.packs.task import CommandCheck, PackTask
from pytest_helmbench.core.outcome import Beside, Verdict
from pytest_helmbench.core.scrub import excerpt, scrub
from pytest_helmbench.sandbox.box import Box, BoxSpec, Command, Ended, Engine, Limits

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import SuiteJob

_MIB = 1024 * 1024
CODE_LIMITS = Limits(wall_s=30.0, memory_bytes=512 * _MIB, pids=64, output_bytes=_MIB, disk_bytes=64 * _MIB)
"""Bounds of the candidate, and as much for its tests; the row's own timeout takes the place of `wall_s`."""

_STOCK = re.compile(r"(docker\.io/)?(library/)?python(:(?!2)[\w.-]+)?(@sha256:[0-9a-f]+)?")
_NO_CODE = re.compile(
    "bash|sh|shell|zsh|console|terminal|powershell|output|text|txt|plaintext|log|json|yaml|toml|diff|markdown|md|"
    "html|css|javascript|js|typescript|ts|sql"
)
_LAST_WORDS_S = 0.5
_HEAD_BYTES = 8
_TEST_LINE = re.compile(r"at line (\d+) of the tests\Z")
_NAME = "{}"
_WORD = re.compile(r"\w+")
_ONE_NAME = re.compile(r"(?:: |')?(\w+)'?")
_ENDINGS: dict[str, str] = dict(
    re.findall(
        r"(\S+):(\w+)",
        "javascript:js js:js node:js typescript:ts ts:ts ruby:rb go:go rust:rs c:c c++:cpp cpp:cpp java:java "
        "kotlin:kt swift:swift php:php perl:pl bash:sh sh:sh shell:sh lua:lua r:r scala:scala haskell:hs julia:jl "
        "c#:cs csharp:cs sql:sql elixir:ex dart:dart",
    )
)
_DECLARED = re.compile(r"([A-Za-z_]\w*)\s*\(|(?:class|struct|interface|trait|const|let|var|type)\s+(\w+)")
_UNFIT = "not expressible"
_VACUOUS = "the tests use nothing that the candidate defines"

_FOLDER = "pytest_helmbench.benchmarks.packs.families.code_completion.inside"
CANDIDATE = ("frames", "reply", "candidate")
TESTER = ("frames", "reply", "tests")
"""Modules of a program in the order in which they build on each other; the last one is run."""

_COMPILED_HEADER_BYTES = 16  # of a compiled file, which Python passes over
_BOOT = """
import marshal, sys
for name, code in {modules!r}:
    module = type(sys)(name)
    sys.modules[name] = module
    exec({load}, vars(module))
del module
exec((lambda name, code: {load})({name!r}, {code!r}), {{"__name__": "__main__", "__builtins__": __builtins__}})
"""


def code_image(task: PackTask) -> str | None:
    """Return the image that a row's code needs; None where this machine's Python does."""
    image = task.environment.image
    if image is not None and check_of(task, CodeTests).language == "python" and _STOCK.fullmatch(image):
        return None
    return image


async def evaluate_code(task: PackTask, reply: str, engine: Engine, *, parity: bool = False) -> CodeFinding:
    """Run a row's tests against the code in a reply.

    Args:
        reply: What the model answers, without its thoughts.
        engine: What runs the code; `engine.obstacle(code_image(task))` says beforehand whether it can.
        parity: The whole reply is the code, as the published rule has it: fences and bare bodies fail.

    Raises:
        SandboxError: A sandbox could not be made.
        ConfigError: The task is of another family.
    """
    tests = check_of(task, CodeTests)
    reply = reply if parity else reply.removeprefix("\ufeff")
    image = code_image(task)
    limits = replace(CODE_LIMITS, wall_s=task.environment.timeout_s or CODE_LIMITS.wall_s)
    if not reply.strip():
        finding = CodeFinding(Verdict.FAILED, "no_code", "the reply holds no code")
    elif tests.language != "python":
        finding = await _evaluate_in_image(task, tests, reply, engine, limits, parity=parity)
    else:
        finding = await _evaluate_python(
            task, reply, engine, BoxSpec(image=image, limits=limits, label=task.id), parity
        )
    return replace(finding, image_used=image == task.environment.image)


async def _evaluate_python(
    task: PackTask, text: str, engine: Engine, spec: BoxSpec, parity: bool
) -> CodeFinding:
    starter = str(task.input_value("starter_code") or "")
    suite = Suite(check_of(task, CodeTests).code, starter, references(task))
    if suite.is_vacuous():
        return CodeFinding(Verdict.ERROR, "unfit_tests", _VACUOUS)
    blocks = [] if parity else _python_blocks(code_blocks(text))
    job = suite.job(secrets.token_hex(16), blocks, text, is_code=parity)
    if job["in_process"]:
        async with await engine.open(spec) as box, engine.places:
            ended = await box.run(replace(_command(box, TESTER), stdin=_framed(job)))
        return replace(_finding(task, job, ended, None), beside=Beside.IN_PROCESS)
    async with await engine.open(spec) as tester, await engine.open(spec) as candidate, engine.places:
        ended, other = await _talk(tester, candidate, _framed(job))
    return _finding(task, job, ended, other)


class _Report(TypedDict):
    """The report of the process of the tests on its end; no other process can write one."""

    verdict: str
    message: str
    name: list[str]


async def _talk(tester: Box, candidate: Box, job: bytes) -> tuple[Ended, Ended | None]:
    """Run both; return how the tests ended, and the candidate if that is known."""
    to_tester, to_candidate = os.pipe(), os.pipe()
    feeding = asyncio.create_task(asyncio.to_thread(_feed, os.dup(to_tester[1]), job))
    testing = asyncio.create_task(
        tester.run_joined(_command(tester, TESTER), stdin=to_tester[0], stdout=to_candidate[1])
    )
    running = asyncio.create_task(
        candidate.run_joined(_command(candidate, CANDIDATE), stdin=to_candidate[0], stdout=to_tester[1])
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


def _finding(task: PackTask, job: SuiteJob, ended: Ended, other: Ended | None) -> CodeFinding:
    """Return the finding on how the tests ended, and the candidate's box if it is known."""
    report = _report(ended.stderr, job["token"])
    if report is None:
        return _broken_off(ended, has_begun=job["token"].encode() in ended.stderr)
    if report["verdict"] == "passed":
        return CodeFinding(Verdict.PASSED)
    message, full_message = _messages(report, task)
    if report["verdict"] == "error":
        reason = "not_expressible" if message.startswith(_UNFIT) else "unfit_tests"
        return CodeFinding(Verdict.ERROR, reason, message, full_message=full_message)
    if other is not None and other.reason:
        reason = "timeout" if other.timed_out else "limit"
        return CodeFinding(Verdict.FAILED, reason, f"the code was stopped: {other.reason}")
    reason = "does_not_load" if report["verdict"] == "unloaded" else "tests_failed"
    line = _line_of(report["message"], job["tests"])
    return CodeFinding(Verdict.FAILED, reason, message, line=line, full_message=full_message)


def _line_of(message: str, tests: str) -> str:
    """Return the line of the tests that a message speaks of; empty for none."""
    found = _TEST_LINE.search(message)
    lines = tests.splitlines()
    return excerpt(lines[int(found[1]) - 1]) if found and 0 < int(found[1]) <= len(lines) else ""


def _messages(report: _Report, task: PackTask) -> tuple[str, str]:
    """Return what a report says to everyone, and with the name that it keeps back.

    A name comes from hidden tests, or from code that has been given values of theirs and may say them by it.
    """
    if not report["name"]:
        return scrub(report["message"]), ""
    said = [scrub(report["message"].replace(_NAME, name, 1)) for name in report["name"]]
    return said[0 if _is_public(report["name"][0], task) else 1], said[0]


def _is_public(name: str, task: PackTask) -> bool:
    """Return whether a name is Python's own of an exception, or a single word of the row's public input."""
    own = getattr(builtins, name, None)
    if isinstance(own, type) and issubclass(own, BaseException):
        return True
    word = _ONE_NAME.fullmatch(name)
    return word is not None and any(word[1] in _WORD.findall(str(value)) for value in task.public().values())


def _python_blocks(blocks: tuple[CodeBlock, ...]) -> list[str]:
    """Return the blocks that may be Python: those that say so or say nothing, if there are any."""
    likely = [block.text for block in blocks if not _NO_CODE.fullmatch(block.label) and block.text.strip()]
    return likely or [block.text for block in blocks]


def _command(box: Box, names: tuple[str, ...]) -> Command:
    native = box.python.startswith("/")
    name = "run.pyc" if native else "run.py"
    box.workspace.put(name, program(names, compiled=native))
    path = f"{box.workdir}/{name}"
    return Command((box.python, "-ISE", path) if native else (box.python, "-IB", path))


@cache
def program(names: tuple[str, ...], *, compiled: bool) -> bytes:
    """Return a program as one file that brings its modules along.

    Args:
        compiled: For this very Python; otherwise as source, for any.
    """
    codes = []
    for name in names:
        source = files(_FOLDER).joinpath(f"{name}.py").read_text(encoding="utf-8")
        code = compile(source, f"<{name}>", "exec", dont_inherit=True, optimize=2)
        codes.append((f"{_FOLDER}.{name}", marshal.dumps(code) if compiled else source))
    load = "marshal.loads(code)" if compiled else "compile(code, name, 'exec')"
    text = _BOOT.format(modules=tuple(codes[:-1]), load=load, name=codes[-1][0], code=codes[-1][1])
    if not compiled:
        return text.encode()
    header = importlib.util.MAGIC_NUMBER.ljust(_COMPILED_HEADER_BYTES, b"\0")
    return header + marshal.dumps(compile(text, "boot.py", "exec", dont_inherit=True))


def _framed(job: SuiteJob) -> bytes:
    body = json.dumps(job).encode("ascii")
    return len(body).to_bytes(_HEAD_BYTES, "big") + body


def _feed(descriptor: int, job: bytes) -> None:
    """Write the job, in a thread: it may be larger than a pipe takes at once."""
    data = memoryview(job)
    with suppress(OSError):  # a process that has ended before has read enough
        while data:
            data = data[os.write(descriptor, data) :]
    os.close(descriptor)


def _close(*descriptors: int) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _report(stderr: bytes, token: str) -> _Report | None:
    """Return the report of the tests' process; None where it wrote none."""
    for line in stderr.splitlines():
        if line.startswith(token.encode()) and len(line) > len(token):
            report: _Report = json.loads(line[len(token) :])
            return report
    return None


def _broken_off(ended: Ended, *, has_begun: bool) -> CodeFinding:
    """Return what it means that the tests' process ended without a word."""
    if ended.reason:
        reason = "timeout" if ended.timed_out else "limit"
        return CodeFinding(Verdict.FAILED, reason, f"the tests were stopped: {ended.reason}")
    if not has_begun and (ended.stderr or ended.exit_code in NOT_STARTED):
        said = excerpt(ended.stderr.decode(errors="replace").strip().rpartition("\n")[2])
        why = said or f"exit code {ended.exit_code}"
        return CodeFinding(Verdict.ERROR, "cannot_start", f"the tests cannot be started: {why}")
    message = f"the tests were broken off (exit code {ended.exit_code})"
    return CodeFinding(Verdict.FAILED, "broken_off", message)


async def _evaluate_in_image(
    task: PackTask, tests: CodeTests, text: str, engine: Engine, limits: Limits, *, parity: bool
) -> CodeFinding:
    """Write code of another language and its tests into a fresh workspace, and run the row's command: exit 0 passes.

    The code runs where its tests run, so it can forge their verdict: the author of such a pack decides by the command
    how hard that is. Nothing else is promised than that it runs alone, without network, and within its limits.
    """
    blocks = () if parity else code_blocks(text)
    code = chosen_block(blocks, str(task.input_value("starter_code") or ""), tests.language)
    ended = await _run(task, tests, code or text, engine, limits)
    if ended.exit_code == 0:
        return CodeFinding(Verdict.PASSED, beside=Beside.IN_PROCESS)
    reason, how = "tests_failed", f"ended with exit code {ended.exit_code}"
    if ended.exit_code in NOT_STARTED:
        reason, how = "cannot_start", f"cannot be started (exit code {ended.exit_code})"
        # Whatever the tests say of the code, a command that can be started starts without them.
        if (await _run(task, replace(tests, code=""), "", engine, limits)).exit_code == ended.exit_code:
            return CodeFinding(Verdict.ERROR, reason, f"eval.tests.command {how}")
    elif ended.exit_code is None:
        reason, how = "timeout" if ended.timed_out else "limit", f"was stopped: {ended.reason}"
    return CodeFinding(Verdict.FAILED, reason, f"eval.tests.command {how}", beside=Beside.IN_PROCESS)


async def _run(task: PackTask, tests: CodeTests, code: str, engine: Engine, limits: Limits) -> Ended:
    """Run the row's command beside some code."""
    command = tests.command or CommandCheck(())
    ending = _ENDINGS.get(tests.language) or re.sub(r"[^a-z0-9]", "", tests.language)[:10] or "txt"
    spec = BoxSpec(
        task.environment.image, task.environment.workdir or "/workspace", limits=limits, label=task.id
    )
    async with await engine.open(spec) as box:
        for name, content in (("solution", code), ("tests", tests.code)):
            box.workspace.put(f"{name}.{ending}", content.encode("utf-8", "surrogatepass"))
        return await box.run(Command(command.command, command.workdir))


def chosen_block(blocks: tuple[CodeBlock, ...], starter: str, language: str) -> str:
    """Return the last block that names what the starter declares, else all blocks; empty when there are none."""
    labelled = [block for block in blocks if block.label and _ending(block.label) == _ending(language)]
    texts = [block.text for block in labelled or blocks]
    names = {name for pair in _DECLARED.findall(starter) for name in pair if name}
    for text in reversed(texts):
        if names & {name for pair in _DECLARED.findall(text) for name in pair}:
            return text
    return "\n\n".join(texts)


def _ending(language: str) -> str:
    return _ENDINGS.get(language, language)
