"""Workspaces that try to pass without the work, or to hang the checker: every one of them must fail."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path

import pytest
from engines import Running
from terminal_tasks import Judge, writing

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentFinding
from pytest_helmbench.benchmarks.packs.task import Environment
from pytest_helmbench.core.outcome import Verdict
from pytest_helmbench.sandbox.box import Command

_PASSED = AgentFinding(Verdict.PASSED)

# The checks of the four audit packs, in one: the work is done, nothing is forged, and the evaluator is as it was.
_TESTS = {
    "tests/test_outputs.py": """
import os
from pathlib import Path

EVALUATOR = Path(__file__).resolve().parents[1]


def test_the_work_is_done():
    assert Path("answer.txt").read_text() == (EVALUATOR / "expected.txt").read_text()


def test_the_evaluator_is_outside_of_the_workspace():
    assert (EVALUATOR / "expected.txt").read_text() == "forty-two\\n"
    assert Path(os.environ["SECUREBENCH_EVALUATOR"]) == EVALUATOR
    assert Path.cwd() == Path(os.environ["SECUREBENCH_WORKSPACE"])
    assert not EVALUATOR.is_relative_to(Path.cwd())


def test_nothing_is_forged():
    assert not Path("network_success").exists()
    assert not Path("TRAPPED").exists()
