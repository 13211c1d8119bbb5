"""Workspaces that want to pass without the work, by what the checker imports, starts or asks git: each one fails."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import mkdtemp

import pytest
from controls import controls_once
from engines import Running
from shared_values import shared_value
from terminal_tasks import Judge, writing

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import CheckerFiles
from pytest_helmbench.benchmarks.packs.task import (
    CommandCheck,
    FileCheck,
)
from pytest_helmbench.core.outcome import Verdict

_AT_ONCE = 3
_IMPORTS = {
    "test_it.py": "import os, sys\nsys.path.append(os.environ['SECUREBENCH_WORKSPACE'])\nimport solution\n\n\n"
    "def test_add():\n    assert solution.add(1, 2) == 3\n\n\ndef test_zero():\n    assert solution.add(0, 0) == 0\n"
}
_THREE = dict(_IMPORTS)
_THREE["test_it.py"] += "\n\ndef test_two():\n    assert solution.add(1, 1) == 2\n"
_CHOSEN = {
    "pytest.ini": "[pytest]\naddopts = -k 'add and not never'\n",
    "conftest.py": "import sys, os\nsys.path.append(os.getcwd())\nimport solution\n",
    "test_it.py": "import pytest\nimport solution\nfrom solution import *\n\nCASES = solution.CASES\n\n\n"
    "@pytest.fixture\ndef test_add_value():\n    return 3\n\n\n"
    "@pytest.mark.parametrize('a', CASES)\ndef test_add(a, test_add_value):\n    assert add(a, 0) == a\n\n\n"
    "def test_add_never():\n    assert False\n\n\n"
    "class TestAdd(solution.Base):\n    @pytest.mark.skipif(not solution.CASES, reason='x')\n"
    "    def test_add(self):\n        assert add(1, 2) == 3\n",
}
_READS = {"test_it.py": "def test_it():\n    assert open('answer').read() == '42\\n'\n"}
_SUITE_COMMAND = ("python3", "-m", "pytest", "-q", "suite")
_SUITE = (
    "import unittest\nimport solution\nclass TestAdd(unittest.TestCase):\n"
    "    def test_add(self):\n        self.assertEqual(solution.add(1, 2), 3)\n"
)
_TRAP = "import os\nos._exit(0)\n"
_RIGHT = "def add(a, b):\n    return a + b\n"
_WRONG = "def add(a, b):\n    return 0\n"


@dataclass(frozen=True)
class Try:
    """The work that an agent leaves: files and a script, before tests of the pack or a command."""

    name: str
    files: Mapping[str, str]
    checker: Mapping[str, str] | tuple[str, ...]
    script: str = "true"


def _solution(name: str, code: str, **files: str) -> Try:
    return Try(name, {"solution.py": code, **files}, _IMPORTS)


_PLANTED = dict.fromkeys(
    ("json.py", "pytest.py", "numpy.py", "sitecustomize.py", "unittest.py", "a.pth"), _TRAP
)
_GIT = """
git init -q . && git config user.email a@b && git config user.name a && echo x > f && git add f && git commit -q -m x
git config core.fsmonitor "touch hooked; true" && git config core.pager "touch hooked; cat"
mkdir -p .git/hooks && printf '#!/bin/sh\ntouch hooked\n' > .git/hooks/pre-commit && chmod +x .git/hooks/*
printf '[include]\n\tpath = ../more\n[diff "x"]\n\ttextconv = touch hooked; cat\n' >> .git/config
printf '[core][diff.z] textconv = touch hooked; cat\n' >> .git/config
printf '[x] [diff "a\\"b"]\n\ttextconv = touch hooked; cat\n' >> .git/config
printf '[commit]\n\tgpgsign\n[gpg]\n\tformat = ssh\n[gpg "ssh"]\n\tprogram = ./signs\n' >> .git/config
printf '[alias] verify = !touch hooked\n\tst = status\n[user] signingkey = k\n' >> .git/config
printf '#!/bin/sh\ntouch hooked\n' > signs && chmod +x signs; echo x > g; echo x > h; git add g h
printf '[filter "y"]\n\tclean = touch hooked; cat\n' > more
printf 'f diff=x filter=y\ng diff=z\nh diff=a"b\n' > .gitattributes
rm -f hooked; echo y >> f; echo y >> g; echo y >> h
"""
_MUCH = """
{ printf '[a]\n\tk = "'; head -c 900000 /dev/zero | tr '\\0' x; printf '"\n'; } > much
for folder in .a .b .c .d .e .f 1 2 3 4 5 6; do mkdir -p $folder/refs && cp much $folder/config; done
"""
_FILTERS = 's/.*/[filter "&"]\\n\\tclean = x/'
_LONG = "git init -q . && (printf '[pager]\\n'; head -c 140000 /dev/zero | tr '\\0' x; printf ' = y\\n') >> .git/config"
_GIT_CHECK = (
    "sh",
    "-c",
    "git status --porcelain >/dev/null; git diff >/dev/null; git commit -q -a -m y 2>/dev/null; git verify 2>/dev/null;"
    " git st >/dev/null && test ! -e hooked",
)
# Each is right in the first call and ends the tests in a later one, or has them dropped.
_CALLS = (
    "CALLS = []\ndef add(a, b):\n    CALLS.append(a)\n    if len(CALLS) == {}:\n        {}\n    return 3\n"
)
_ENDINGS = {
    "os._exit(0)": "import os; os._exit(0)",
    "pytest.exit": "import pytest; pytest.exit('done', returncode=0)",
    "should stop": "import gc, pytest; [setattr(s, 'shouldstop', 'x') for s in gc.get_objects()"
    " if isinstance(s, pytest.Session)]",
    "drops items": "import gc, pytest; [s.items.__delitem__(slice(len(CALLS), None)) for s in gc.get_objects()"
    " if isinstance(s, pytest.Session)]",
}
_DROPS = """
import gc, pytest
class Drops:
    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items): items[:] = items[:1]
[c.pluginmanager.register(Drops(), str(id(c))) for c in gc.get_objects() if isinstance(c, pytest.Config)]
def add(a, b): return 3
"""
_ENDS: Sequence[Try] = (
    *(
        Try(f"{name} in {call} of {of}", {"solution.py": _CALLS.format(call, ending)}, checker)
        for name, ending in _ENDINGS.items()
        for of, checker in ((2, _IMPORTS), (3, _THREE))
        for call in range(1 if name.startswith(("should", "drops")) else 2, of + 1 if "x" in name else of)
    ),
    Try("drops tests that are collected", {"solution.py": _DROPS}, _IMPORTS),
)
_ATTACKS: Sequence[Try] = (
    *_ENDS,
    _solution("os._exit", _TRAP),
    _solution("SystemExit", "raise SystemExit(0)\n"),
    _solution("exits in a call", "import os\ndef add(a, b):\n    os._exit(0)\n"),
    _solution("skips", "import pytest\ndef add(a, b):\n    pytest.skip('x') if a else None\n    return 0\n"),
    _solution("skips all", "import pytest\npytest.skip('x', allow_module_level=True)\n"),
    _solution("xfail", "import pytest\ndef add(a, b):\n    pytest.xfail('x') if a else None\n    return 0\n"),
    _solution("exit", "import pytest\ndef add(a, b):\n    pytest.exit('x', returncode=0)\n"),
    _solution(
        "no test runs", f"import _pytest.python as p\np.Function.runtest = lambda self: None\n{_WRONG}"
    ),
    _solution("syntax error", "def add(a, b:\n"),
    _solution("import error", "import no_such_module\n"),
    _solution("exit code 5", "import os\nos._exit(5)\n"),
    _solution("conftest", _WRONG, **{"conftest.py": _TRAP, "pytest.ini": "[pytest]\naddopts = --co\n"}),
    Try("pytest, os._exit", {"solution.py": _TRAP, "suite/test_it.py": _SUITE}, _SUITE_COMMAND),
    Try("a command in Python", {**_PLANTED}, ("python3", "-c", "import json, unittest, sys; sys.exit(1)")),
    Try("a command in a shell", {**_PLANTED}, ("sh", "-lc", "python3 -c 'import json; raise SystemExit(1)'")),
    Try("a missing program", {"run": "x"}, ("sh", "-c", "./run")),
    Try("many settings of git", {}, _READS, f"git init -q . && seq 30000 | sed {_FILTERS!r} >> .git/config"),
    Try("a long setting of git", {}, _READS, _LONG),
    Try(
        "repositories with names",
        {},
        _READS,
        'for n in 1 2 3; do d=$(printf \'a\\n%s\\377 b\' $n); mkdir "$d"; git init -q "$d"; done',
    ),
    Try(
        "a workspace of nothing", {}, _READS, "chmod 0 .; rm -rf .git; mkdir -p securebench/evaluation_inputs"
    ),
)
_HONEST: Sequence[Try] = (
    _solution("right", _RIGHT),
    _solution("right, beside traps", _RIGHT, **_PLANTED),
    Try("right, by chosen tests", {"solution.py": f"{_RIGHT}CASES = [1, 2]\nclass Base: pass\n"}, _CHOSEN),
    Try("reads", {"answer": "42\n"}, _READS),
    Try("pytest", {"solution.py": _RIGHT, "suite/test_it.py": _SUITE}, _SUITE_COMMAND),
    Try("a command in Python", {**_PLANTED}, ("python3", "-c", "import json, unittest")),
    Try("a program with a sibling", {"main.py": "import helper", "helper.py": ""}, ("python3", "main.py")),
    Try("git runs nothing of the repository", {}, _GIT_CHECK, _GIT),
    Try(
        "however much its settings are",
        {},
        ("sh", "-c", "git diff >/dev/null; test ! -e hooked"),
        _GIT + _MUCH,
    ),
)


