"""New rules over stored replies: the same rules give the same numbers, changed rules other verdicts, no call."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from provider import Answer, Provider, Request
from trees import category, includes, judged, judged_twice, rows, run_tree, write_tree

from pytest_helmbench.cli.main import main
from pytest_helmbench.results.stored_scores import stored_score

_TREES = {
    "P1-B1-S1": category("RISK", "CALM", "RISK"),
    "P1-B1-S2": includes("A,B", "A"),
    "P1-B2-S1": judged("fine", "poor"),
    "P2-B1-S1": judged_twice("fine", "poor"),
}
_EVALUATIONS = (
    "SELECT results.code, results.repetition, outcome, reason, results.score, severity, neutral, criterion, rule,"
    " rule_hash, passed, credit, parse, expected, observed, justification, response_id"
    " FROM results LEFT JOIN evaluations ON result_id = results.id WHERE run_id = {} ORDER BY 1, 2, criterion"
)


def _reply(request: Request) -> str | Answer | None:
    if request.is_judge:
        judgment = "BAD" if "Message 2." in request.prompt and "Point 1." not in request.prompt else "GOOD"
        return json.dumps({"evidence": [], "justification": "So it is.", "judgment": judgment})
    if "Message 3." in request.prompt:
        return Answer(status=400, body={"error": {"message": "no"}})
    return None


def _rescore(database: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, Any, str]:
    """Return the exit code, the JSON document and what was said on stderr."""
    capsys.readouterr()
    code = main(["rescore", *words, "--db", str(database), "--json"])
    found = capsys.readouterr()
    return code, json.loads(found.out) if found.out else None, found.err


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def _session(pytester: pytest.Pytester, provider: Provider, *arguments: str) -> Path:
    """Run the tree and return the scenarios' folder; the results are in `helmbench.db`."""
    write_tree(pytester.path / "benchmark", _TREES)
    provider.reply = _reply
    run_tree(pytester, "--helmbench-marking-model=test/judge", "--tb=no", *arguments, url=provider.url)
    return pytester.path / "benchmark" / "scenarios"


