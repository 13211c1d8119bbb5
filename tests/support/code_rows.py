"""Tables of code rows in text files: starter, tests, reply, and verdict; all of a file run at once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from engines import Running
from paths import DATA

from pytest_helmbench.benchmarks.packs.families.code_completion.check import CodeFinding, CodeTests
from pytest_helmbench.benchmarks.packs.families.code_completion.evaluation import evaluate_code
from pytest_helmbench.benchmarks.packs.task import Environment, PackTask, Resource, Visibility

__all__ = ["CodeRow", "code_rows", "code_task", "judge_all"]

_FOLDER = DATA / "code"
_AT_ONCE = 4
_DOUBLE = "\ndef double(x):\n    ...\n---- tests\nassert double(2) == 4\nassert double(5) == 10"
"""Starter and tests of rows that name none."""

_ENVIRONMENT = Environment(timeout_s=20.0)


@dataclass(frozen=True)
class CodeRow:
    """One row of a table.

    Args:
        name: What is special about it.
        starter: May be empty.
        tests: Of the row.
        reply: Of a model.
        says: A part of the message; empty for any.
    """

    name: str
    starter: str
    tests: str
    reply: str
    says: str = ""


def code_rows(name: str) -> list[CodeRow]:
    """Read a table."""
    rows = []
    for text in ("\n" + (_FOLDER / name).read_text(encoding="utf-8")).split("\n#### ")[1:]:
        head, found, reply = text.rstrip("\n").partition("\n---- reply\n")
        if not found:
            title, _, reply = head.partition("\n")
            head = title + _DOUBLE
        head, _, tests = head.partition("\n---- tests\n")
        title, _, starter = head.partition("\n")
        reply, _, says = reply.partition("\n---- says\n")
        rows.append(CodeRow(title, starter, tests, reply, says))
    assert len({row.name for row in rows}) == len(rows)
    return rows


def code_task(
    tests: str, starter: str = "", *, environment: Environment = _ENVIRONMENT, **hidden: str
) -> PackTask:
    """Make a row of code_completion."""
    resources = {
        "prompt": Resource("Write it.", Visibility.PUBLIC),
        "tests": Resource({"source": "inline", "code": tests}, Visibility.EVALUATION_INPUTS),
        **{name: Resource(value, Visibility.HIDDEN) for name, value in hidden.items()},
    }
    if starter:
        resources["starter_code"] = Resource(starter, Visibility.PUBLIC)
    return PackTask("row", "pack", "code_completion", {}, resources, environment, check=CodeTests(tests))


def judge_all(running: Running, rows: Sequence[CodeRow], *, timeout_s: float) -> dict[str, CodeFinding]:
    """Judge rows, a few at a time; return the findings by name."""

    async def judge() -> list[CodeFinding]:
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(row: CodeRow) -> CodeFinding:
            environment = Environment(image=running.image, timeout_s=timeout_s)
            async with places:
                task = code_task(row.tests, row.starter, environment=environment)
                return await evaluate_code(task, row.reply, running.engine)

        return await asyncio.gather(*map(one, rows))

    return dict(zip((row.name for row in rows), running.wait(judge()), strict=True))