def _judged(room: Running, folder: Path, tries: Sequence[Try]) -> Mapping[str, AgentFinding]:
    async def one(each: Try, places: asyncio.Semaphore) -> AgentFinding:
        checker, script = each.checker, f"{writing(each.files)}{each.script}"
        async with places:
            if not isinstance(checker, Mapping):
                check = CommandCheck(checker, None, 20.0)
                return await Judge(room, folder).judged(check, CheckerFiles(), script)
            judge = Judge(room, Path(mkdtemp(dir=folder)))
            return await judge.judged(FileCheck("pytest", ".", 20.0), judge.evaluator(checker, "."), script)

    async def every() -> list[AgentFinding]:
        places = asyncio.Semaphore(_AT_ONCE)
        return await asyncio.gather(*(one(each, places) for each in tries))

    with controls_once():
        return dict(zip((each.name for each in tries), room.wait(every()), strict=True))


@pytest.fixture(scope="module")
def attacks(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, AgentFinding]:
    folder = tmp_path_factory.mktemp("attacks")
    return shared_value(tmp_path_factory, "terminal_attacks", lambda: _judged(bwrap, folder, _ATTACKS))


@pytest.fixture(scope="module")
def honest(bwrap: Running, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, AgentFinding]:
    folder = tmp_path_factory.mktemp("honest")
    return shared_value(tmp_path_factory, "terminal_honest", lambda: _judged(bwrap, folder, _HONEST))


@pytest.mark.parametrize("name", [each.name for each in _ATTACKS])
def test_no_attack_passes(name: str, attacks: Mapping[str, AgentFinding]) -> None:
    assert attacks[name].verdict is Verdict.FAILED, attacks[name]


@pytest.mark.parametrize("name", [each.name for each in _HONEST])
def test_honest_work_passes(name: str, honest: Mapping[str, AgentFinding]) -> None:
    assert honest[name] == AgentFinding(Verdict.PASSED)
