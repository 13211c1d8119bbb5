"""Task folders in sessions: their items, files that never run, and what a session says."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from commands import helmbench
from inner_pytest import run_pytest
from provider import Provider
from task_folders import task_toml, write_task

_BOMB = "raise SystemExit('something of a task was imported')\n"
_BOMBS: dict[str, str | None] = dict.fromkeys(
    ("conftest.py", "test_bomb.py", "tests/conftest.py", "tests/test_bomb.py", "tests/a/test_b.py"), _BOMB
)
_ONE = "tasks/test-one/task.toml::test-one[test/good]"
_TWO = "tasks/two/task.toml::two[test/good]"


@pytest.mark.parametrize(
    ("place", "arguments", "ids"),
    [
        ("", ["tasks"], [_ONE, _TWO]),
        ("", ["tasks/test-one"], [_ONE]),
        ("", ["tasks/two/task.toml"], [_TWO]),
        ("", [_ONE], [_ONE]),
        ("", [_TWO, "tasks/test-one"], [_TWO, _ONE]),
        ("", ["tasks", "-k", "two"], [_TWO]),
        ("", ["tasks", "-m", "helmbench(difficulty='hard')"], [_TWO]),
        ("", ["tasks", "--helmbench-sample=1"], [_TWO]),
        ("", ["tasks", "--helmbench-shard=1/2"], [_TWO]),
        ("", ["tasks", "--helmbench-shard=2/2"], [_ONE]),
        ("tasks/test-one", ["."], [_ONE]),
        ("tasks", [], [_ONE, _TWO]),
        ("", None, []),
    ],
)
def test_items_are_tasks_and_no_python_in_them_is_run(
    pytester: pytest.Pytester, place: str, arguments: list[str] | None, ids: list[str]
) -> None:
    write_task(pytester.path / "tasks" / "test-one", files=_BOMBS)
    hard = task_toml().replace("easy", "hard")
    write_task(pytester.path / "tasks" / "two", hard, _BOMBS)
    pytester.makeini("[pytest]\n")
    os.chdir(pytester.path / place)
    asks = [] if arguments is None else [*arguments, "--helmbench-model=test/good"]

    result = run_pytest(pytester, *asks, "--collect-only", "-q", "-p", "no:cacheprovider")

    shown = result.stdout.str() + result.stderr.str()
    assert "something of a task" not in shown
    assert [line for line in result.outlines if "::" in line] == ids, shown


def test_tests_beside_one_task_folder_run_as_ever(pytester: pytest.Pytester) -> None:
    write_task(pytester.path / "one", files={name: _BOMB for name in _BOMBS if name != "conftest.py"})
    for name in ("tests", "more"):
        (pytester.path / name).mkdir()
        (pytester.path / name / f"test_{name}.py").write_text("def test_it(): pass\n")

    plain = run_pytest(pytester, "-q", "--collect-only", "-p", "no:cacheprovider")
    words = (".", "-q", "--collect-only", "-p", "no:cacheprovider", "--helmbench-model=test/good")
    asked = run_pytest(pytester, *words)

    own = ["more/test_more.py::test_it", "tests/test_tests.py::test_it"]
    assert [line for line in plain.outlines if "::" in line] == own
    assert sorted(line for line in asked.outlines if "::" in line) == [
        own[0],
        "one/task.toml::one[test/good]",
        own[1],
    ]


def test_a_session_names_what_is_wrong_and_skips_what_is_unknown(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    tasks = pytester.path / "tasks"
    write_task(tasks / "broken", task_toml(environment='cpus = "two"\nmemroy_mb = 5'))
    write_task(tasks / "gone", files={"task.toml": None})
    write_task(tasks / "gpu", task_toml(environment="gpus = 1"))
    write_task(tasks / "old", files={"tests/test.sh": "#!/bin/sh\n\npip install pytest\n"})
    (tasks / "models.yml").write_text("")

    result = run_pytest(
        pytester, "tasks", "-rA", "--helmbench-model=test/good", f"--helmbench-base-url={provider.url}",
        "--helmbench-sandbox=none",
    )  # fmt: skip

    result.assert_outcomes(errors=2, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "tasks/broken/task.toml:18: environment.cpus: this is text, not a number",
            "tasks/gone/task.toml: this is missing",
            "*1 × it needs GPUs, unknown here*",
            "warning: tasks: 2 tasks ask for a network and get none (--helmbench-network=task)",
            "warning: tasks/old/tests/test.sh:3: the verifier downloads; --helmbench-network=task allows it",
        ]
    )
    assert not provider.requests


def test_commands_read_task_folders(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nhelmbench_sandbox = none\n")
    write_task(tmp_path / "tasks" / "one", files={"instruction.md": "# canary\nDo it."})
    write_task(tmp_path / "tasks" / "two", task_toml(environment="cpuss = 1"))

    listed = json.loads(helmbench(tmp_path, "list", "tasks", "--json").stdout)
    prompt = helmbench(tmp_path, "prompt", "one", "tasks").stdout
    checked = helmbench(tmp_path, "check", "tasks")

    assert [(row["code"], row["family"]) for row in listed] == [
        ("one", "task_folder"),
        ("two", "task_folder"),
    ]
    assert "[user]\nDo it.\n" in prompt
    assert "canary" not in prompt
    assert (
        "tasks/two/task.toml:18: warning: environment.cpuss is no key: did you mean cpus?" in checked.stdout
    )
    assert checked.returncode == 0