def test_an_unchanged_tree_gives_the_same_verdicts_and_the_same_score_without_a_call(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    _session(pytester, provider, "--helmbench-repeat=2", "--helmbench-seed=7")
    database = pytester.path / "helmbench.db"
    before = provider.count

    code, found, _ = _rescore(database, capsys, "1")
    again, second, _ = _rescore(database, capsys)

    assert (code, again) == (0, 0)
    assert provider.count == before
    assert found == {
        **{"rescored_from": 1, "run_id": 2, "now_pass": 0, "now_fail": 0, "credits_changed": 0, "same": 16},
        **{"needs_judge": 0, "other_prompt": 0, "gone": 0, "not_rescored": 0},
        **{"score_before": found["score_after"], "score_after": found["score_after"]},
    }
    assert (second["rescored_from"], second["run_id"], second["same"]) == (2, 3, 16)
    for run_id in (2, 3):
        assert rows(database, _EVALUATIONS.format(run_id)) == rows(database, _EVALUATIONS.format(1))
        assert stored_score(database, run_id) == stored_score(database, 1)
    of_run = "SELECT status, scope, total_tests, passed_tests, failed_tests, error_tests, score, score_low,"
    of_run += " score_high, coverage FROM evaluation_runs ORDER BY id"
    first, *others = rows(database, of_run)
    assert first[:6] == ("partial", "whole", 18, 8, 8, 2)
    assert others == [first, first]
    calls = "SELECT DISTINCT from_cache, attempt, cost_usd FROM calls WHERE run_id = 2"
    assert rows(database, calls) == [(1, 0, 0.0)]
    counted = "SELECT purpose, count(*), count(response_id) FROM calls WHERE run_id = 2 GROUP BY 1"
    assert rows(database, counted) == [("case", 16, 16), ("judge", 12, 12)]
    assert rows(
        database, "SELECT cost_usd, known_cost_usd, rescored_from FROM evaluation_runs WHERE id = 2"
    ) == [(0.0, 0.0, 1)]


def test_a_changed_rule_changes_the_verdicts_and_says_in_which_direction(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = _session(pytester, provider)
    database = pytester.path / "helmbench.db"
    replies = rows(database, "SELECT count(*) FROM responses")
    _edit(scenarios / "P1-B1-S1" / "S1.md", "category: RISK", "category: CALM")
    _edit(scenarios / "P1-B1-S2" / "S2.md", "required: [A, B]", "required: [A]")

    capsys.readouterr()
    assert main(["rescore", "1", "--db", str(database)]) == 0

    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "run 2: the replies of run 1 (test/good), judged anew; nothing was asked"
    assert (
        shown[1] == "verdicts that changed: 3 (2 now pass, 1 now fail), 5 as before; credits that changed: 3"
    )
    assert shown[-1] == "score: 58.3 % in run 1, 66.7 % in run 2"
    main(["compare", "1", "2", "--db", str(database)])
    compared = capsys.readouterr().out
    assert shown[1] in compared.splitlines()
    assert "judged by other rules" in compared
    assert "helmbench rescore" not in compared
    assert rows(database, "SELECT code, outcome FROM results WHERE run_id = 2 AND code LIKE 'P1-B1%'") == [
        ("P1-B1-S1-C1-PT1", "failed"),
        ("P1-B1-S1-C1-PT2", "passed"),
        ("P1-B1-S1-C1-PT3", "error"),
        ("P1-B1-S2-C1-PT1", "passed"),
        ("P1-B1-S2-C1-PT2", "passed"),
    ]
    assert rows(database, "SELECT count(DISTINCT benchmark_id) FROM evaluation_runs") == [(2,)]
    assert rows(database, "SELECT count(*) FROM responses") == replies
    main(["report", "2", "--format", "markdown", "--db", str(database)])
    assert "> - judged anew from the stored replies of run 1; nothing was asked" in capsys.readouterr().out


def test_verdicts_that_other_rules_changed_do_not_stand_beside_no_verdict_differs(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = {"P1-B1-S1": category(*["RISK"] * 40), "P1-B1-S2": category("RISK", "CALM", "RISK")}
    folder = write_tree(pytester.path / "benchmark", trees)
    run_tree(pytester, url=provider.url)
    _edit(folder / "scenarios/P1-B1-S2/S2.md", "category: RISK", "category: CALM")
    database = str(pytester.path / "helmbench.db")
    assert main(["rescore", "1", "--db", database]) == 0

    main(["compare", "1", "2", "--db", database])

    compared = capsys.readouterr().out
    assert "no change shown: 40 compared cases have the same verdict in both runs" in compared
    assert "verdicts that changed: 3 (1 now pass, 2 now fail)" in compared
    assert "no verdict differs" not in compared


def test_stored_judgements_stand_while_their_judge_would_be_asked_the_same(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = _session(pytester, provider)
    database = pytester.path / "helmbench.db"
    rubric = scenarios / "P1-B2-S1" / "criteria.md"

    # Pass values are ours: the judge sees the menu, not which of it passes.
    _edit(rubric, "pass_values: [GOOD]", "pass_values: [GOOD, BAD]")
    _, found, _ = _rescore(database, capsys, "1")
    assert (found["now_pass"], found["now_fail"], found["needs_judge"]) == (1, 0, 0)

    # Another question needs another answer, of one criterion and so of its cases.
    _edit(rubric, "How good is it?", "How kind is it?")
    _edit(scenarios / "P2-B1-S1" / "CR2.md", "[GOOD, MIDDLING, BAD]", "[GOOD, BAD]")
    code, found, _ = _rescore(database, capsys, "1")
    assert (code, found["now_pass"], found["same"], found["needs_judge"]) == (0, 0, 4, 4)
    query = (
        "SELECT DISTINCT outcome, reason, score FROM results WHERE run_id = 3 AND code LIKE 'P%-S1-C1-PT_'"
    )
    assert ("skipped", "needs_judge", None) in rows(database, query)
    assert rows(database, "SELECT status FROM evaluation_runs WHERE id = 3") == [("partial",)]

    # Once a run has asked it, its answer counts, even after a rescore.
    run_tree(pytester, "--helmbench-marking-model=test/judge", "--tb=no", url=provider.url)
    before = provider.count
    _, found, _ = _rescore(database, capsys, "1")
    assert (found["needs_judge"], found["now_pass"], provider.count) == (0, 1, before)


def test_a_reply_to_another_prompt_is_no_evidence_and_removed_cases_are_counted(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = _session(pytester, provider)
    database = pytester.path / "helmbench.db"
    _edit(scenarios / "P1-B1-S2" / "perturbations.md", "Message 2.", "Another message.")
    shutil.rmtree(scenarios / "P2-B1-S1")

    code, found, _ = _rescore(database, capsys, "1")

    assert (code, found["same"], found["other_prompt"], found["gone"]) == (0, 5, 1, 2)
    assert rows(database, "SELECT scope, total_tests, skipped_tests FROM evaluation_runs WHERE id = 2") == [
        ("whole", 7, 1)
    ]


def test_what_cannot_be_rescored_ends_with_a_sentence_and_stores_nothing(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    scenarios = _session(pytester, provider)
    database = pytester.path / "helmbench.db"
    prompt = scenarios / "P1-B1-S1" / "S1.md"
    _edit(prompt, "category: RISK", "category: RISK\nevaluation:\n  type: nothing")

    code, _, said = _rescore(database, capsys, "1")
    assert code == 1
    assert (
        "scenarios of the run are broken:\nscenarios/P1-B1-S1/S1.md:4: evaluation.type is 'nothing'" in said
    )

    write_tree(pytester.path / "other", {"P9-B1-S1": category("RISK")})
    code, _, said = _rescore(database, capsys, "1", "--benchmark", str(pytester.path / "other"))
    assert (code, said.splitlines()[0].partition("other: ")[2]) == (
        1,
        "no case of run 1 is in this benchmark",
    )

    moved = pytester.path / "moved"
    (pytester.path / "benchmark").rename(moved)
    code, _, said = _rescore(database, capsys, "1")
    assert code == 2
    assert said.splitlines() == [
        f"helmbench: the rules of run 1 cannot be read: no benchmark at {pytester.path / 'benchmark'}",
        "  hint: name the benchmark with --benchmark PATH",
    ]
    assert rows(database, "SELECT count(*) FROM evaluation_runs") == [(1,)]
    _edit(moved / "scenarios" / "P1-B1-S1" / "S1.md", "\nevaluation:\n  type: nothing", "")
    code, found, _ = _rescore(database, capsys, "1", "--benchmark", str(moved))
    assert (code, found["same"]) == (0, 8)
