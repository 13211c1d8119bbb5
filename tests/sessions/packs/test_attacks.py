"""Attacks on packs: what solves nothing must not pass, and a verdict says where it would have."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest
from agent_scripts import code_row, patch_row, task_row
from commands import helmbench
from engines import Running
from packs import GONE, row, write_pack
from paths import ROOT
from repositories import write_bundle
from task_folders import SEPARATE, task_toml, write_task

_ALONE = 'environment_mode = "separate"'
_SIZE = "cpus = 1\nmemory_mb = 256\nnetwork_mode = 'no-network'"
_EXISTS = (
    "#!/bin/sh\n[ -f /app/answer.txt ] && reward=1 || reward=0\necho $reward > /logs/verifier/reward.txt\n"
)
_PARTLY = """#!/bin/sh
[ -f /app/answer.txt ] && is_there=1 || is_there=0
[ $is_there = 1 ] && read -r answer < /app/answer.txt
[ "$answer" = 42 ] && is_right=1 || is_right=0
echo "{\\"there\\": $is_there, \\"right\\": $is_right}" > /logs/verifier/reward.json
"""
_LEAKY = task_toml(root=SEPARATE, verifier=_ALONE, environment=_SIZE).replace("docker_image", "# ")
_COUNTER = "class Counter:\n    total = 0\n    def add(self, number):\n        self.total += number\n"
_GOLD = """--- a/src/calculator.py
+++ b/src/calculator.py
@@ -1,2 +1,2 @@
 def add(a, b):
-    return a - b
+    return a + b
"""


def _findings(text: str) -> list[str]:
    return [line for line in text.splitlines() if ": error: " in line or "warning: " in line]


@pytest.mark.timeout(300)
def test_attacks_show_which_tasks_pass_unsolved(tmp_path: Path, podman: Running) -> None:
    assert podman.image
    (tmp_path / "pytest.ini").write_text("[pytest]\nhelmbench_sandbox = podman\nhelmbench_build = offline\n")
    tasks = tmp_path / "tasks"
    for name in ("hello", "cheatable"):
        copytree(ROOT / "benchmark" / "agent-tasks" / name, tasks / name)
    separate = task_toml(root=SEPARATE, verifier=_ALONE, environment=_SIZE)
    write_task(tasks / "exists", separate, {"tests/test.sh": _EXISTS})
    solution = "#!/bin/sh\necho 42 > /app/answer.txt\n"
    leak = {
        "tests/test.sh": _PARTLY,
        "environment/Dockerfile": f"FROM {podman.image}\nCOPY solution /opt/lost\n",
        "environment/solution/a.sh": solution,
    }
    write_task(tasks / "leak", _LEAKY, leak)

    checked = helmbench(tmp_path, "check", "tasks", "--attack")

    on_exists = ("claims", "empty", "imposter", "payload")
    # The process that stays races the tests in the agent's box, and may lose on a busy machine.
    stays = "tasks/cheatable/task.toml: error: stays passed in the agent's box (held in a fresh one)"
    found = _findings(checked.stdout)
    wins = stays in found
    assert [one for one in found if one != stays] == [
        "tasks/cheatable/task.toml: error: wrappers passed in the agent's box (held in a fresh one)",
        *(f"tasks/exists/task.toml: error: {name} passed" for name in on_exists),
        "tasks/leak/task.toml: error: answers passed: solution/solve.sh stands in /opt/lost/a.sh",
        *(f"tasks/leak/task.toml: warning: {name} gained credit: 0.5 instead of 0" for name in on_exists),
    ]
    told = f"attacks on 4 tasks: {34 - wins} held, {6 + wins} passed, 0 not tried"
    assert checked.stdout.splitlines()[-1] == told
    assert checked.returncode == 1


def test_attacks_on_rows_of_all_families(tmp_path: Path, bwrap: Running) -> None:
    assert bwrap.engine
    commit = write_bundle(tmp_path)
    (tmp_path / "pytest.ini").write_text("[pytest]\nhelmbench_sandbox = bwrap\n")
    stateful = {
        "input.starter_code": "",
        "eval.tests": {"source": "inline", "code": "c = Counter()\nc.add(2)\nassert c.total == 2\n"},
        "eval.reference_solution": _COUNTER,
    }
    judged = {"eval": {"rubric": "It is polite."}}
    rows_of_pack = [
        row("short_answer", {"eval.accepted_answers": ["{}"], "eval.tolerance": GONE}, "braces"),
        row("multiple_choice", {}, "choice"),
        row("free_response", judged, "judged"),
        code_row("code"),
        code_row("stateful", **stateful),
        code_row("ruby", **{"input.language": "ruby"}),
        task_row("strict"),
        task_row("weak", **{"eval.checker": {"command": "test -e output.txt"}}),
        patch_row("patch", commit, **{"eval.gold_patch": _GOLD}),
    ]
    write_pack(tmp_path / "benchmark", rows_of_pack)

    checked = helmbench(tmp_path, "check", "benchmark", "--attack")

    where = "benchmark/tasks.jsonl"
    assert [line for line in _findings(checked.stdout) if "self-checked" not in line] == [
        f"{where}:1: error: braces: `{{}}` passed",
        f"{where}:5: error: stateful: imposter passed",
        f"{where}:8: error: weak: claims passed",
        f"{where}:9: error: patch: imposter passed",
        f"{where}:9: error: patch: payload passed",
        "benchmark: warning: all not tried on 1 row: a marking model judges it, which a reply may instruct",
        "benchmark: warning: all not tried on 1 row: the language 'ruby' needs environment.image and "
        "eval.tests.command",
        "benchmark: warning: empty, imposter, payload not tried on 2 rows: there is no solution",
    ]
    assert checked.stdout.splitlines()[-1] == "attacks on 9 rows: 46 held, 5 passed, 8 not tried"
    assert checked.returncode == 1


def test_a_solution_that_passes_in_its_own_box_alone_is_a_warning(tmp_path: Path, podman: Running) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nhelmbench_sandbox = podman\n")
    test = "#!/bin/sh\n[ -f /opt/done ] && reward=1 || reward=0\necho $reward > /logs/verifier/reward.txt\n"
    files = {"tests/test.sh": test, "solution/solve.sh": "#!/bin/sh\ntouch /opt/done\n"}
    write_task(tmp_path / "tasks" / "outside", task_toml(environment=_SIZE), files)

    checked = helmbench(tmp_path, "check", "tasks")

    assert checked.returncode == 0
    assert _findings(checked.stdout) == [
        "tasks/outside/task.toml: warning: the solution passes only in its own box: passes will be own_box"
    ]
