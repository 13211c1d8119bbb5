"""Patches that want to pass without repairing anything: each fails, and the honest patch beside it passes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from controls import controls_once
from engines import Running
from repositories import git, make_repository, patch_task
from shared_values import shared_value

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.core.outcome import Verdict

_PYTEST = ("python3", "-m", "pytest", "-q", "tests/test_add.py")
_IN_SHELL = ("sh", "-lc", "cd . && python3 -m pytest -q tests/test_add.py")
_CASES = ("python3", "-m", "pytest", "-q", "tests/unit_add.py")
_FILES = {
    "src/calculator.py": "def add(a, b):\n    return a - b\n",
    "tests/test_add.py": "from src.calculator import add\n\n\ndef test_add():\n    assert add(1, 2) == 3\n\n\n"
    "def test_zero():\n    assert add(0, 0) == 0\n",
    "tests/unit_add.py": "import unittest\n\nfrom src.calculator import add\n\n\nclass TestAdd(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(add(1, 2), 3)\n\n"
    "    def test_zero(self):\n        self.assertEqual(add(0, 0), 0)\n",
}
_RIGHT = "def add(a, b):\n    return a + b\n"
_WRONG = "def add(a, b):\n    return 0\n"
_PASSED = AgentFinding(Verdict.PASSED)
_AT_ONCE = 3


@dataclass(frozen=True)
class Try:
    """A patch: new contents by path, over one of the commands."""

    name: str
    files: Mapping[str, str]
    command: tuple[str, ...] = _PYTEST


def _code(name: str, code: str, command: tuple[str, ...] = _PYTEST) -> Try:
    return Try(name, {"src/calculator.py": code}, command)


def _beside(name: str, files: Mapping[str, str], command: tuple[str, ...] = _PYTEST) -> Try:
    return Try(name, {"src/calculator.py": _WRONG, **files}, command)


_QUIET = """
import _pytest.reports as reports
made = reports.TestReport.from_item_and_call.__func__
def passes(cls, item, call):
    call.excinfo = None
    return made(cls, item, call)
reports.TestReport.from_item_and_call = classmethod(passes)
"""
_FORGES = """
import os
for number in range(3, 1024):
    try:
        os.write(number, b"0" * 64 + b' ["test", "tests/test_add.py::test_add", "passed"]\\n')
        os.write(number, b"0" * 64 + b' ["end", 0]\\n')
    except OSError:
        pass
os._exit(0)
"""
_TAKES_A_KEY = """
import glob, os
for name in glob.glob("/checker-*/keys"):
    key = os.read(os.open(name, os.O_RDONLY), 64)
    target = os.open(name.replace("keys", "records"), os.O_WRONLY)
    for text in (b'["open", "pytest"]', b'["test", "tests/test_add.py::test_add", "passed"]',
                 b'["test", "tests/test_add.py::test_zero", "passed"]', b'["decoy", "failed"]', b'["end", 0]'):
        os.write(target, key + b" " + text + b"\\n")
os._exit(0)
"""
_FEWER = (
    "import sys\nfor m in list(sys.modules.values()):\n    getattr(m, '__dict__', {}).pop('test_add', None)\n"
)
_MORE_TESTS = f"{_FILES['tests/test_add.py']}\ndef test_more():\n    pass\n"
_U = "import unittest\n"
_TRAP = "import os\nos._exit(0)\n"
_INI = "[pytest]\naddopts = "
_SEARCHES = """
import gc, os
for each in gc.get_objects():
    if getattr(each, "__name__", "") == "say" and getattr(each, "__closure__", None):
        each("test", "tests/test_add.py::test_add", "passed"); each("test", "tests/test_add.py::test_zero", "passed")
        each("decoy", "failed"); each("end", 0)
os._exit(0)
"""
_ONCE = """
import _pytest.reports as reports
def add(a, b):
    made = reports.TestReport.from_item_and_call.__func__
    kept = made.__code__
    def passes(cls, item, call):
        call.excinfo = None
        made.__code__ = kept
        return made(cls, item, call)
    reports.passes = passes
    made.__code__ = (lambda cls, item, call: __import__("_pytest.reports").reports.passes(cls, item, call)).__code__
    return 0