""",
    "expected.txt": "forty-two\n",
}


def _judge(room: Running, folder: Path, script: str, tests: Mapping[str, str] | None = None) -> AgentFinding:
    """Let an agent run a script, then judge what it leaves."""
    return Judge(room, folder, Environment(image=room.image)).tests(tests or _TESTS, script)


_HOOKS = """
import os
open("/workspace/TRAPPED", "w").close()
def pytest_collection_modifyitems(items): items[:] = []
def pytest_runtest_call(item): os._exit(0)
def pytest_sessionfinish(session): session.exitstatus = 0
os._exit(0)
"""
_TRAP = "import os; open('/workspace/TRAPPED', 'w').close(); os._exit(0)\n"


def _words(text: str) -> list[str]:
    return text.split()


_PYTESTS_FILES = writing(
    {
        "conftest.py": _HOOKS,
        "tests/conftest.py": _HOOKS,
        "pytest.ini": "[pytest]\naddopts = --collect-only -p conftest\n",
        ".pytest.ini": "[pytest]\naddopts = --collect-only\n",
        "setup.cfg": "[tool:pytest]\naddopts = --collect-only\n",
        "tox.ini": "[pytest]\naddopts = --collect-only\n",
        "pyproject.toml": '[tool.pytest.ini_options]\naddopts = "--collect-only"\n',
        "tests/test_outputs.py": "def test_fine(): pass\n",
        "setup.py": _TRAP,
    }
)
_PYTHONS_FILES = writing(
    {
        **dict.fromkeys(
            _words(
                "pytest.py _pytest/__init__.py pluggy.py iniconfig.py sitecustomize.py usercustomize.py site.py os.py "
                "importlib/__init__.py typing.py traceback.py encodings/__init__.py conftest.py"
            ),
            _TRAP,
        ),
        "evil.pth": "import os; os._exit(0)\n",
        "python312._pth": ".\n",
        "pyvenv.cfg": "home = /workspace\n",
        "evil-1.dist-info/METADATA": "Metadata-Version: 2.1\nName: evil\nVersion: 1\n",
        "evil-1.dist-info/entry_points.txt": "[pytest11]\nevil = pytest\n",
        **dict.fromkeys(_words("python python3 pytest sh bin/python3 bin/pytest .local/bin/sh"), "#!/bin/sh\nexit 0\n"),
        ".profile": "exit 0\n",
    }
)  # fmt: skip


@pytest.mark.parametrize(
    "traps", [_PYTESTS_FILES, _PYTHONS_FILES + "\nchmod -R +x ."], ids=["pytest", "python"]
)
@pytest.mark.parametrize("kind", ["bwrap", "podman"])
def test_no_file_of_the_workspace_runs_before_the_tests(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str, traps: str
) -> None:
    room = request.getfixturevalue(kind)
    finding = _judge(room, tmp_path, traps)
    assert finding.verdict is Verdict.FAILED
    assert "1 of 3 tests failed" in finding.message
    assert _judge(room, tmp_path, f"{traps}\necho forty-two > answer.txt") == _PASSED


@pytest.mark.parametrize(
    "script",
    [
        "true",
        "mkdir answer.txt",
        "echo forty-two > answer.txt; chmod 000 answer.txt; chmod 000 .",
        "for path in /evaluator /evaluator-* /securebench /eval; do ln -s $path/expected.txt answer.txt; done",
        "truncate -s 300G answer.txt",
        "mkdir evaluator; echo forty-one > evaluator/expected.txt; cp evaluator/* .; cp expected.txt answer.txt",
        "i=0; while [ $i -lt 400 ]; do mkdir d; cd d; i=$((i+1)); done; echo x > answer.txt",
        "(setsid sh -c 'sleep 2; while :; do echo forty-two > answer.txt; done' &) ; sleep 0.1; rm -f answer.txt",
        "cp /bin/sh answer.txt; chmod 6777 answer.txt",
    ],
)
def test_workspaces_without_the_work(bwrap: Running, tmp_path: Path, script: str) -> None:
    finding = _judge(bwrap, tmp_path, script)
    assert finding.verdict is Verdict.FAILED, finding


@pytest.mark.parametrize(
    ("script", "why"),
    [
        ("mkfifo answer.txt", "answer.txt was taken away: it is a pipe, a socket or a device"),
        *(
            (
                f"ln -s {target} answer.txt",
                f"answer.txt was taken away: it is a link to '{target}', which is not",
            )
            for target in (
                "/proc/self/environ",
                "/proc/self/cmdline",
                "/proc/self/fd/3",
                "/etc/passwd",
                "../etc/passwd",
                "a/../../etc/x",
            )
        ),
        (
            "mkdir d; ln -s /proc/self d/e; ln -s d/e/cmdline answer.txt",
            "d/e was taken away: it is a link to",
        ),
    ],
)
def test_links_that_leave_the_workspace_are_removed_and_named(
    bwrap: Running, tmp_path: Path, script: str, why: str
) -> None:
    finding = _judge(bwrap, tmp_path, script)
    assert finding.verdict is Verdict.FAILED
    assert finding.removed[0].startswith(why)


def test_links_that_stay_inside_and_those_of_a_virtual_environment_are_left(
    bwrap: Running, tmp_path: Path
) -> None:
    script = "mkdir d bin; echo forty-two > d/a; ln -s d/a answer.txt; ln -s /usr/bin/env bin/env; ln -s ../d/a bin/a"
    finding = _judge(bwrap, tmp_path, script)
    assert finding == _PASSED
    assert not finding.removed


def test_the_evaluators_files_cannot_be_changed_by_what_the_tests_run(bwrap: Running, tmp_path: Path) -> None:
    tests = {
        "test_run.py": "import os, subprocess\nfrom pathlib import Path\n\n\ndef test_run():\n"
        "    subprocess.run(['sh', 'run.sh'], check=False)\n"
        "    assert (Path(os.environ['SECUREBENCH_EVALUATOR']) / 'expected.txt').read_text() == '42'\n",
        "expected.txt": "42",
    }
    script = writing(
        {"run.sh": 'echo 41 > "$SECUREBENCH_EVALUATOR/expected.txt"; rm -rf "$SECUREBENCH_EVALUATOR"'}
    )
    assert _judge(bwrap, tmp_path, script, tests) == _PASSED


@pytest.mark.parametrize("kind", ["bwrap", "podman"])
def test_the_agent_never_sees_the_evaluator(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    room = request.getfixturevalue(kind)
    script = (
        "find / \\( -path /proc -o -path /usr -o -name site-packages \\) -prune -o -name expected.txt"
        " -exec grep -l -s forty-two {} + > found; env > env;"
        " test -s found && touch TRAPPED"
    )
    finding = _judge(
        room, tmp_path, f"{script}; ls -d /evaluator* && touch TRAPPED; echo forty-two > answer.txt"
    )
    assert finding == _PASSED


@pytest.mark.parametrize(
    ("name", "value", "argv"),
    [
        (
            "PATH",
            "bin:/workspace/bin:/workspace/./bin:/tmp/../workspace/bin:alias::/usr/bin:/bin",
            ("grep", "x", "y"),
        ),
        ("HOME", "/workspace", ("sh", "-lc", "exit 1")),
        (
            "LD_LIBRARY_PATH",
            "/workspace:/usr/lib",
            ("sh", "-c", 'test "$LD_LIBRARY_PATH" = /workspace:/usr/lib'),
        ),
        ("PYTHONPATH", "/workspace", ("python3", "-c", "raise SystemExit(1)")),
        ("BASH_ENV", "/workspace/.profile", ("bash", "-c", "exit 1")),
        ("PYTEST_ADDOPTS", "--collect-only", ("sh", "-c", 'test -n "$PYTEST_ADDOPTS"')),
    ],
)
def test_an_environment_that_leads_into_the_workspace(
    bwrap: Running, name: str, value: str, argv: tuple[str, ...]
) -> None:
    """Images bring an environment of their own, such as a virtual environment below their workdir."""
    launch = (
        files("pytest_helmbench.benchmarks.packs.families.terminal_task.inside")
        .joinpath("launch.sh")
        .read_text()
    )
    traps = writing({"bin/grep": "#!/bin/sh\nexit 0", ".profile": "exit 0", "sitecustomize.py": _TRAP})
    box = bwrap.open()
    with box.workspace:
        bwrap.run(box, "sh", "-c", f"{traps}\nchmod +x bin/grep; ln -s bin alias")
        bare = Command(argv, env=((name, value),))
        assert bwrap.wait(box.run(bare)).exit_code == 0  # it does harm
        launched = Command(
            ("/bin/sh", "-c", launch, "sh", "/workspace", "secret", *argv), env=((name, value),)
        )
        ended = bwrap.wait(box.run(launched))
        assert ended.exit_code not in (0, 127), ended
        assert b"secret" not in ended.stderr
