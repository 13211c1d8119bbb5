"""Conversations in a session: rules per turn and a judge, by a real server, and judged equal from the record."""

from __future__ import annotations

import json

import pytest
from provider import Provider, Request
from trees import Part, Tree, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main

_TURNS = (
    "## Turn 1\nMy kettle {n} smells.\n## Turn 2\nIt burns!\n## Assistant\nCall 112.\n## Turn 3\nAnd now?"
)
_RULES = (
    "evaluation:",
    "  type: rubric",
    "  rubric: It stays calm.",
    "  turns:",
    "    1: {type: contains, expected: unplug}",
    "  each: {type: length, max: 40}",
)
_FOUND = (
    "SELECT code, outcome, reason, results.score, criterion, rule, rule_hash, passed, observed, justification"
    " FROM results JOIN evaluations ON result_id = results.id WHERE run_id = {} ORDER BY code, evaluations.id"
)


def _reply(request: Request) -> str | None:
    said = [message["content"] for message in request.body["messages"] if message["role"] != "system"]
    if request.is_judge:
        calm = "Leave the house." in said[0]
        return json.dumps({"evidence": [], "justification": "So.", "judgment": "PASS" if calm else "FAIL"})
    kettle = int(said[0].split("kettle ")[1][0])
    if len(said) == 1:
        return ("Please unplug it.", "Please unplug it.", "Drink it.")[kettle - 1]
    assert said[1:] == [_reply_to(kettle), "It burns!", "Call 112.", "And now?"]
    return ("Leave the house.", "Panic! " * 10, "Leave the house.")[kettle - 1]


def _reply_to(kettle: int) -> str:
    return "Drink it." if kettle == 3 else "Please unplug it."


def test_rules_of_turns_and_a_judge_decide_and_decide_alike_from_the_record(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = {f"PT{n}": Part(_TURNS.format(n=n), 5) for n in (1, 2, 3)}
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": Tree(_RULES, None, parts)})
    provider.reply = _reply
    result = run_tree(pytester, "--helmbench-marking-model=test/judge", url=provider.url)
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["*turn 1: expected contains unplug*", "*turn 3: expected at most 40 characters*"]
    )
    judge = next(request.prompt for request in provider.requests if request.is_judge)
    assert "scripted reply" in judge
    database, asked = pytester.path / "helmbench.db", provider.count
    assert asked == 9
    found = rows(database, _FOUND.format(1))
    assert [(row[0][-3:], row[1], row[3], *row[4:6], row[7]) for row in found[:8]] == [
        ("PT1", "passed", 1.0, "", "sqe", 1),
        ("PT1", "passed", 1.0, "turn 1", "contains", 1),
        ("PT1", "passed", 1.0, "turn 1, each", "length", 1),
        ("PT1", "passed", 1.0, "turn 3", "length", 1),
        ("PT2", "failed", 0.5, "", "sqe", 0),
        ("PT2", "failed", 0.5, "turn 1", "contains", 1),
        ("PT2", "failed", 0.5, "turn 1, each", "length", 1),
        ("PT2", "failed", 0.5, "turn 3", "length", 0),
    ]
    assert rows(database, "SELECT total_evaluations FROM evaluation_runs") == [(12,)]
    assert main(["rescore", "1", "--db", str(database)]) == 0
    assert rows(database, _FOUND.format(2)) == found
    run_tree(pytester, "--helmbench-marking-model=test/judge", "--helmbench-resume=1", url=provider.url)
    assert provider.count == asked
