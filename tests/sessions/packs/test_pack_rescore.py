"""New rows over stored replies of a pack: every family that is one question is judged again, without a call."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pack_rows import choice
from packs import row, write_pack
from provider import Provider, Request
from trees import rows, run_tree

from pytest_helmbench.cli.main import main

_REPLIES = {
    "fruit": "B",
    "spider": "8",
    "fortune": "From California.",
    "Add two": "```python\ndef add(a, b):\n    return a + b\n```",
}
_RIGHT: dict[str, dict[str, Any]] = {
    "multiple_choice": {"eval.answer": "B"},
    "short_answer": {"eval.accepted_answers": [8]},
    "free_response": {"eval.rubric.accepted_answers": ["from California"]},
    "code_completion": {"eval.tests.code": "assert add(1, 2) == 3"},
}
_WRONG: dict[str, dict[str, Any]] = {
    "multiple_choice": {"eval.answer": "A"},
    "short_answer": {"eval.accepted_answers": [9]},
    "free_response": {
        "eval.rubric": {"accepted_answers": ["from Peru"], "rejected_answers": ["from California"]}
    },
    "code_completion": {"eval.tests.code": "assert add(1, 2) == 4"},
}


def _reply(request: Request) -> str:
    return next(reply for sign, reply in _REPLIES.items() if sign in request.prompt)


def _write(folder: Path, changes: dict[str, dict[str, Any]]) -> None:
    found = [row(family, changed, identity=family) for family, changed in changes.items()]
    write_pack(folder, found)


def _rescored(capsys: pytest.CaptureFixture[str], *words: str) -> dict[str, Any]:
    capsys.readouterr()
    assert main(["rescore", *words, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_the_replies_of_a_pack_are_held_to_its_rows_of_now(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    provider.reply = _reply
    _write(pytester.path / "benchmark", _RIGHT)
    judge = "--helmbench-marking-model=test/judge"
    run_tree(pytester, "--helmbench-sandbox=bwrap", judge, url=provider.url).assert_outcomes(passed=4)
    asked = provider.count
    monkeypatch.chdir(pytester.path)

    same = _rescored(capsys)
    _write(pytester.path / "benchmark", _WRONG)
    changed = _rescored(capsys, "1")

    assert provider.count == asked
    assert (same["same"], same["score_before"], same["score_after"]) == (4, 1.0, 1.0)
    assert (changed["now_fail"], changed["same"], changed["score_after"]) == (4, 0, 0.0)
    results = "SELECT code, outcome FROM results WHERE run_id = 3 ORDER BY code"
    assert rows(Path("helmbench.db"), results) == [(family, "failed") for family in sorted(_WRONG)]


def test_other_questions_and_rows_that_are_gone_or_broken_get_no_verdict(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    benchmark = pytester.path / "benchmark"
    write_pack(benchmark, [choice("q1"), choice("q2"), choice("q3")])
    run_tree(pytester, url=provider.url)
    monkeypatch.chdir(pytester.path)
    other = choice("q1")
    other["input"]["question"] = "Which of these is a stone?"

    write_pack(benchmark, [other, choice("q2")])
    found = _rescored(capsys)
    write_pack(benchmark, [choice("q1"), choice("q2", **{"eval.answer": 7})])
    code = main(["rescore", "1"])

    assert (found["same"], found["other_prompt"], found["gone"]) == (1, 1, 1)
    assert code == 1
    assert "scenarios of the run are broken" in capsys.readouterr().err


def test_the_rules_that_a_run_was_judged_by_count(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """`--helmbench-pack-rules=parity` of the run holds for its replies, whatever a session here would use."""
    provider.reply = lambda _request: "I would say that it is **(B)**, since an apple is a fruit."
    write_pack(pytester.path / "benchmark", [choice("q1")])
    run_tree(pytester, "--helmbench-pack-rules=parity", url=provider.url)
    run_tree(pytester, url=provider.url)
    monkeypatch.chdir(pytester.path)

    assert [_rescored(capsys, run)["same"] for run in ("1", "2")] == [1, 1]
    verdicts = "SELECT run_id, outcome FROM results ORDER BY run_id"
    first, second, *again = rows(Path("helmbench.db"), verdicts)
    assert (first[1], second[1]) == ("failed", "passed")
    assert [outcome for _, outcome in again] == [first[1], second[1]]
