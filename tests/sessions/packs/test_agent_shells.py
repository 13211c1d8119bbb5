"""An agent of the user's and a box that lives on: the program `{shell}` is its only way in."""

from __future__ import annotations

import json
import sys

import pytest
from engines import Running
from provider import Provider
from task_folders import SEPARATE, task_toml, write_task
from trees import rows, run_tree

_AGENT = """
import os, pathlib, subprocess, sys, time, urllib.error, urllib.request

shell, name = sys.argv[1], pathlib.Path(sys.argv[2]).read_text().split()[0]

def run(script, given=b""):
    ended = subprocess.run([shell, "sh", "-c", script], input=given, capture_output=True)
    return [ended.returncode, ended.stdout.decode(), ended.stderr.decode()]

if name == "rude":
    door, token = os.environ["OPENAI_BASE_URL"] + "/shell", os.environ["OPENAI_API_KEY"]
    for body in (b"[" * 100000, b'{"argv": [], "stdin": ""}', b'{"argv": ["a\\u0000b"], "stdin": ""}'):
        try:
            urllib.request.urlopen(urllib.request.Request(door, body, {"Authorization": "Bearer " + token}))
        except urllib.error.HTTPError as error:
            print(error.code, end=" ")
    sys.exit()
if name == "slow":
    run("echo 42 > /app/answer.txt; sleep 600")
found = [run("cat; pwd; echo err >&2; exit 3", b"given "), run("sleep 600 & echo $! > /tmp/left")]
found += [run("kill -0 $(cat /tmp/left) && echo lives"), [run("yes | head -c 200000000")[0]]]
found.append(subprocess.run([shell], capture_output=True).returncode)
print(found)
run("echo 42 > answer.txt")
"""
_FOUND = [
    [3, "given /app\n", "err\n"],
    [0, "", ""],
    [0, "lives\n", ""],
    [124],
    1,
]


def test_an_agent_works_in_a_living_box_by_its_shell(
    pytester: pytest.Pytester, provider: Provider, podman: Running, bwrap: Running
) -> None:
    for name, time_s in (("works", 60), ("slow", 3), ("rude", 60)):
        toml = task_toml(root=SEPARATE).replace("timeout_sec = 60.0", f"timeout_sec = {time_s}.0")
        folder = write_task(pytester.path / "benchmark" / name, toml)
        (folder / "instruction.md").write_text(f"{name} (write 42 to answer.txt)\n")
    (pytester.path / "agent.py").write_text(_AGENT)
    agent = f"--helmbench-agent={sys.executable} agent.py {{shell}} {{task_file}}"

    result = run_tree(pytester, agent, url=provider.url)

    result.assert_outcomes(passed=2, errors=1)
    [(refused, reason, rude), (said, _, _)] = rows(
        pytester.path / "helmbench.db",
        "SELECT json_extract(payload, '$.stdout'), reason, outcome FROM events"
        " JOIN results ON results.id = result_id WHERE type = 'end' AND code <> 'slow' ORDER BY code",
    )
    assert (refused, reason, rude) == ("400 400 400", "refused_request", "error")
    assert json.loads(said.replace("'", '"')) == _FOUND


def test_an_agent_without_the_shell_is_not_replaced_by_another(
    pytester: pytest.Pytester, provider: Provider, podman: Running
) -> None:
    write_task(pytester.path / "benchmark" / "one", task_toml(root=SEPARATE))
    (pytester.path / "agent.py").write_text(_AGENT)

    result = run_tree(pytester, "-rs", f"--helmbench-agent={sys.executable} agent.py", url=provider.url)

    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["*by {shell}: put it into --helmbench-agent*"])
    assert not provider.requests
