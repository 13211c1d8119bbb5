"""The boxes of task folders share a machine: as many live at one time as fit, and the session says what they had."""

from __future__ import annotations

import json
import os
from datetime import datetime
from pathlib import Path

import pytest
from engines import IMAGE, Running
from provider import Provider, Request
from trees import rows, run_tree

_TOML = """artifacts = ["/app/answer.txt"]
[verifier]
environment_mode = "separate"
[environment]
docker_image = "{image}"
workdir = "/app"
cpus = {cpus}
memory_mb = {memory_mb}
"""
_CPUS = os.cpu_count() or 1
_GREEDY = "```bash\npython3 -c 'len(str(1) * 10**9)'; echo 42 > answer.txt\n```"
_BOXES = """
    SELECT results.code, events.payload, events.at FROM events JOIN results ON results.id = events.result_id
    WHERE events.type = 'box' ORDER BY events.id
"""


def _write_task(folder: Path, cpus: float, memory_mb: int) -> None:
    (folder / "tests").mkdir(parents=True)
    (folder / "environment").mkdir()
    (folder / "task.toml").write_text(_TOML.format(image=IMAGE, cpus=cpus, memory_mb=memory_mb))
    (folder / "instruction.md").write_text(f"Write 42 to answer.txt (item {folder.name}).\n")
    check = '[ "$(cat /app/answer.txt)" = 42 ] && echo 1 > /logs/verifier/reward.txt\n'
    (folder / "tests" / "test.sh").write_text(f"#!/bin/sh\necho 0 > /logs/verifier/reward.txt\n{check}")
    (folder / "tests" / "test.sh").chmod(0o755)


def _reply(request: Request) -> str:
    if sum(message["role"] == "user" for message in request.body["messages"]) > 1:
        return "Done."
    return _GREEDY if "(item greedy)" in request.prompt else "```bash\nsleep 0.3; echo 42 > answer.txt\n```"


def test_boxes_wait_for_room_in_all_workers_and_the_session_says_what_they_had(
    pytester: pytest.Pytester, provider: Provider, podman: Running
) -> None:
    tasks = pytester.path / "benchmark"
    for name in ("one", "two"):
        _write_task(tasks / name, _CPUS, 256)
    _write_task(tasks / "greedy", 0.5, 64)
    _write_task(tasks / "huge", 1, 99_000_000)
    provider.reply = _reply

    result = run_tree(pytester, "-n2", "-rs", "--helmbench-sandbox=podman", url=provider.url)

    result.assert_outcomes(passed=3, skipped=1)
    shown, database = result.stdout.str(), pytester.path / "helmbench.db"
    assert "it asks for 99,000,000 MB of memory, and this machine has " in shown
    (line,) = [line for line in result.outlines if line.startswith("boxes: ")]
    assert line.endswith(f"0.5 to {_CPUS} cpus, 64 to 256 MB; 1 agent out of memory")
    spans, killed = [], set()
    for code, payload, at in rows(database, _BOXES):
        box, ended = json.loads(payload), datetime.fromisoformat(at).timestamp()
        spans.append((ended - box["wall_s"], ended, code, box["cpus"]))
        killed |= {(code, box["part"])} if box["memory_kills"] else set()
    assert killed == {("greedy", "agent")}
    assert len(spans) == 6
    for began, ended, code, cpus in spans:
        beside = [
            one[3] for one in spans if one[2] != code and one[0] < ended - 0.05 and began < one[1] - 0.05
        ]
        assert not beside or cpus + max(beside) <= _CPUS, (code, spans)
