"""Languages other than Python: code and tests side by side in one fresh container, judged by a command.

The code runs where its tests run, so it can forge their verdict: the author of such a pack decides by the command how
hard that is. Nothing else is promised than that it runs alone, without network, and within its limits.
"""

from __future__ import annotations

import re
from dataclasses import replace

from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import CodeBlock, code_blocks
from pytest_helmbench.benchmarks.packs.families.code_completion.check import (
    CodeFinding,
    CodeTests,
)
from pytest_helmbench.benchmarks.packs.task import CommandCheck, PackTask
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.sandbox.box import BoxSpec, Command, Ended, Engine, Limits

_ENDINGS: dict[str, str] = dict(
    re.findall(
        r"(\S+):(\w+)",
        "javascript:js js:js node:js typescript:ts ts:ts ruby:rb go:go rust:rs c:c c++:cpp cpp:cpp java:java "
        "kotlin:kt swift:swift php:php perl:pl bash:sh sh:sh shell:sh lua:lua r:r scala:scala haskell:hs julia:jl "
        "c#:cs csharp:cs sql:sql elixir:ex dart:dart",
    )
)
_DECLARED = re.compile(r"([A-Za-z_]\w*)\s*\(|(?:class|struct|interface|trait|const|let|var|type)\s+(\w+)")
_NOT_STARTED = (126, 127)


def file_names(language: str) -> tuple[str, str]:
    """Return what the code and its tests are called in the workspace, such as `solution.js` and `tests.js`."""
    ending = _ENDINGS.get(language) or re.sub(r"[^a-z0-9]", "", language)[:10] or "txt"
    return f"solution.{ending}", f"tests.{ending}"


async def evaluate_in_image(
    task: PackTask, tests: CodeTests, text: str, engine: Engine, limits: Limits, *, parity: bool = False
) -> CodeFinding:
    """Write code and tests into a fresh workspace and run the row's command there: exit 0 passes.

    Args:
        task: The row; it has an image.
        tests: Of the row, with a command.
        text: The reply, without thoughts.
        engine: What runs containers.
        limits: Of the command; its own timeout wins.
        parity: The text is the code as it stands.
    """
    if tests.command is None:
        raise TypeError(f"{task.id}: no command runs tests in {tests.language}")
    blocks = () if parity else code_blocks(text)
    code = chosen_block(blocks, str(task.input_value("starter_code") or ""), tests.language)
    ended = await _run(task, tests, code or text, engine, limits)
    if ended.exit_code == 0:
        return CodeFinding(Verdict.PASSED, in_process=True)
    reason, how = "tests_failed", f"ended with exit code {ended.exit_code}"
    if ended.exit_code in _NOT_STARTED:
        reason, how = "cannot_start", f"cannot be started (exit code {ended.exit_code})"
        # Whatever the tests say of the code, a command that can be started starts without them.
        if (await _run(task, replace(tests, code=""), "", engine, limits)).exit_code == ended.exit_code:
            return CodeFinding(Verdict.ERROR, reason, f"eval.tests.command {how}")
    elif ended.exit_code is None:
        reason, how = "timeout" if ended.timed_out else "limit", f"was stopped: {ended.reason}"
    return CodeFinding(Verdict.FAILED, reason, f"eval.tests.command {how}", in_process=True)


async def _run(task: PackTask, tests: CodeTests, code: str, engine: Engine, limits: Limits) -> Ended:
    """Run the row's command beside some code."""
    command = tests.command or CommandCheck(())
    spec = BoxSpec(
        task.environment.image, task.environment.workdir or "/workspace", limits=limits, label=task.id
    )
    async with await engine.open(spec) as box:
        for name, content in zip(file_names(tests.language), (code, tests.code), strict=True):
            box.workspace.put(name, content.encode("utf-8", "surrogatepass"))
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
