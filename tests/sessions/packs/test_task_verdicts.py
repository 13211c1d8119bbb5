"""Verdicts over task folders in real containers: who judged where, and what an agent in its box can do about it."""

from __future__ import annotations

from pathlib import Path
from shutil import copytree

import pytest
from agent_scripts import answer_turns
from commands import helmbench
from engines import Running
from inner_pytest import run_pytest
from paths import ROOT
from provider import Provider
from task_folders import task_toml, write_task
from trees import rows

_DEMO = ROOT / "benchmark" / "agent-tasks"
_SHARED = task_toml(environment="cpus = 1\nmemory_mb = 256\nnetwork_mode = 'no-network'")
_GONE = """#!/bin/sh
if [ -e /app/secret ] || [ -d /app/notes ] || ! grep -q mended /app/tool; then reward=0; else reward=1; fi
echo $reward > /logs/verifier/reward.txt
"""
_FILES = {name: f"{name}\n" for name in ("environment/secret", "environment/notes/a", "environment/tool")}
_CMP = "printf '#!/bin/sh\\nexit 0\\n' > /usr/local/bin/cmp; chmod 755 /usr/local/bin/cmp"
_VERDICTS = """
    SELECT results.code, results.outcome, results.reason, evaluations.beside
    FROM results JOIN evaluations ON evaluations.result_id = results.id
"""


def _demo(place: Path, name: str, change: tuple[str, str] = ("", "")) -> None:
    copytree(_DEMO / name.partition("-")[0], place / name)
    toml = place / name / "task.toml"
    toml.write_text(toml.read_text().replace(*change))
    with (place / name / "instruction.md").open("a") as instruction:
        instruction.write(f"(item {name})\n")


def test_a_verdict_says_who_could_have_forged_it(
    pytester: pytest.Pytester, provider: Provider, podman: Running
) -> None:
    assert podman.image
    tasks = pytester.path / "tasks"
    _demo(tasks, "hello")
    _demo(tasks, "hello-wrong")
    _demo(tasks, "cheatable")
    separate = 'environment_mode = "separate"\ntimeout_sec = 60.0 #'
    _demo(tasks, "cheatable-alone", ('environment_mode = "shared"\ntimeout_sec', separate))
    for name in ("cleared", "blocked", "looped"):
        gone = {"tests/test.sh": _GONE, "instruction.md": f"Clear it up (item {name}).\n"}
        write_task(tasks / name, _SHARED, {**_FILES, **gone})
    clear = "rm secret; rm -r notes; echo > notes; echo mended > tool"
    answer_turns(
        provider,
        {
            "hello": ["echo 42 > /app/answer.txt"],
            "hello-wrong": ["echo 41 > /app/answer.txt"],
            "cheatable": [_CMP],
            "cheatable-alone": [_CMP],
            "cleared": [clear],
            "blocked": ["mkdir -p /logs/verifier/reward.json/a"],
            "looped": ["rm -rf /tests; ln -s /tests /tests"],
        },
    )

    result = run_pytest(
        pytester, "tasks", "--helmbench-model=test/good", f"--helmbench-base-url={provider.url}",
        "--helmbench-sandbox=podman",
    )  # fmt: skip

    found = {code: rest for code, *rest in rows(pytester.path / "helmbench.db", _VERDICTS)}
    assert found == {
        "hello": ["passed", None, None],
        "hello-wrong": ["failed", "tests_failed", None],
        "cheatable": ["passed", None, "own_box"],
        "cheatable-alone": ["failed", "tests_failed", None],
        "cleared": ["passed", None, "in_process"],
        "blocked": ["failed", "no_reward", "in_process"],
        "looped": ["failed", "no_reward", "in_process"],
    }
    result.assert_outcomes(passed=3, failed=4)
    shown = helmbench(pytester.path, "show", "last").stdout.splitlines()
    assert "3 of 7 verdicts in_process, 1 own_box (docs/trust.md)" in shown
