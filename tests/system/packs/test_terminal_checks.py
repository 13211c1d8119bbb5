"""How checkers end and what that means; the runner of tests without pytest; the workspace and its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
from engines import IMAGE, Running, folder_of_image
from terminal_tasks import Judge

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding, AgentRow
from pytest_helmbench.benchmarks.packs.families.terminal_task.evaluation import evaluate_terminal
from pytest_helmbench.benchmarks.packs.families.terminal_task.family import FAMILY
from pytest_helmbench.benchmarks.packs.families.terminal_task.place import open_place
from pytest_helmbench.benchmarks.packs.task import (
    CommandCheck,
    Environment,
    PlannedFile,
)
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.sandbox.box import Command
from pytest_helmbench.sandbox.workspace import SandboxError

_PASSED = AgentFinding(Verdict.PASSED)
_ANSWER = (
    "from pathlib import Path\n\n\ndef test_answer():\n    assert Path('answer.txt').read_text() == '42\\n'\n"
)


@pytest.fixture
def judge(bwrap: Running, tmp_path: Path) -> Judge:
    return Judge(bwrap, tmp_path)


@pytest.fixture
def bare(podman: Running, tmp_path: Path) -> Judge:
    """A judge whose image has no pytest."""
    return Judge(podman, tmp_path, environment=Environment(image=IMAGE))


def _is(finding: AgentFinding, verdict: Verdict, reason: str, message: str) -> None:
    assert (finding.verdict, finding.reason, finding.message) == (verdict, reason, message), finding


_FAILED, _ERROR = Verdict.FAILED, Verdict.ERROR


@pytest.mark.parametrize(
    ("argv", "verdict", "reason", "how"),
    [
        (("sh", "-lc", "exit 3"), _FAILED, "check_failed", "ended with exit code 3"),
        (("sh", "-c", "exit 124"), _FAILED, "timeout", "stopped"),
        (("sleep", "60"), _FAILED, "timeout", "stopped after 0.5 s"),
        (("cat", "pipe"), _FAILED, "check_failed", "ended with exit code 1"),
        (("no-such-program",), _ERROR, "cannot_start", "no-such-program is not there"),
    ],
)
def test_how_a_command_ends(
    judge: Judge, argv: tuple[str, ...], verdict: Verdict, reason: str, how: str
) -> None:
    found = judge.command(*argv, script="mkfifo pipe", timeout_s=0.5 if argv[0] == "sleep" else 60)
    _is(found, verdict, reason, f"eval.checker.command: {how}")


@pytest.mark.parametrize("command", ["./answer.txt", "timeout 9 ./run", "env ./run", "bash run"])
def test_a_command_without_what_the_task_names_has_failed(judge: Judge, command: str) -> None:
    how = "eval.checker.command: cannot be started (exit code 127)"
    _is(judge.command("sh", "-c", command), _FAILED, "cannot_start", how)


_CODE_127 = "exec python3 -c 'import sys; sys.exit(127)'"


@pytest.mark.parametrize(
    "command",
    ["./gone", ": > f; ./f", "bash in/gone.sh", "cat answer.txt; gone", "program", "env program", _CODE_127],
)
def test_a_command_that_never_starts_is_an_error(judge: Judge, command: str) -> None:
    code = 126 if "./f" in command else 127
    how = f"cannot be started (exit code {code}), as it does without the candidate"
    for script in ("true", "echo 42 > answer.txt"):
        found = judge.command("sh", "-c", command, script=script)
        _is(found, _ERROR, "cannot_start", f"eval.checker.command: {how}")


@pytest.mark.parametrize("code", [2, 126, 127])
def test_an_agent_that_has_its_own_program_end_so_has_failed(judge: Judge, code: int) -> None:
    made = f"echo 'exit {code}' > solution.sh"
    finding = judge.command("sh", "-c", "test ! -f solution.sh || sh solution.sh", script=made)
    assert finding.verdict is _FAILED, finding
    finding = judge.command(
        "sh", "-c", "sh ./build && python3 -m pytest", script=f"echo 'exit {code}' > build"
    )
    assert finding.verdict is _FAILED, finding


def test_a_command_passes_in_the_folder_that_it_names(judge: Judge) -> None:
    judge.environment = Environment(workdir="/srv/work")
    check = (
        'test "$SECUREBENCH_WORKSPACE" = /srv/work && test -d "$SECUREBENCH_EVALUATOR" && test "$PWD" = "$0"'
    )
    for workdir, folder in ((None, "/srv/work"), ("sub", "/srv/work/sub"), ("/usr", "/usr")):
        assert judge.command("sh", "-c", check, folder, script="mkdir sub", workdir=workdir) == _PASSED


@pytest.mark.parametrize(
    ("name", "script"),
    [
        ("check", "#!/bin/sh\ntest -f answer.txt\n"),
        ("check.py", "import pathlib, sys\nsys.exit(not pathlib.Path('answer.txt').exists())\n"),
        ("check.sh", 'test -f answer.txt && test "$TEST_DIR" = "$SECUREBENCH_EVALUATOR/tests"\n'),
        ("sub/check.sh", 'test -f answer.txt && test "$TEST_DIR" = "$SECUREBENCH_EVALUATOR/sub/tests"\n'),
    ],
)
def test_scripts(judge: Judge, name: str, script: str) -> None:
    assert judge.tests({name: script}, "touch answer.txt", entry=name, source="script") == _PASSED
    finding = judge.tests({name: script}, entry=name, source="script")
    _is(finding, _FAILED, "check_failed", "eval.checker.path: ended with exit code 1")


_INPUTS = "securebench/evaluation_inputs"
_LOOKS = f"ls -d {_INPUTS} $(dirname $PWD)/evaluator* 2>/dev/null > seen || true; "


def _with_inputs(judge: Judge, contents: Mapping[str, str]) -> Judge:
    planned = judge.evaluator(contents, None).files
    judge.inputs = tuple(replace(item, target=f"{_INPUTS}/{item.target}") for item in planned)
    return judge


@pytest.mark.parametrize("kind", ["judge", "bare"])
@pytest.mark.parametrize(
    "script",
    [
        "true",
        f"mkdir -p {_INPUTS}/t; echo 'exit 0' > {_INPUTS}/t/run.sh; chmod 0 {_INPUTS}",
        "echo x > securebench",
        "mkdir d; ln -s d securebench",
    ],
)
def test_evaluation_inputs_lie_in_the_workspace_while_the_checker_runs_and_not_before(
    request: pytest.FixtureRequest, kind: str, script: str
) -> None:
    run = f'test ! -s seen && test "$(cat {_INPUTS}/t/tests/data)" = 42 && ! echo x 2>/dev/null > {_INPUTS}/t/run.sh'
    run += f" && ! rm -rf {_INPUTS} 2>/dev/null && test -f answer.txt"
    judge = _with_inputs(request.getfixturevalue(kind), {"t/run.sh": run, "t/tests/data": "42"})
    finding = judge.command("sh", f"{_INPUTS}/t/run.sh", script=f"{_LOOKS}{script}; touch answer.txt")
    assert finding == _PASSED
    removed = ("securebench was taken away: files of the evaluator lie there",)
    assert finding.removed[:1] == (() if script == "true" else removed)
    finding = judge.command("sh", f"{_INPUTS}/t/run.sh", script=f"{_LOOKS}{script}")
    _is(finding, _FAILED, "check_failed", "eval.checker.command: ended with exit code 1")


_CONFTEST = """
import pytest
@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem):
    return True if "evaluation_inputs" in str(pyfuncitem.path) else None
