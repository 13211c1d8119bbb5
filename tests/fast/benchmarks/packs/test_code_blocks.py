"""The code in a reply, and the program that it makes. Nothing is executed."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from code_rows import code_rows

from pytest_helmbench.benchmarks.packs.families.code_completion import inside
from pytest_helmbench.benchmarks.packs.families.code_completion.blocks import CodeBlock, code_blocks, fenced
from pytest_helmbench.benchmarks.packs.families.code_completion.evaluation import (
    CANDIDATE,
    TESTER,
    chosen_block,
    program,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.reply import (
    REPLY,
    STARTER,
    composed,
)
from pytest_helmbench.benchmarks.packs.families.code_completion.suite import Suite

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import ReplyJob


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("no code", ()),
        ("```python\na\n```", (CodeBlock("python", "a"),)),
        ("```Python title=x\na\n```", (CodeBlock("python", "a"),)),
        ("```{.python}\na\n```", (CodeBlock("python", "a"),)),
        ("~~~\na\n```\nb\n~~~", (CodeBlock("", "a\n```\nb"),)),
        ("````\n```\na\n```\n````", (CodeBlock("", "```\na\n```"),)),
        ("1. So:\n   ```py\n   a\n     b\n   ```\n", (CodeBlock("py", "a\n  b"),)),
        ("> ```\n> a\n> ```", (CodeBlock("", "a"),)),
        ("```\r\na\r\n```\r\n", (CodeBlock("", "a"),)),
        ("```py\n\ufeffa\n```", (CodeBlock("py", "a"),)),
        ("\ufeff```py\na\n```", (CodeBlock("py", "a"),)),
        ("```python\nnever closed", (CodeBlock("python", "never closed"),)),
        ("```\na\n```\n```js\nb\n```", (CodeBlock("", "a"), CodeBlock("js", "b"))),
        ("`a` and ```b``` in a line", ()),
        ("a\n```", (CodeBlock("", "a"),)),
        ("a\r\n~~~\r\n\r\n", (CodeBlock("", "a"),)),
        ("a\n```\nb", (CodeBlock("", "a"), CodeBlock("", "b"))),
        ("a\n```\n\n```py\nb\n```", (CodeBlock("", "a"), CodeBlock("py", "b"))),
        ("```\na\n```\nb\n```", (CodeBlock("", "a"), CodeBlock("", "b"))),
        ("```\n```py\na\n```\n```", (CodeBlock("py", "a"),)),
        ("````\n```py\na\n```\n````", (CodeBlock("", "```py\na\n```"),)),
    ],
)
def test_fenced_blocks_are_found(text: str, wanted: tuple[CodeBlock, ...]) -> None:
    assert code_blocks(text) == wanted


@pytest.mark.parametrize("code", ["a", "```\na\n```", "x = '````'"])
def test_a_fence_holds_any_code(code: str) -> None:
    assert code_blocks(fenced(code)) == (CodeBlock("", code),)


_F = "def f(x): return x + n"
_USES_N = "n = 1"


@pytest.mark.parametrize(
    ("blocks", "wanted"),
    [
        ([_F, "from solution import f\nassert f(1) == 2"], [_F]),
        ([_F, "from my_code.answer import f as g, f"], [_F]),
        ([_F, "import unittest\nfrom x import f\nclass TestF(unittest.TestCase): ..."], [_F]),
        (["n = f(1)", _F], [_F]),
        (["from solution import f\nn = 2", _F], [_F]),
        (["n = 2\nprint(f(n))", _F], [_F]),
        (["x = 3\nprint('x')", _F], [_F]),
        ([_USES_N, _F], [_USES_N, _F]),
        (["def n(): return f(1)", _F], ["def n(): return f(1)", _F]),
        (["from math import pi as n", _F], ["from math import pi as n", _F]),
        (["f = lambda x: x", "f(1)"], ["f = lambda x: x"]),
        (["from math import floor as f"], ["from math import floor as f"]),
    ],
)
def test_an_example_beside_the_code_is_left_out(blocks: list[str], wanted: list[str]) -> None:
    assert composed(_program(blocks, "", "def f(x):\n    ..."))[-1] == (REPLY, "\n\n".join(wanted))


@pytest.mark.parametrize(
    ("blocks", "wanted"),
    [
        ([_F, "from my_code import f\nassert f(1) == 2"], [_F]),
        ([_F, "import f\nf.f(1)"], [_F]),
        ([_USES_N, _F], [_USES_N, _F]),
        (["from math import floor as f"], ["from math import floor as f"]),
    ],
)
def test_without_a_starter_too(blocks: list[str], wanted: list[str]) -> None:
    assert composed(_program(blocks, "", ""))[-1] == (REPLY, "\n\n".join(wanted))


def _program(blocks: list[str], reply: str, starter: str) -> ReplyJob:
    return Suite("", starter).job("", blocks, reply, is_code=False)["reply"]


_STUB = "import math\n\ndef f(x):\n    ..."


@pytest.mark.parametrize(
    ("blocks", "reply", "starter", "wanted"),
    [
        ([], "def f(x): pass", "", [(REPLY, "def f(x): pass")]),
        (["def f(x): pass"], "", _STUB, [(STARTER, "import math"), (REPLY, "def f(x): pass")]),
        (["def f(x): pass", "f(1)"], "", _STUB, [(STARTER, "import math"), (REPLY, "def f(x): pass")]),
        (["def g(x): pass"], "", _STUB, [(STARTER, _STUB), (REPLY, "def g(x): pass")]),
        (["x = 1", "y = x"], "", "", [(REPLY, "x = 1\n\ny = x")]),
        ([], "return x", _STUB, [(REPLY, "import math\n\ndef f(x):\n    return x\n")]),
        ([], "    return x", _STUB, [(REPLY, "import math\n\ndef f(x):\n    return x\n")]),
        (
            ["def h(x): return x", "def f(x): return h(x)"],
            "",
            _STUB,
            [(STARTER, "import math"), (REPLY, "def h(x): return x\n\ndef f(x): return h(x)")],
        ),
        (
            ["def f(x): return 1", "def f(x): return 2"],
            "",
            _STUB,
            [(STARTER, "import math"), (REPLY, "def f(x): return 2")],
        ),
    ],
)
def test_what_a_reply_stands_for(
    blocks: list[str], reply: str, starter: str, wanted: list[tuple[str, str]]
) -> None:
    assert composed(_program(blocks, reply, starter)) == wanted


@pytest.mark.parametrize(
    ("text", "starter", "wanted"),
    [
        (
            "```js\nconst add = (a, b) => a + b\n```\n```js\nadd(1, 2)\n```",
            "function add(a, b) {}",
            "add(1, 2)",
        ),
        (
            "```sh\nnpm test\n```\n```js\nfunction add(a, b) {}\n```",
            "function add(a, b) {}",
            "function add(a, b) {}",
        ),
        ("```\na\n```\n```\nb\n```", "", "a\n\nb"),
        ("nothing", "", ""),
    ],
)
def test_the_block_of_another_language(text: str, starter: str, wanted: str) -> None:
    assert chosen_block(code_blocks(text), starter, "javascript") == wanted


@pytest.mark.parametrize("names", [CANDIDATE, TESTER])
def test_programs_are_small_enough_to_start_fast(names: tuple[str, ...]) -> None:
    assert len(program(names, compiled=True)) < 180_000
    assert compile(program(names, compiled=False), "run.py", "exec")


_CHEAP = {"__future__", "_ast", "_thread", "builtins", "os", "sys"}


@pytest.mark.parametrize("names", [CANDIDATE, TESTER])
def test_programs_import_nothing_that_costs_as_much_as_a_start_of_python(names: tuple[str, ...]) -> None:
    files = {Path(inside.__path__[0], f"{name}.py") for name in names}
    imported = {
        node.module or "" if isinstance(node, ast.ImportFrom) else alias.name
        for path in files
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    assert {name for name in imported if not name.startswith(f"{inside.__name__}.")} <= _CHEAP


@pytest.mark.parametrize("table", ["honest.txt", "attacks.txt"])
def test_tests_and_starter_decide_whether_two_boxes_are_enough(table: str) -> None:
    for row in code_rows(table):
        job = Suite(row.tests, row.starter).job("", [], row.reply, is_code=False)
        assert job["in_process"] == (row.says == "in_process"), row.name


@pytest.mark.parametrize(
    ("reference", "in_process"),
    [
        ("def make(): return 1", False),
        ("class make: ...", True),
        ("async def make(): ...", True),
        ("class _Made: ...\ndef make(): return _Made()", True),
        ("class _Inner: ...\ndef make(): return len([_Inner()])", False),
    ],
)
def test_a_reference_decides_it_too(reference: str, in_process: bool) -> None:
    suite = Suite("assert make()", "", (reference,))
    assert suite.job("", [], "", is_code=False)["in_process"] is in_process
