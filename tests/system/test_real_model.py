"""A real model in llama.cpp's server has a conversation with a tool, and answers a table."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from inner_pytest import run_pytest_apart
from readme import page_blocks, ran, with_programs
from trees import Part, Tree, rows, write_tree
from waiting import until

_COMMAND = shlex.split(os.environ.get("HELMBENCH_LLAMA_SERVER", ""))
"""Such as `llama-server -m model.gguf --jinja`, and a template of its own where the model's has no tools."""

pytestmark = [
    pytest.mark.real_model,
    pytest.mark.skipif(
        not (_COMMAND and shutil.which(_COMMAND[0])), reason="HELMBENCH_LLAMA_SERVER is not a command"
    ),
]

_TALK = """## Turn 1

Where is my order 1001?

## Turn 2

Thank you!

## Assistant

You are welcome. Anything else?

## Turn 3

So it is shipped? Say yes or no."""
_RULES = """evaluation:
  type: contains
  expected: "yes"
  ignore_case: true
  turns:
    1: {type: all, of: [{type: tool_calls, required: [order_status]}, {type: contains, expected: shipped}]}"""
_TOOLS = """- name: order_status
  description: Look up where an order is.
  parameters: {type: object, properties: {order: {type: string}}, required: [order]}
  returns: [{when: {order: "1001"}, value: {status: shipped}}, {value: {error: no such order}}]
"""


@pytest.fixture
def real_url(tmp_path: Path) -> Iterator[str]:
    """The base URL of a llama-server that has loaded a model."""
    said = tmp_path / "server.txt"
    with said.open("wb") as output:
        listening = (*_COMMAND, "--host", "127.0.0.1", "--port", "0", "--alias", "real")
        server = subprocess.Popen(listening, stdout=output, stderr=output)
    try:
        until(lambda: "listening on " in said.read_text() or server.poll() is not None, "it listens")
        found = re.search(r"listening on (http://127\.0\.0\.1:\d+)", said.read_text())
        assert found, said.read_text()[-2000:]
        yield f"{found[1]}/v1"
    finally:
        server.kill()
        server.wait()


def test_a_real_model_has_a_conversation_with_a_tool(pytester: pytest.Pytester, real_url: str) -> None:
    job = "You help customers of a shop. Look up every order with the tool before you answer."
    tree = Tree(_RULES.splitlines(), perturbations={"PT1": Part(_TALK, 5)}, conditions={}, body=job)
    root = write_tree(pytester.path / "benchmark", {"P1-B1-S1": tree})
    (root / "scenarios" / "P1-B1-S1" / "tools.yml").write_text(_TOOLS, encoding="utf-8")
    options = ("--helmbench-model=llamacpp/real", "--helmbench-temperature=0", "--helmbench-max-tokens=200")

    result = run_pytest_apart(pytester, "benchmark", *options, f"--helmbench-base-url={real_url}")

    database = pytester.path / "helmbench.db"
    ((outcome,),) = set(rows(database, "SELECT outcome FROM v_results"))
    assert outcome in ("passed", "failed"), result.stdout.str()
    assert {turn for (turn,) in rows(database, "SELECT turn FROM calls")} == {1, 3}
    assert rows(database, "SELECT DISTINCT status_code, error FROM calls") == [(200, None)]
    shown = pytester.run(sys.executable, "-m", "pytest_helmbench", "show", "last", "P1-B1-S1-PT1")
    assert shown.ret == 0
    assert "So it is shipped? Say yes or no." in shown.stdout.str()


def test_every_command_of_the_page_on_local_models_runs_against_a_real_one(
    pytester: pytest.Pytester, real_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_programs(monkeypatch)
    monkeypatch.setenv("PYTEST_ADDOPTS", f"--helmbench-base-url={real_url}")
    blocks = page_blocks("compare-local-models", pytester.path)
    commands = [block for mark, language, block in blocks if language == "bash" and mark != "install"]

    said = [ran(block) for block in commands]

    assert all(status in (0, 1) for status, _ in said), said
    asked = "SELECT count(*) FROM results WHERE run_id IN (1, 2) AND outcome IN ('passed', 'failed')"
    ((judged,),) = rows(pytester.path / "helmbench.db", asked)
    assert judged == 6, said