def pytest_collection_modifyitems(items):
    items[:] = items[:1]
"""


@pytest.mark.parametrize(
    "command", ["-m pytest {}", "-m pytest {}/t", "-m pytest {}/t/test_it.py::test_answer {}/t"]
)
def test_settings_of_the_workspace_mean_nothing_to_tests_among_the_inputs(judge: Judge, command: str) -> None:
    _with_inputs(judge, {"t/test_it.py": f"{_ANSWER}\n\ndef test_more():\n    pass\n"})
    traps = f"cat > conftest.py <<'END'\n{_CONFTEST}END\n"
    traps += (
        "printf '[pytest]\\naddopts = --maxfail=1\\npython_files = *.py\\n' > pytest.ini; touch setup.py\n"
    )
    argv = ("python3", *command.format(_INPUTS, _INPUTS).split())
    assert judge.command(*argv, script="echo 42 > answer.txt") == _PASSED
    assert judge.command(*argv, script=f"{traps}echo 42 > answer.txt") == _PASSED
    _is(
        judge.command(*argv, script=traps),
        _FAILED,
        "check_failed",
        "eval.checker.command: 1 of 2 tests failed",
    )


def test_pytest_runs_the_tests_where_it_is_importable(judge: Judge) -> None:
    contents = {
        "tests/test_answer.py": _ANSWER
        + "\n\ndef test_tmp(tmp_path, number):\n    assert number == helper.NUMBER\n",
        "tests/conftest.py": "import pytest\n\n\n@pytest.fixture\ndef number():\n    return 7\n",
        "tests/helper.py": "NUMBER = 7\n",
        "pytest.ini": "[pytest]\nmarkers = slow\naddopts = --strict-markers\n",
    }
    contents["tests/test_answer.py"] = "import helper\n" + contents["tests/test_answer.py"]
    assert judge.tests(contents, "echo 42 > answer.txt") == _PASSED
    finding = judge.tests(contents, "echo 41 > answer.txt")
    _is(finding, _FAILED, "check_failed", "eval.checker.path: 1 of 2 tests failed")
    assert "assert '41\\n' == '42\\n'" in finding.output
    assert judge.tests(contents, "echo 42 > answer.txt", entry="tests/test_answer.py") == _PASSED


@pytest.mark.parametrize(
    ("entry", "folder"), [(".", "."), ("test_here.py", "."), ("sub/test_here.py", "sub")]
)
def test_tests_of_pytest_find_what_lies_beside_them(judge: Judge, entry: str, folder: str) -> None:
    code = (
        "import os\n\n\ndef test_here():\n    wanted = os.path.join(os.environ['TEST_DIR'], 'wanted.txt')\n"
    )
    code += "    assert open(wanted).read() == open('answer.txt').read()\n"
    contents = {
        f"{folder}/{name}".removeprefix("./"): text
        for name, text in (("test_here.py", code), ("wanted.txt", "42\n"))
    }

    assert judge.tests(contents, "echo 42 > answer.txt", entry=entry) == _PASSED
    assert judge.tests(contents, "echo 41 > answer.txt", entry=entry).verdict is _FAILED


_SKIPPED = "import pytest\n\n\n@pytest.mark.skip\ndef test_x():\n    pass\n"


@pytest.mark.parametrize(
    ("code", "verdict", "reason", "message"),
    [
        ("def test_x(:\n", _ERROR, "unfit_tests", "test_x.py is not Python: invalid syntax ("),
        ("x = 1\n", _ERROR, "unfit_tests", "there are no tests"),
        ("import solution\n", _FAILED, "does_not_load", "1 file of tests cannot be collected"),
        ("import nowhere\n", _ERROR, "unfit_tests", "1 file of tests cannot be collected, as it does"),
        (_SKIPPED, _FAILED, "incomplete", "no test has passed"),
    ],
)
def test_what_pytest_cannot_judge(
    judge: Judge, code: str, verdict: Verdict, reason: str, message: str
) -> None:
    finding = judge.tests({"test_x.py": code})
    assert (finding.verdict, finding.reason) == (verdict, reason), finding
    assert finding.message.startswith(f"eval.checker.path: {message}")


def test_functions_run_without_pytest(bare: Judge) -> None:
    contents = {"test_answer.py": _ANSWER, "deep/more_test.py": "def test_more(x=1):\n    assert x == 1\n"}
    assert bare.tests(contents, "echo 42 > answer.txt") == _PASSED
    finding = bare.tests(contents, "echo 41 > answer.txt")
    _is(finding, _FAILED, "check_failed", "eval.checker.path: 1 of 2 tests failed")
    assert "FAILED test_answer" in finding.output


_NO_PYTEST = "which is not installed"


@pytest.mark.parametrize(
    ("code", "verdict", "message"),
    [
        ("import pytest\n", _ERROR, f"test_x.py imports pytest, {_NO_PYTEST}"),
        ("def test_x(tmp_path): pass\n", _ERROR, "test_x.py: test_x() takes 'tmp_path': fixtures need"),
        ("", _ERROR, "there are no tests"),
        ("import solution\n", _FAILED, "1 file of tests cannot be collected"),
        ("class TestX: pass\n", _ERROR, f"test_x.py: the class TestX needs pytest, {_NO_PYTEST}"),
        ("async def test_x(): pass\n", _ERROR, "test_x.py: test_x() needs pytest and a plugin"),
        ("raise SystemExit(0)\n", _ERROR, "1 file of tests cannot be collected"),
        ("def test_x(): raise SystemExit(0)\n", _FAILED, "1 of 1 tests failed"),
        ("import os\n\n\ndef test_x(): os._exit(0)\n", _ERROR, "ended with exit code 0 before its tests"),
    ],
)
def test_what_the_runner_of_functions_cannot_judge(
    bare: Judge, code: str, verdict: Verdict, message: str
) -> None:
    finding = bare.tests({"test_x.py": code})
    assert finding.verdict is verdict
    assert finding.message.startswith(f"eval.checker.path: {message}"), finding


_OWN = "import os, sys\nsys.path.append(os.getcwd())\nfrom solution import *\nfrom solution import add\n\n\n"
_OWN += "def test_a():\n    assert add(1, 2) == 3\n\n\ndef test_b():\n    assert add(0, 0) == 0\n"
_STOPS = "import sys\ndef add(a, b):\n    for place in range(1, 4):\n"
_STOPS += "        for value in sys._getframe(place).f_locals.values():\n"
_STOPS += "            value.clear() if type(value) in (list, dict) else None\n    return 3\n"


@pytest.mark.parametrize(
    "solution",
    [
        "import pytest\n",
        "raise ImportError(name='pytest')\n",
        "class TestX: pass\ndef add(a, b): return 0\n",
        "def test_y(needed): pass\ndef add(a, b): return 0\n",
        "async def test_y(): pass\ndef add(a, b): return 0\n",
        "import os\ndef add(a, b): return 3 if a else os._exit(0)\n",
        "def add(a, b):\n    if a: return 3\n    raise SystemExit(0)\n",
        _STOPS,
        "import sys\ndef add(a, b):\n    sys._getframe(1).f_globals['test_b'] = lambda: 0\n    return 3\n",
    ],
)
def test_no_solution_hinders_the_runner_of_functions(bare: Judge, solution: str) -> None:
    finding = bare.tests({"test_own.py": _OWN}, f"cat > solution.py <<'END'\n{solution}END")
    assert finding.verdict is _FAILED, finding


def test_a_workspace_filled_from_the_image(bare: Judge, podman: Running) -> None:
    folder = folder_of_image(podman)
    bare.environment = Environment(image=IMAGE, workdir=folder, materialize_workdir_from_image=True)
    assert bare.command("sh", "-c", "test -f __init__.py && test -f new", script="touch new") == _PASSED
    bare.environment = Environment(image=IMAGE, workdir=folder)
    assert bare.command("sh", "-c", "test ! -e __init__.py") == _PASSED
    bare.environment = Environment(image=IMAGE, workdir="/nowhere", materialize_workdir_from_image=True)
    with pytest.raises(
        SandboxError, match=r"^docker\.io/library/python:3\.12-slim: /nowhere cannot be copied"
    ):
        bare.command("true")


def test_assets_are_laid_out_and_read_only_ones_come_back(judge: Judge, tmp_path: Path) -> None:
    for name in ("fixed", "free"):
        (tmp_path / name).write_text(f"{name}\n")
    judge.assets = (
        PlannedFile(tmp_path, "in", 0o755, 0, True, True),
        PlannedFile(tmp_path / "fixed", "in/fixed", 0o444, 6, False, True),
        PlannedFile(tmp_path / "free", "free", 0o644, 5, False, False),
    )
    script = "grep -q fixed in/fixed; rm -rf in; ln -s /etc in; echo forged > free"
    check = 'test "$(cat in/fixed)" = fixed && test ! -L in && test "$(cat free)" = forged'
    assert judge.command("sh", "-c", check, script=script) == _PASSED
    (tmp_path / "fixed").write_text("changed since\n")
    with pytest.raises(SandboxError, match=r"^in/fixed: the file has changed since it was planned$"):
        judge.command("true")


def test_dangerous_commands_need_leave(judge: Judge) -> None:
    task = judge.task(CommandCheck(("true",)), needed=("chroot",))
    message = "it needs chroot, which --helmbench-allow-command=chroot would allow"
    assert FAMILY.denied(task, Granted(())) == message
    assert FAMILY.denied(task, Granted(("chroot",))) is None


def test_a_command_that_is_allowed_works_in_a_container(bare: Judge) -> None:
    task = bare.task(CommandCheck(("chroot", "/", "true")), needed=("chroot",))
    engine = bare.room.engine

    async def judged(allowed: tuple[str, ...]) -> tuple[int | None, AgentFinding]:
        row = AgentRow(task, engine, allowed_commands=Granted(allowed))
        async with open_place(row) as (spec, workspace):
            async with await engine.open(spec) as box:
                ended = await box.run(Command(("chroot", "/", "true")))
            allowing = replace(row, allowed_commands=Granted(("chroot",)))
            return ended.exit_code, await evaluate_terminal(allowing, workspace)

    assert bare.room.wait(judged(("chroot",))) == (0, _PASSED)
    assert bare.room.wait(judged(()))[0] != 0
