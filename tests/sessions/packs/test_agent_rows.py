"""Rows that an agent works on: its turns, its record, and how it ends when the session or the provider does."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from agent_scripts import COST_USD, TOKENS, answer_turns, item_of, left_alive, patch_row, task_row, turn_of
from engines import Running, containers
from packs import write_pack
from provider import Answer, Provider
from records import final_state
from repositories import write_bundle
from sessions import Session, run_undisturbed, until
from trees import rows, run_tree

_BWRAP = "--helmbench-sandbox=bwrap"
_OUTCOMES = "SELECT code, outcome, reason FROM results WHERE run_id = {} ORDER BY code"
_REPAIRS = "sed -i 's/a - b/a + b/' src/calculator.py"
_WRITES = "echo 42 > answer.txt"


def _pack(folder: Path, found: Sequence[Mapping[str, Any]]) -> Path:
    return write_pack(folder / "benchmark", found)


_TURNS: Mapping[str, Sequence[str | Answer]] = {
    "t-right": ["ls", f"{_WRITES}; exit 3", "cat answer.txt"],
    "t-wrong": ["echo 41 > answer.txt"],
    "t-fault": [_WRITES],
    "r-right": [_REPAIRS],
    "r-wrong": ["echo '# nothing' >> src/calculator.py"],
    "r-denied": ["echo pass > tests/test_add.py"],
    "r-fault": [_REPAIRS],
}
_VERDICTS = [
    ("r-denied", "failed", "path_denied"),
    ("r-fault", "error", "does_not_apply"),
    ("r-right", "passed", None),
    ("r-wrong", "failed", "tests_failed"),
    ("t-fault", "error", "cannot_start"),
    ("t-right", "passed", None),
    ("t-wrong", "failed", "check_failed"),
]
_REQUESTS = (
    "SELECT code, sequence, request_hash FROM calls WHERE run_id = {} ORDER BY code, sequence, attempt"
)


def test_agents_work_turn_by_turn_and_are_replayed(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    commit = write_bundle(pytester.path)
    no_patch = {"source": "command", "command": "true", "setup_patch": "no patch at all"}
    no_checker = {"eval.checker": {"command": ["no-such-program"]}}
    found = [
        task_row("t-right"),
        task_row("t-wrong"),
        task_row("t-fault", **no_checker),
        *(patch_row(name, commit) for name in ("r-right", "r-wrong", "r-denied")),
        patch_row("r-fault", commit, **{"eval.tests": no_patch}),
    ]
    _pack(pytester.path, found)
    answer_turns(provider, _TURNS)
    database = pytester.path / "helmbench.db"

    result = run_tree(pytester, "-n2", _BWRAP, "-rA", url=provider.url)

    assert rows(database, _OUTCOMES.format(1)) == _VERDICTS, result.stdout.str()
    result.assert_outcomes(passed=2, failed=3, errors=2)
    _check_record(database)
    answered = Counter((item_of(request), turn_of(request)) for request in provider.requests)
    # The row whose setup is broken sends no request.
    expected = {(name, turn) for name, said in _TURNS.items() for turn in range(len(said) + 1)}
    assert set(answered.values()) == {1}
    assert expected - set(answered) <= {("r-fault", 0), ("r-fault", 1)}

    asked = provider.count
    replayed = run_tree(pytester, "-n0", _BWRAP, "--helmbench-cache=only", url="http://127.0.0.1:9/v1")
    assert provider.count == asked
    assert rows(database, _OUTCOMES.format(2)) == _VERDICTS, replayed.stdout.str()
    assert rows(database, _REQUESTS.format(2)) == rows(database, _REQUESTS.format(1))
    assert rows(database, "SELECT min(from_cache), total(cost_usd) FROM calls WHERE run_id = 2") == [(1, 0.0)]


def _check_record(database: Path) -> None:
    """The transcript, the calls and their sums are on record."""
    query = "SELECT type, payload FROM events JOIN results ON results.id = result_id WHERE code = 't-right'"
    events = [(kind, json.loads(payload)) for kind, payload in rows(database, f"{query} ORDER BY events.id")]
    commands = [(one["command"], one["exit_code"]) for kind, one in events if kind == "command"]
    assert commands == [("ls", 0), (f"{_WRITES}; exit 3", 3), ("cat answer.txt", 0)]
    roles = [one["role"] for kind, one in events if kind == "message"]
    assert roles == ["system", "user", *["assistant", "tool"] * 3, "assistant"]
    said = [one["content"] for kind, one in events if kind == "message"]
    assert said[-1] == "I am done."
    assert said[-2].startswith("42\n")
    assert events[-1][0] == "end"
    assert (events[-1][1]["stop"], events[-1][1]["turns"]) == ("finished", 4)
    calls = rows(
        database,
        "SELECT purpose, sequence, attempt, from_cache, finish_reason FROM calls WHERE code = 't-right' ORDER BY rowid",
    )
    ends = ("tool_calls", "tool_calls", "tool_calls", "stop")
    assert calls == [("agent", number, 1, 0, reason) for number, reason in enumerate(ends, 1)]
    sums = "SELECT prompt_tokens, completion_tokens, round(cost_usd, 6), latency_ms > 0 FROM results"
    assert rows(database, f"{sums} WHERE code = 't-right'") == [
        (4 * TOKENS[0], 4 * TOKENS[1], round(4 * COST_USD, 6), 1)
    ]
    total = rows(database, "SELECT round(cost_usd, 6), (SELECT count(*) FROM calls) FROM evaluation_runs")
    assert total[0][0] == round(total[0][1] * COST_USD, 6)


def test_a_killed_session_leaves_nothing_behind_and_asks_nothing_again(
    pytester: pytest.Pytester,
    provider: Provider,
    bwrap: Running,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = pytester.path
    temporary = folder / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    database = folder / "helmbench.db"
    mark = f"sleep 3.0{os.getpid()}"
    _pack(folder, [task_row("judged"), task_row("half"), task_row("asked")])
    turns = {"judged": [_WRITES], "half": [_WRITES, mark, "cat answer.txt"], "asked": [_WRITES]}
    answer_turns(provider, {**turns, "asked": [Answer(hang=True)]})
    session = Session(folder, provider.url, "-n2", "-q", _BWRAP)
    until(lambda: any(words.startswith(mark) for words in left_alive(mark)), "the command runs")
    judged = "SELECT count(*) FROM results WHERE outcome = 'passed'"
    until(lambda: rows(database, judged) == [(1,)], "the first row is judged")
    assert session.kill_all()
    until(lambda: not left_alive(mark), "the command dies with its session")
    assert list(temporary.iterdir())
    before = Counter((item_of(request), turn_of(request)) for request in provider.requests)
    assert before == {("judged", 0): 1, ("judged", 1): 1, ("half", 0): 1, ("half", 1): 1, ("asked", 0): 1}

    provider.requests.clear()
    answer_turns(provider, turns)
    again = Session(folder, provider.url, "-n0", "-q", _BWRAP, "--helmbench-resume")
    assert again.end() == pytest.ExitCode.OK, again.text
    after = Counter((item_of(request), turn_of(request)) for request in provider.requests)
    assert after == {("half", 2): 1, ("half", 3): 1, ("asked", 0): 1, ("asked", 1): 1}
    assert list(temporary.iterdir()) == []
    assert "went on with run 1: 1 judged cases were stored" in again.text

    undisturbed = run_undisturbed(pytester, provider.url, "-q", _BWRAP, "--helmbench-db=undisturbed.db")
    assert undisturbed.ret == pytest.ExitCode.OK
    assert final_state(database) == final_state(folder / "undisturbed.db")


def test_a_killed_session_leaves_no_container(
    pytester: pytest.Pytester, provider: Provider, podman: Running
) -> None:
    mark = f"sleep 6{os.getpid()}.1"
    _pack(pytester.path, [task_row("t", environment={"image": podman.image})])
    answer_turns(provider, {"t": [mark]})
    session = Session(pytester.path, provider.url, "-n0", "-q", "--helmbench-sandbox=podman")
    until(lambda: any(words.startswith(mark) for words in left_alive(mark)), "the command runs")
    (name,) = containers(mark)  # once it is killed, any other session of this machine may remove it
    session.kill_all()

    answer_turns(provider, {"t": [_WRITES]})
    again = run_undisturbed(pytester, provider.url, "-q", "--helmbench-sandbox=podman")
    assert again.ret == pytest.ExitCode.OK
    until(lambda: not left_alive(mark), "the command ends with its container")
    assert name not in containers("")


def test_a_provider_that_goes_down_in_the_middle_of_the_work_is_an_error(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    faults = {
        "status": Answer(status=503),
        "reset": Answer(reset=True),
        "silent": Answer(hang=True),
        "cut": Answer(truncated=True),
    }
    _pack(pytester.path, [*map(task_row, faults), task_row("fine")])
    turns: dict[str, list[str | Answer]] = {
        name: ["echo 41 > answer.txt", fault] for name, fault in faults.items()
    }
    answer_turns(provider, {**turns, "fine": [_WRITES]})
    quick = ("--helmbench-max-retries=0", "--helmbench-timeout=1")

    result = run_tree(pytester, _BWRAP, "-rA", *quick, url=provider.url)

    result.assert_outcomes(passed=1, errors=4)
    database = pytester.path / "helmbench.db"
    found = rows(database, "SELECT code, outcome, prompt_tokens FROM results WHERE code != 'fine'")
    assert sorted(found) == sorted((name, "error", TOKENS[0]) for name in faults)
    assert rows(database, "SELECT score, coverage FROM evaluation_runs") == [(1.0, pytest.approx(0.2))]
    stops = "SELECT json_extract(payload, '$.stop') FROM events WHERE type = 'end' ORDER BY 1"
    assert rows(database, stops) == [*[("fault",)] * 4, ("finished",)]


def test_a_budget_spent_in_the_middle_of_the_work_is_a_skip(
    pytester: pytest.Pytester, provider: Provider, bwrap: Running
) -> None:
    pack = _pack(pytester.path, [task_row("long")])
    price = "{input: 1, output: 1}"
    (pack / "models.yml").write_text(f"- id: test/good\n  price: {price}\n  max_tokens: 10\n")
    answer_turns(provider, {"long": ["true"] * 9})

    result = run_tree(pytester, _BWRAP, "-rs", "--helmbench-max-cost=0.004", url=provider.url)

    result.assert_outcomes(skipped=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert 1 <= provider.count < 9
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT outcome, reason FROM results") == [("skipped", "budget")]
    assert rows(database, "SELECT round(cost_usd, 6) FROM results") == [
        (round(provider.count * COST_USD, 6),)
    ]
    result.stdout.fnmatch_lines(["SKIPPED * *budget*0.004*"])