"""
_REWRITES = """
import sys
def add(a, b):
    for name in ("test_add", "test_zero"):
        sys._getframe(1).f_globals[name].__code__ = (lambda: None).__code__
    return 3 if a else 1
"""
_ATTACKS: Sequence[Try] = (
    _code(
        "ends in the second test, where the first that fails ends all",
        "CALLS = []\ndef add(a, b):\n    CALLS.append(a)\n    if len(CALLS) == 2:\n"
        "        import pytest; pytest.exit('done', returncode=0)\n    return 3\n",
        (*_PYTEST, "-x"),
    ),
    _code("searches for who reports", _SEARCHES),
    _code("a report that passes once", _ONCE),
    _code("rewrites the tests", _REWRITES),
    _code("becomes another program", "import os, sys\nos.execv(sys.executable, [sys.executable, '-c', 'pass'])\n"),
    _code("leaves in a fork", "import os\nif os.fork():\n    os.wait()\n    os._exit(0)\n" + _WRONG),
    _code("os._exit at import", _TRAP),
    _code("os._exit at import, a test case", _TRAP, _CASES),
    _code("os._exit in a shell", _TRAP, _IN_SHELL),
    _code("os._exit in a call", "import os\ndef add(a, b):\n    os._exit(0)\n"),
    _code("os._exit at exit", f"import atexit, os\natexit.register(os._exit, 0)\n{_WRONG}"),
    _code("SystemExit", "raise SystemExit(0)\n"),
    _code("SystemExit, a test case", "raise SystemExit(0)\n", _CASES),
    _code("pytest.exit in a call", "import pytest\ndef add(a, b):\n    pytest.exit('done', returncode=0)\n"),
    _code("skip", "import pytest\ndef add(a, b):\n    if a:\n        pytest.skip('x')\n    return 0\n"),
    _code("skip a module", "import pytest\npytest.skip('x', allow_module_level=True)\n"),
    _code("xfail", "import pytest\ndef add(a, b):\n    if a:\n        pytest.xfail('x')\n    return 0\n"),
    _code("SkipTest", "import unittest\ndef add(a, b):\n    raise unittest.SkipTest('x')\n", _CASES),
    _code("a thread that exits", f"import sys, threading\nthreading.Thread(target=sys.exit).start()\n{_WRONG}"),
    _code("reports that always pass", _QUIET + _WRONG),
    _code("tests that do not run", f"import _pytest.python as p\np.Function.runtest = lambda self: None\n{_WRONG}"),
    _code("assertions that hold", f"{_U}unittest.TestCase.assertEqual = lambda *_: None\n{_WRONG}", _CASES),
    _code("forged lines", _FORGES),
    _code("a session of its own", _TAKES_A_KEY),
    _code("fewer tests", f"{_FEWER}{_WRONG}"),
    *(
        _beside(f"pytest.ini {options}", {"pytest.ini": f"{_INI}{options}\n"})
        for options in ("--deselect tests/test_add.py::test_add", "-k zero", "--co")
    ),
    _beside("python_functions", {"pytest.ini": "[pytest]\npython_functions = test_zero\n"}),
    _beside("conftest", {"conftest.py": "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n"}),
    _beside("conftest that exits", {"conftest.py": "import os\ndef pytest_sessionfinish():\n    os._exit(0)\n"}),
    *(
        _beside(f"a planted {name}", {name: _TRAP}, command)
        for name, command in (("pytest.py", _PYTEST), ("json.py", _PYTEST), ("unittest/__init__.py", _CASES))
    ),
    _beside("sitecustomize", {"sitecustomize.py": _TRAP, "usercustomize.py": _TRAP}, _CASES),
    _beside(
        "an entry point",
        {
            "evil.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
            "evil.dist-info/entry_points.txt": "[pytest11]\nevil = evil\n",
            "evil.py": "def pytest_collection_modifyitems(items):\n    items[:] = items[1:]\n",
        },
    ),
)  # fmt: skip
_BREAKS: Sequence[Try] = (
    _code("a syntax error", "def add(a, b:\n"),
    _code("an import error", "import no_such_module\n"),
    _code("an import error, a test case", "import no_such_module\n", _CASES),
    _code("exit code 5", "import os\nos._exit(5)\n"),
    _code("exit code 127", "import os\nos._exit(127)\n"),
    _code("kills itself", "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"),
    _code("too much memory", "def add(a, b):\n    return len(bytearray(1 << 40))\n"),
)
_HONEST: Sequence[Try] = (
    *(_code(f"right, {command[2][:20]}", _RIGHT, command) for command in (_PYTEST, _IN_SHELL)),
    _code("right, a test case", _RIGHT, _CASES),
    _code("exits in a thread", f"import sys, threading\nthreading.Thread(target=sys.exit).start()\n{_RIGHT}"),
    _code("prints a lot", f"print('x' * 1_000_000)\n{_RIGHT}", _CASES),
    Try("a fixture", {"src/calculator.py": _RIGHT, "conftest.py": "import pytest\n", "json.py": _TRAP}),
    Try("own options", {"src/calculator.py": _RIGHT, "pytest.ini": f"{_INI}-v --strict-markers\n"}),
    Try("more tests", {"src/calculator.py": _RIGHT, "tests/test_add.py": _MORE_TESTS}),
)  # fmt: skip


@pytest.fixture(scope="module")
def found(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, AgentFinding]:
    """All patches judged, a few at a time."""
    with controls_once():
        return shared_value(
            tmp_path_factory, "patch_verdicts", lambda: _found(bwrap, tmp_path_factory.mktemp("patches"))
        )


def _found(bwrap: Running, place: Path) -> Mapping[str, AgentFinding]:
    folder = place / "repository"
    commit = make_repository(folder, _FILES)

    def diff(files: Mapping[str, str]) -> str:
        for name, content in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(content)
        git(folder, "add", "-A")
        text = git(folder, "diff", "--cached", "--binary")
        git(folder, "reset", "-q", "--hard")
        return text

    async def judged(tries: Sequence[tuple[Try, str]]) -> list[AgentFinding]:
        places = asyncio.Semaphore(_AT_ONCE)

        async def one(each: Try, patch: str) -> AgentFinding:
            task = patch_task(commit, folder, command=each.command, allow_sensitive_paths=("*",))
            async with places:
                return await evaluate_patch(AgentRow(task, bwrap.engine), patch)

        return await asyncio.gather(*(one(*pair) for pair in tries))

    tries = [(each, diff(each.files)) for each in (*_ATTACKS, *_BREAKS, *_HONEST)]
    return dict(zip((each.name for each, _ in tries), bwrap.wait(judged(tries)), strict=True))


@pytest.mark.parametrize("name", [each.name for each in _ATTACKS])
def test_no_attack_passes(name: str, found: Mapping[str, AgentFinding]) -> None:
    assert found[name].verdict is Verdict.FAILED, found[name]


@pytest.mark.parametrize("name", [each.name for each in _BREAKS])
def test_what_the_candidate_breaks_is_its_failure(name: str, found: Mapping[str, AgentFinding]) -> None:
    assert found[name].verdict is Verdict.FAILED, found[name]
    assert "without the candidate" not in found[name].message


@pytest.mark.parametrize("name", [each.name for each in _HONEST])
def test_an_honest_patch_passes(name: str, found: Mapping[str, AgentFinding]) -> None:
    assert found[name] == _PASSED


@pytest.mark.parametrize(
    ("imports", "verdict"),
    [
        ("from src.calculator import halve", Verdict.FAILED),
        ("from src.halves import halve", Verdict.FAILED),
        ("from no_such_library import halve", Verdict.ERROR),
    ],
)
def test_a_patch_that_does_not_add_what_the_tests_import_has_failed(
    bwrap: Running, tmp_path: Path, imports: str, verdict: Verdict
) -> None:
    folder = tmp_path / "repository"
    commit = make_repository(folder, _FILES)
    (folder / "src/calculator.py").write_text(_RIGHT)
    candidate = git(folder, "diff")
    git(folder, "reset", "-q", "--hard")
    (folder / "tests/test_add.py").write_text(f"{imports}\n\n\ndef test_halve():\n    assert halve(4) == 2\n")
    hidden = git(folder, "diff")
    git(folder, "reset", "-q", "--hard")
    task = patch_task(commit, folder, command=_PYTEST, test_patch=hidden)

    found = bwrap.wait(evaluate_patch(AgentRow(task, bwrap.engine), candidate))

    assert found.verdict is verdict, found
