"""Patches whose code, once it runs, changes the tests: each fails. Tests that write to their own files pass."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest
from engines import Running
from repositories import git, make_repository, patch_task
from shared_values import shared_value

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.core.outcome import Verdict

_FILES = {
    "src/calculator.py": "def add(a, b):\n    return a - b\n",
    "tests/test_a.py": "from src.calculator import add\ndef test_a():\n    assert callable(add)\n",
    "tests/test_b.py": "from src.calculator import add\ndef test_b():\n    assert add(1, 2) == 3\n",
    "tests/test_help.py": "from src.calculator import add\nimport helper\ndef test_it():\n    helper.check(add)\n",
    "tests/helper.py": "def check(add):\n    assert add(2, 2) == 4\n",
    "tests/test_data.py": (
        "import pathlib\nfrom src.calculator import add\nhere = pathlib.Path(__file__).parent\n"
        "def test_it():\n    assert str(add(1, 2)) == (here / 'said.txt').read_text()\n"
        "def test_log():\n    (here / 'log.txt').write_text(str(add(1, 2)))\n"
    ),
    "tests/said.txt": "3",
    "tests/log.txt": "",
    "tests/check.sh": "x=$(python3 -c 'from src.calculator import add; print(add(1, 2))')\nsh tests/part.sh $x\n",
    "tests/part.sh": '[ "$1" = 3 ]\n',
}
_RIGHT = "def add(a, b):\n    return a + b\n"
_HEAD = """
import atexit, importlib.util, marshal, os, pathlib, struct
tests = pathlib.Path(__file__).parent.parent / "tests"
nothing = "def test_b(): pass\\n"
def write(name, text):
    (tests / name).write_text(text)
def plant(name, tail, text):
    state, code = os.stat(tests / name), compile(text, str(tests / name), "exec")
    (tests / "__pycache__").mkdir(exist_ok=True)
    head = importlib.util.MAGIC_NUMBER + bytes(4) + struct.pack("<LL", int(state.st_mtime), state.st_size)
    (tests / "__pycache__" / (name[:-3] + tail)).write_bytes(head + marshal.dumps(code))
def add(a, b):
    return 0
"""


def _pytest(*names: str) -> tuple[str, ...]:
    return ("python3", "-m", "pytest", "-q", *(f"tests/test_{name}.py" for name in names))


_SCRIPT = ("sh", "tests/check.sh")
_ATTACKS = {
    "a later file": (_pytest("a", "b"), "write('test_b.py', nothing)"),
    "a later file, put back": (
        _pytest("a", "b"),
        "old = (tests / 'test_b.py').read_text()\nwrite('test_b.py', nothing)\n"
        "atexit.register(write, 'test_b.py', old)",
    ),
    "bytecode of a later file": (
        _pytest("a", "b"),
        "from _pytest.assertion.rewrite import PYC_TAIL\nplant('test_b.py', PYC_TAIL, nothing)",
    ),
    "a helper": (_pytest("help"), "write('helper.py', 'def check(add): pass')"),
    "bytecode of a helper": (
        _pytest("help"),
        "import sys\nplant('helper.py', f'.{sys.implementation.cache_tag}.pyc', 'def check(add): pass')",
    ),
    "data": (_pytest("data"), "write('said.txt', '0')"),
    "data replaced": (_pytest("data"), "write('new', '0'); os.replace(tests / 'new', tests / 'said.txt')"),
    "a script that runs next": (_SCRIPT, "write('part.sh', 'exit 0')"),
}
_HONEST = {
    "tests that write to their own file": (_pytest("a", "b", "help", "data"), ""),
    "a script": (_SCRIPT, ""),
}


@pytest.fixture(scope="module")
def found(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, AgentFinding]:
    folder = tmp_path_factory.mktemp("patches") / "repository"
    commit = make_repository(folder, _FILES)

    async def judged() -> Mapping[str, AgentFinding]:
        places = asyncio.Semaphore(3)

        async def one(command: tuple[str, ...], code: str) -> AgentFinding:
            (folder / "src/calculator.py").write_text(_HEAD + code if code else _RIGHT)
            patch = git(folder, "diff")
            git(folder, "reset", "-q", "--hard")
            async with places:
                task = patch_task(commit, folder, command=command)
                return await evaluate_patch(AgentRow(task, bwrap.engine), patch)

        tries = {**_ATTACKS, **_HONEST}
        return dict(zip(tries, await asyncio.gather(*(one(*each) for each in tries.values())), strict=True))

    return shared_value(tmp_path_factory, "patch_files", lambda: bwrap.wait(judged()))


@pytest.mark.parametrize("name", _ATTACKS)
def test_no_attack_passes(name: str, found: Mapping[str, AgentFinding]) -> None:
    assert found[name].verdict is Verdict.FAILED, found[name]


@pytest.mark.parametrize("name", _HONEST)
def test_honest_work_passes(name: str, found: Mapping[str, AgentFinding]) -> None:
    assert found[name] == AgentFinding(Verdict.PASSED)


def test_what_was_changed_is_said(found: Mapping[str, AgentFinding]) -> None:
    put_back = found["a later file, put back"]
    assert put_back.reason == "tests_changed"
    assert (
        put_back.message
        == "eval.tests.command: files of the tests were changed while they ran: 'tests/test_b.py'"
    )
