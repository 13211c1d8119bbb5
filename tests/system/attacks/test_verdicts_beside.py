"""Programs that a test starts, and that reach into the process of the test: the same user's, in the same box."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from engines import Running
from repositories import git, make_repository, patch_task

from pytest_helmbench.benchmarks.packs.agent.agent_family import AgentRow
from pytest_helmbench.benchmarks.packs.families.repo_patch.evaluation import evaluate_patch
from pytest_helmbench.core.outcome import Verdict

_TEST = """
import subprocess, sys, unittest
class TestTool(unittest.TestCase):
    def test_what_it_says(self):
        ran = subprocess.run([sys.executable, "src/tool.py"], stdout=subprocess.PIPE)
        self.assertEqual(ran.stdout, b"the sum of both is forty-two")
"""
_HONEST = 'import sys\nsys.stdout.write("the sum of both is forty-two")\n'
_WRITES = """
import os, sys
wanted, forged = b"the sum of both is forty-two", b"the sum of both is ninety-99"
try:
    parts = [line.split() for line in open(f"/proc/{os.getppid()}/maps")]
    with open(f"/proc/{os.getppid()}/mem", "r+b", 0) as memory:
        for part in parts:
            start, end = (int(each, 16) for each in part[0].split("-"))
            if not part[1].startswith("rw") or end - start > 1 << 26:
                continue
            try:
                memory.seek(start)
                data = memory.read(end - start)
            except OSError:
                continue
            place = data.find(wanted)
            while place >= 0:
                memory.seek(start + place)
                memory.write(forged)
                place = data.find(wanted, place + 1)
except OSError:
    pass
sys.stdout.buffer.write(forged)
"""
_READS = """
import os, re, sys
try:
    parts = [line.split() for line in open(f"/proc/{os.getppid()}/maps")]
    memory = open(f"/proc/{os.getppid()}/mem", "rb", 0)
    memory.seek(int(next(part for part in parts if part[1].startswith("rw"))[0].split("-")[0], 16))
    if memory.read(16):
        sys.stdout.write("the sum of both is forty-two")
except OSError:
    pass
"""
_ENVIRONMENT = """
import os, sys
try:
    if open(f"/proc/{os.getppid()}/environ", "rb").read() or os.readlink(f"/proc/{os.getppid()}/fd/1"):
        sys.stdout.write("the sum of both is forty-two")
except OSError:
    pass
"""


@pytest.fixture(params=["bwrap", "podman", "docker"])
def box(request: pytest.FixtureRequest) -> Running:
    found: Running = request.getfixturevalue(request.param)
    return found


def test_a_program_of_the_candidate_does_not_reach_into_the_process_of_its_test(
    box: Running, tmp_path: Path
) -> None:
    folder = tmp_path / "repository"
    commit = make_repository(folder, {"src/tool.py": "", "tests/test_tool.py": _TEST})
    found = {}
    for name, code in (("honest", _HONEST), ("writes", _WRITES), ("reads", _READS), ("env", _ENVIRONMENT)):
        (folder / "src/tool.py").write_text(code)
        patch = git(folder, "diff")
        git(folder, "reset", "-q", "--hard")
        more: dict[str, Any] = {} if box.image is None else {"image": box.image}
        task = patch_task(commit, folder, command=("python3", "-m", "unittest", "tests.test_tool"), **more)
        found[name] = box.wait(evaluate_patch(AgentRow(task, box.engine), patch)).verdict
    assert found == {
        "honest": Verdict.PASSED,
        **dict.fromkeys(("writes", "reads", "env"), Verdict.FAILED),
    }


_SHELL = """
wanted="the sum of both is forty-two"
said=$(python3 src/tool.py)
[ "$said" = "$wanted" ]
"""


_LOOKS = """
import os, sys
mine, seen = str(os.getpid()), set()
for other in [name for name in os.listdir("/proc") if name.isdigit() and name != mine]:
    for name in ("mem", "environ", "maps", "fd/0", "fd/1", "exe", "cwd"):
        path = f"/proc/{other}/{name}"
        try:
            os.readlink(path) if os.path.islink(path) else os.open(path, os.O_RDONLY)
            seen.add(name)
        except OSError:
            pass
if seen:
    sys.stdout.write("the sum of both is forty-two")
"""


def test_a_program_of_the_candidate_does_not_reach_into_a_shell_that_judges(
    box: Running, tmp_path: Path
) -> None:
    folder = tmp_path / "repository"
    commit = make_repository(folder, {"src/tool.py": ""})
    # The shell and whatever it has started: a writer into all of them, from the highest number down.
    everybody = _WRITES.replace("os.getppid()", "other")
    everybody = (
        "import os\nfor other in [int(name) for name in os.listdir('/proc') if name.isdigit()]:\n"
        + "".join(
            f"    {line}\n"
            for line in everybody.replace("sys.stdout.buffer.write(forged)", "pass").splitlines()
        )
    )
    everybody += "sys.stdout.buffer.write(forged)\n"
    found = {}
    for name, code in (("honest", _HONEST), ("writes", everybody), ("looks", _LOOKS)):
        (folder / "src/tool.py").write_text(code)
        patch = git(folder, "diff")
        git(folder, "reset", "-q", "--hard")
        more: dict[str, Any] = {} if box.image is None else {"image": box.image}
        task = patch_task(commit, folder, command=("sh", "-c", _SHELL), **more)
        found[name] = box.wait(evaluate_patch(AgentRow(task, box.engine), patch)).verdict
    assert found == {"honest": Verdict.PASSED, **dict.fromkeys(("writes", "looks"), Verdict.FAILED)}
