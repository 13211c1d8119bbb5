"""`--helmbench-agent`: a program of the user's works on rows, and reaches its model through us alone."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from agent_scripts import item_of, left_alive, patch_row, task_row
from engines import Running
from packs import write_pack
from provider import Answer, Provider, Request
from repositories import write_bundle
from sessions import Session, until
from trees import rows, run_tree

_BWRAP = "--helmbench-sandbox=bwrap"
_KEY = "sk-REALKEY"
_LATENCY_S = 0.2
_AGENT = """
import json, os, pathlib, re, subprocess, sys, urllib.request

task = pathlib.Path(os.environ["HELMBENCH_TASK_FILE"]).read_text()
item = re.search(r"[(]item ([a-z0-9-]+)[)]", task)[1]
assert "sk-REALKEY" not in str(os.environ)

def ask(stream):
    body = {"model": "gpt-other", "stream": stream, "messages": [{"role": "user", "content": task}]}
    request = urllib.request.Request(
        os.environ["OPENAI_BASE_URL"] + "/chat/completions",
        json.dumps(body).encode(),
        {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "Content-Type": "application/json"},
    )
    with urllib.request.urlopen(request) as reply:
        if not stream:
            return json.load(reply)["choices"][0]["message"]["content"]
        assert reply.headers["Content-Type"].startswith("text/event-stream"), reply.headers
        lines = [line[6:].strip() for line in reply.read().decode().splitlines() if line.startswith("data: ")]
    assert lines.pop() == "[DONE]", lines
    deltas = [choice["delta"] for line in lines for choice in json.loads(line)["choices"]]
    return "".join(delta.get("content") or "" for delta in deltas)

if item.startswith("hangs-"):
    ask(False)
if item.startswith("hangs"):
    subprocess.run(["sleep", sys.argv[2]])
try:
    said = ask(item.startswith("stream"))
except OSError:
    sys.exit(0 if item == "gives-up" else 1)
pathlib.Path("answer.txt").write_text(said)
if item.startswith("again"):
    pathlib.Path("answer.txt").write_text(said + ask(False))
if item.startswith("leaves"):
    print("out of ideas", file=sys.stderr)
    sys.exit(3)
