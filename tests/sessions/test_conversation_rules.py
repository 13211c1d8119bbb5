"""Conversations in a session: rules per turn and a judge, by a real server, and judged equal from the record."""

from __future__ import annotations

import json
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest
from provider import Answer, Provider, Request
from trees import Part, Tree, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main
from pytest_helmbench.results.stored_scores import stored_score

_TURNS = "## Turn 1\nKettle {n} smells.\n## Turn 2\nIt burns!\n## Assistant\nCall 112.\n## Turn 3\nAnd now?"
_RULES = (
    "evaluation: {type: rubric, rubric: It is calm., turns: {1: {type: contains, expected: unplug}},",
    "  each: {type: length, max: 40}}",
)
_REPLIES: dict[int, tuple[str, str | Answer]] = {
    1: ("Do unplug it.", "Leave."),
    2: ("Do unplug it.", "Panic! " * 10),
    3: ("", "Leave."),
    4: ("Do unplug it.", Answer(status=400, body={"error": {"message": "no"}})),
}
_FOUND = (
    "SELECT code, outcome, results.score, criterion, rule, passed, rule_hash, observed, justification"
    " FROM results JOIN evaluations ON result_id = results.id WHERE run_id = {} ORDER BY code, evaluations.id"
)


def _reply(request: Request) -> str | Answer:
    said = [message["content"] for message in request.body["messages"]]
    if request.is_judge:
        verdict = "FAIL" if "Panic!" in said[0] else "PASS"
        return json.dumps({"evidence": [], "justification": "So.", "judgment": verdict})
    first, last = _REPLIES[int(said[0].split("Kettle ")[1][0])]
    assert said[1:] in ([], [first or "(no reply)", "It burns!", "Call 112.", "And now?"])
    return last if said[1:] else first


def _edit(path: Path, old: str, new: str) -> None:
    path.write_text(path.read_text().replace(old, new))


def test_rules_of_turns_and_a_judge_decide_and_decide_alike_from_the_record(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    parts = {f"PT{n}": Part(_TURNS.format(n=n), 5) for n in _REPLIES}
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": Tree(_RULES, None, parts, {})})
    provider.reply = _reply
    judged = "--helmbench-marking-model=test/judge"
    result = run_tree(pytester, judged, "--junit-xml=x.xml", url=provider.url)
    result.assert_outcomes(passed=1, failed=2, errors=1)
    result.stdout.fnmatch_lines(["*expected: turn 1: contains unplug"])
    shown = (pytester.path / "x.xml").read_text()
    assert "turn 1: the reply is empty; turn 1, each: the reply is empty" in shown
    database = pytester.path / "helmbench.db"
    found = rows(database, _FOUND.format(1))
    criteria = [("", "sqe"), ("turn 1", "contains"), ("turn 1, each", "length"), ("turn 3", "length")]
    assert [row[3:5] for row in found] == criteria * 3
    assert [(row[0][-3:], *row[1:3]) for row in found[::4]] == [
        ("PT1", "passed", 1.0),
        ("PT2", "failed", 0.0),
        ("PT3", "failed", 0.0),
    ]
    scored = stored_score(database, 1)
    assert scored is not None
    assert (scored.score, [part.planned_rows for part in scored.behaviours]) == (Fraction(1, 3), [4])
    assert [row[5] for row in found] == [1, 1, 1, 1, 0, 1, 1, 0, 1, 0, 0, 1]
    assert main(["rescore", "1", "--db", str(database)]) == 0
    assert rows(database, _FOUND.format(2)) == found
    # The verdicts stand while the rules do, and a new rule for a turn needs no reply anew.
    for rule, ran_again, calls in (("unplug", False, 12), ("Do", True, 13)):
        _edit(pytester.path / "benchmark/scenarios/P1-B1-S1/S1.md", "unplug", rule)
        again = run_tree(pytester, judged, "--helmbench-resume=1", url=provider.url)
        assert ("PT1[test/good], P1-B1-S1-PT2[test/good], " in again.stdout.str()) is ran_again
        assert provider.count == calls


def test_the_list_of_many_failed_conversations_says_what_was_observed_at_a_turn(
    pytester: pytest.Pytester, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = ("evaluation: {type: length, max: 40, turns: {1: {type: contains, expected: unplug}}}",)
    parts = {f"PT{n}": Part(_TURNS.format(n=n), 5) for n in range(1, 6)}
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": Tree(rules, None, parts, {})})
    provider.answers(text="Leave it\non.")
    result = run_tree(pytester, "-q", url=provider.url)
    result.stdout.fnmatch_lines(["*-PT1*: turn 1: expected contains unplug, observed Leave it on."])
    monkeypatch.setenv("CI", "1")
    result = run_tree(pytester, "-q", url=provider.url)
    result.stdout.fnmatch_lines(["*-PT1*: turn 1: expected contains unplug"])
    assert "Leave" not in result.stdout.str()


def test_score_comparison_gate_pairs_and_rescore_count_one_credit_for_a_conversation(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    rules = ", ".join(f"{turn}: {{type: contains, expected: sure}}" for turn in (1, 2, 3))
    evaluation = f"evaluation: {{type: length, max: 99, turns: {{{rules}}}, each: {{type: length, max: 99}}}}"
    talk = "## Turn 1\nOne, {n}?\n## Turn 2\nTwo?\n## Turn 3\nThree?"
    talks = {f"PT{n}": Part(talk.format(n=n), 5) for n in range(1, 13)}
    asked = {f"PT{n}": Part(f"One, {n}?", 5) for n in range(1, 5)}
    single = ("evaluation: {type: contains, expected: sure}",)
    trees = {"P1-B1-S1": Tree((evaluation,), None, talks, {}), "P1-B1-S2": Tree(single, None, asked, {})}
    write_tree(pytester.path / "benchmark", trees)
    provider.reply = lambda request: (
        "no" if "bad" in request.model and "Two?" in str(request.body) else "sure"
    )

    both = ("--helmbench-model=test/good", "--helmbench-model=test/bad", "--helmbench-json=r.json")
    run_tree(pytester, *both, url=provider.url)
    database = pytester.path / "helmbench.db"
    scores = [stored_score(database, run) for run in (1, 2)]
    assert [score and score.score for score in scores] == [1, Fraction(1, 4)]
    (standing,) = json.loads((pytester.path / "r.json").read_text())["standings"]
    assert [(pair["difference"], pair["units"]) for pair in standing["pairs"]] == [(0.75, 16)]

    run_tree(pytester, "--helmbench-model=test/good", "--helmbench-db=good.db", url=provider.url)
    assert main(["export", "1", "--format=baseline", "-o", "base.json", "--db=good.db"]) == 0
    assert main(["rescore", "2"]) == 0
    for first, second in product(("1", "base.json"), ("2", "3")):
        capsys.readouterr()
        assert main(["compare", first, second, "--json"]) == 1
        (found,) = json.loads(capsys.readouterr().out)
        assert (found["baseline_score"], found["score"], found["change"]) == (1, 0.25, -0.75), (first, second)
        assert (found["units"], found["changed"]) == (16, 12)
    gate = ("--helmbench-baseline=base.json", "--helmbench-max-drop=0.3", "--helmbench-db=g.db")
    gated = run_tree(pytester, "--helmbench-model=test/bad", *gate, url=provider.url)
    gated.stdout.fnmatch_lines(["✗ FAILS*: worse by 75.0"])
    assert gated.ret == 1
