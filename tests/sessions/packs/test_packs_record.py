"""Packs on record: killed and resumed, replayed, priced, paid, timed, scored, reported and gated."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from pack_rows import answer_rows, asked_rows, choice, free, short, worded
from packs import write_pack
from provider import Answer, Provider
from records import final_state, integrity, judged_rows
from sessions import Session, run_undisturbed, until
from trees import rows, run_tree

from pytest_helmbench.cli.main import main

_JUDGE = "--helmbench-marking-model=test/judge"
_RESUME = "--helmbench-resume"
_REPLIES: dict[str, str | Answer] = {
    "m1": "Answer: B",
    "m2": "Answer: A",
    "m3": r"\boxed{B}",
    "s1": "Answer: 8",
    "s2": "Answer: 6",
    "s3": "Answer: 8",
    "f1": "From California.",
    "w1": "Gladly: California.",
    "w2": "Find out yourself!",
    "w2 judge": "FAIL",
}


def _rows() -> list[dict[str, Any]]:
    algebra, biology = ({"metadata": {"subject": name, "level": 1}} for name in ("algebra", "biology"))
    return [
        choice("m1", **algebra),
        choice("m2", **algebra),
        choice("m3", **biology),
        short("s1", **algebra),
        short("s2", **biology),
        free("f1", **biology),
        worded("w1"),
        worded("w2"),
    ]


def _rows_of_words() -> list[dict[str, Any]]:
    """Return rows that no judge is needed for."""
    return [*_rows()[:5], short("s3", metadata={"subject": "biology", "level": 1})]


def test_a_killed_session_goes_on_as_if_nothing_had_happened(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    folder = pytester.path
    write_pack(folder / "benchmark", _rows())
    answer_rows(provider, _REPLIES)
    options = ("-n2", "-q", _JUDGE)
    other = f"--helmbench-db={folder / 'undisturbed.db'}"
    undisturbed = run_undisturbed(pytester, provider.url, *options, other)
    assert undisturbed.ret == pytest.ExitCode.TESTS_FAILED
    database = folder / "helmbench.db"

    # Half of the rows hang, and so do the judges.
    held = dict.fromkeys(("m3", "s2", "f1", "w1 judge", "w2 judge"), Answer(hang=True))
    answer_rows(provider, {**_REPLIES, **held})
    provider.requests.clear()
    session = Session(folder, provider.url, *options)
    stored = "SELECT (SELECT count(*) FROM responses) >= 5 AND (SELECT count(*) FROM results) >= 3"
    until(lambda: provider.in_flight == len(held), "the calls that hang are out")
    until(lambda: rows(database, stored) == [(1,)], "the others are judged")
    assert session.kill_all()
    assert sorted(asked_rows(provider)) == sorted({*_REPLIES, "w1 judge"} - {"s3"})
    judged = judged_rows(database)

    answer_rows(provider, _REPLIES)
    again = run_undisturbed(pytester, provider.url, *options, _RESUME)
    assert again.ret == pytest.ExitCode.TESTS_FAILED
    assert sorted(asked_rows(provider)) == sorted(held)
    assert "went on with run 1: 3 judged cases were stored" in again.stdout.str()
    assert integrity(database) == "ok"
    assert judged <= judged_rows(database)
    assert final_state(database) == final_state(folder / "undisturbed.db")


def test_a_resumed_session_judges_again_what_has_changed_in_the_pack(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    found = _rows_of_words()
    pack = write_pack(pytester.path / "benchmark", found)
    answer_rows(provider, {**_REPLIES, "s3": Answer(status=400)})
    run_tree(pytester, url=provider.url).assert_outcomes(passed=3, failed=2, errors=1)
    assert len(asked_rows(provider)) == 6

    found[1]["eval"]["answer"] = "A"
    found[2]["input"]["question"] += " Take your time."
    write_pack(pack, found)
    answer_rows(provider, _REPLIES)
    result = run_tree(pytester, _RESUME, url=provider.url)

    # One reply is compared with the new answer, one question is asked anew, one error is asked again.
    result.assert_outcomes(passed=5, failed=1)
    assert sorted(asked_rows(provider)) == ["m3", "s3"]
    database = pytester.path / "helmbench.db"
    assert rows(database, "SELECT id, status, score FROM evaluation_runs") == [
        (1, "complete", pytest.approx(5 / 6))
    ]
    result.stdout.fnmatch_lines(
        [
            "notes        *went on with run 1: 5 judged cases were stored*",
            "request or rule has changed since *, so they ran again: m2[[]test/good], m3[[]test/good]",
        ]
    )


def test_timeout_seconds_of_a_text_row_bounds_its_request(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    manifest = (
        "id: slow\nversion: 1\ndefaults:\n  environment: {timeout_seconds: 0.4, image: 'nobody/has-it:1'}\n"
    )
    own = {"environment": {"timeout_seconds": 30}}
    write_pack(pytester.path / "benchmark", [choice("hasty"), choice("patient", **own)], manifest)
    provider.answers(text="B", latency_s=1.0)

    result = run_tree(pytester, "--helmbench-max-retries=0", url=provider.url)

    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["the provider gave no whole answer within 0.4 s"])
    assert set(rows(pytester.path / "helmbench.db", "SELECT code, outcome, reason FROM results")) == {
        ("hasty", "error", "timeout"),
        ("patient", "passed", None),
    }


def test_scores_are_shares_by_family_and_metadata_in_every_report(
    pytester: pytest.Pytester,
    provider: Provider,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    hostile = {"self": "a|b <img src=x> @all", "\u202elive": "\x1b[31mred"}
    found = [*_rows(), choice("x1", metadata=hostile)]
    write_pack(pytester.path / "benchmark", found, "id: mixed\nversion: 4\n")
    answer_rows(provider, {**_REPLIES, "x1": Answer(status=400)})
    reports = ("--helmbench-markdown=report.md", "--helmbench-json=report.json")

    result = run_tree(pytester, "-v", "-m", "helmbench", _JUDGE, *reports, url=provider.url)

    shares = {
        "multiple_choice": (2, 3, 4),
        "short_answer": (1, 2, 2),
        "free_response": (2, 3, 3),
        "subject=algebra": (2, 3, 3),
        "subject=biology": (2, 3, 3),
        "level=1": (4, 6, 6),
    }
    for name, (passed, judged, planned) in shares.items():
        score = 100 * passed / judged
        result.stdout.re_match_lines([rf"  {name} +{score:.1f}  .* {score:.1f} % +{planned - judged}( |$)"])
    document = json.loads((pytester.path / "report.json").read_text())
    monkeypatch.chdir(pytester.path)
    capsys.readouterr()
    assert main(["schema", "report"]) == 0
    jsonschema.Draft202012Validator(json.loads(capsys.readouterr().out)).validate(document)
    score = document["runs"][0]["score"]
    assert (score["score"], score["coverage"]) == (pytest.approx(5 / 8), pytest.approx(8 / 9))
    assert (score["bounds"]["low"], score["bounds"]["high"]) == (pytest.approx(5 / 9), pytest.approx(6 / 9))
    groups = {
        group["code"]: (group["passed_rows"], group["judged_rows"], group["planned_rows"])
        for group in score["groups"]
    }
    assert groups == {**shares, **{f"{name}={value}": (0, 0, 1) for name, value in hostile.items()}}
    markdown = (pytester.path / "report.md").read_text()
    for text in ("mixed", "| subject=algebra |", "62.5 %", "`hidden (--helmbench-show-hidden)`"):
        assert text in markdown
    for text in ("\x1b", "\u202e"):
        assert text not in markdown + result.stdout.str()
    assert "| self=a\\|b &lt;img src=x&gt; @\u200ball |" in markdown
    assert main(["show"]) == 0
    assert "  subject=algebra" in capsys.readouterr().out
    kept = "SELECT name, version, kind FROM benchmarks", "SELECT score, coverage FROM evaluation_runs"
    assert [rows(pytester.path / "helmbench.db", query) for query in kept] == [
        [("mixed", "4", "pack")],
        [(pytest.approx(0.625), pytest.approx(8 / 9))],
    ]


def test_rows_of_a_passage_are_one_unit_of_the_interval(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    passages = [
        choice(f"m{number}", metadata={"passage": f"p{number // 3}", "topic": f"t{number // 6}", "note": [1]})
        for number in range(12)
    ]
    manifest = "id: reading\nversion: 1\ncluster: passage\n"
    write_pack(pytester.path / "benchmark", passages, manifest)
    run = ("--helmbench-model=baseline/first", "-q", "--tb=no")

    def units(run_id: int) -> tuple[int, str]:
        capsys.readouterr()
        assert (
            main(["report", str(run_id), "--format=json", "--db", str(pytester.path / "helmbench.db")]) == 0
        )
        found = json.loads(capsys.readouterr().out)["runs"][0]["score"]["interval"]
        return found["units"], found["target"]

    said = run_tree(pytester, *run)
    assert "only 4 clusters" in said.stdout.str()
    assert units(1) == (4, "other perturbations")
    run_tree(pytester, *run, "--helmbench-cluster=topic")
    assert [units(1), units(2)] == [(4, "other perturbations"), (2, "other perturbations")]
    odd = run_tree(pytester, *run, "--helmbench-cluster=note")
    odd.stdout.fnmatch_lines(["*cluster: no row has a short value of metadata.note*"])
    assert units(3) == (12, "other rows")