"""


_TALKER = """
import os, sys
from pathlib import Path
sys.argv[2:] = ["0"]
source = Path(sys.argv[1]).read_text().partition("if item.startswith")[0]
exec(source)
print(ask(item.startswith("stream")))
"""


def _prepare(folder: Path, found: list[dict[str, Any]]) -> str:
    """Write pack and agent; return the option that names it."""
    write_pack(folder / "benchmark", found)
    (folder / "agent.py").write_text(_AGENT)
    return f"--helmbench-agent={sys.executable} agent.py {folder} 9{os.getpid()} {{model}} {{workspace}}"


def _row(identity: str, wanted: str) -> dict[str, Any]:
    return task_row(identity, **{"eval.checker": {"command": f"test \"$(cat answer.txt)\" = '{wanted}'"}})


def _word(request: Request) -> Answer:
    return Answer(text=f"word of {item_of(request)}.", latency_s=_LATENCY_S)


def test_a_program_works_on_rows_without_a_key_and_is_metered(
    pytester: pytest.Pytester,
    provider: Provider,
    bwrap: Running,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HELMBENCH_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", "GITHUB_TOKEN"):
        monkeypatch.setenv(name, _KEY)
    plain = ["json-1", "json-2", "stream-1", "stream-2"]
    found = [_row(name, f"word of {name}.") for name in plain]
    found += [_row("json-wrong", "another"), _row("leaves", "any"), _row("again", "word of again." * 2)]
    option = _prepare(pytester.path, found)
    provider.reply = _word
    database = pytester.path / "helmbench.db"
    expected: list[tuple[str, str, str | None]] = [
        ("again", "passed", None),
        *((name, "passed", None) for name in plain),
    ]
    expected += [("json-wrong", "failed", "check_failed"), ("leaves", "error", "agent_failed")]

    result = run_tree(pytester, "-n2", _BWRAP, option, "-rA", url=provider.url)

    query = "SELECT code, outcome, reason FROM results WHERE run_id = {} ORDER BY code"
    assert rows(database, query.format(1)) == sorted(expected), result.stdout.str()
    result.stdout.fnmatch_lines(
        [f"the agent ended with exit code 3: {sys.executable} agent.py *", "*out of ideas*"]
    )
    assert provider.max_in_flight > 1
    assert _KEY not in result.stdout.str()
    assert _KEY.encode() not in database.read_bytes()
    assert {request.headers["authorization"] for request in provider.requests} == {f"Bearer {_KEY}"}
    asked = {name: 2 if name == "again" else 1 for name, *_ in expected}
    calls = rows(
        database, "SELECT code, purpose, count(*), max(sequence), count(cost_usd) FROM calls GROUP BY code"
    )
    assert calls == [(name, "agent", count, count, count) for name, count in sorted(asked.items())]
    assert {request.model for request in provider.requests} == {"test/good"}
    per_item = "SELECT code, round(cost_usd * 1000), prompt_tokens > 0 FROM results ORDER BY code"
    assert rows(database, per_item) == [(name, count, 1) for name, count in sorted(asked.items())]

    count = provider.count
    replayed = run_tree(pytester, _BWRAP, option, "--helmbench-cache=only", url="http://127.0.0.1:9/v1")
    assert rows(database, query.format(2)) == sorted(expected), replayed.stdout.str()
    assert provider.count == count


def test_ctrl_c_ends_programs_that_hang_with_their_children(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    option = _prepare(pytester.path, [_row("hangs-1", ""), _row("hangs-2", "")])
    mark = f"sleep 9{os.getpid()}"
    session = Session(pytester.path, provider.url, "-n2", "-q", _BWRAP, option)
    until(lambda: left_alive(mark) == [mark] * 2, "the agents hang")
    session.interrupt(everybody=True)
    assert session.end() == pytest.ExitCode.INTERRUPTED, session.text
    assert left_alive(mark) == []
    assert left_alive(f"agent.py {pytester.path}") == []
    runs = rows(pytester.path / "helmbench.db", "SELECT DISTINCT status FROM evaluation_runs")
    assert runs == [("interrupted",)]


def test_a_program_that_asks_its_model_nothing_is_judged_by_what_it_left_and_told(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    commit = write_bundle(pytester.path)
    found = [_row("right", "x"), _row("wrong", "y"), patch_row("patch", commit)]
    write_pack(pytester.path / "benchmark", found)
    (pytester.path / "harness.sh").write_text(
        "if test -d src; then sed -i s/a.-.b/a+b/ src/calculator.py; else echo x > answer.txt; fi"
    )

    result = run_tree(pytester, _BWRAP, "-n2", "--helmbench-agent=sh harness.sh", url=provider.url)

    query = "SELECT code, outcome, r.reason, justification FROM results r JOIN evaluations e ON e.result_id = r.id"
    told = "the agent asked its model nothing and was judged by what it left"
    assert rows(pytester.path / "helmbench.db", f"{query} ORDER BY code") == [
        ("patch", "passed", None, told),
        ("right", "passed", None, told),
        ("wrong", "failed", "check_failed", told),
    ], result.stdout.str()
    assert result.stdout.str().count(f"in some cases {told} (--helmbench-agent)") == 1
    assert provider.count == 0


def test_an_agent_that_does_not_end_is_stopped_at_the_time_limit_and_what_it_left_is_judged(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    option = _prepare(pytester.path, [_row("hangs-1", "x"), _row("hangs-2", "x")])
    timeout = "--helmbench-case-timeout=2"

    result = run_tree(pytester, _BWRAP, option, timeout, url=provider.url)

    result.assert_outcomes(failed=2)
    assert left_alive(f"sleep 9{os.getpid()}") == []
    ends = rows(pytester.path / "helmbench.db", "SELECT payload FROM events WHERE type = 'end'")
    assert [json.loads(payload)["exit_code"] for (payload,) in ends] == [None, None]


def test_an_agent_that_changes_nothing_hands_in_the_patch_of_its_models_last_reply(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    patch = "--- a/src/calculator.py\n+++ b/src/calculator.py\n@@ -1,2 +1,2 @@\n def add(a, b):\n-    return a - b\n"
    patch += "+    return a + b\n"
    commit = write_bundle(pytester.path)
    named = {"input.artifact_path": "out/fix.diff"}
    found = [
        *(patch_row(name, commit) for name in ("json-right", "stream-right", "other", "prose")),
        patch_row("named", commit, **named),
    ]
    _prepare(pytester.path, found)
    (pytester.path / "talker.py").write_text(_TALKER)
    replies = {"other": "*** Begin Patch\n*** Update File: x\n", "prose": "I cannot do that."}
    provider.reply = lambda request: replies.get(item_of(request), f"Do this:\n```diff\n{patch}```\n")

    option = f"--helmbench-agent={sys.executable} talker.py agent.py"
    result = run_tree(pytester, _BWRAP, option, "-rA", url=provider.url)

    query = "SELECT code, outcome, reason FROM results ORDER BY code"
    assert rows(pytester.path / "helmbench.db", query) == [
        ("json-right", "passed", None),
        ("named", "passed", None),
        ("other", "failed", "no_patch"),
        ("prose", "failed", "empty_patch"),
        ("stream-right", "passed", None),
    ], result.stdout.str()
    result.stdout.fnmatch_lines(["*there seems to be a patch in it, but none that git reads: *"])
