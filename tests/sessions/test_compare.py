"""Runs held against a baseline: in a session, by command, from other files, and what stays on record."""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from commands import captured
from pages import blocks_of, cells_of, shown_text
from provider import Answer, Provider, Request
from trees import category, rows, run_tree, write_tree

from pytest_helmbench.reports.comparison_lines import points

_OK, _FAILED, _USAGE = 0, 1, 4
_NUMBER = 8


def _tree(pytester: pytest.Pytester) -> Path:
    write_tree(pytester.path / "benchmark", {"P1-B1-S1": category(*["RISK"] * _NUMBER)})
    return pytester.path / "helmbench.db"


def _wrong_on(provider: Provider, numbers: Collection[int]) -> None:
    """Let the model be wrong on some messages, and right on all others."""

    def reply(request: Request) -> str | Answer | None:
        said = "CALM" if any(f"Message {number}." in request.prompt for number in numbers) else "RISK"
        return json.dumps({"response": "So.", "category": said})

    provider.reply = reply


def _compared(result: pytest.RunResult) -> list[str]:
    """Return the lines of the gate's block, without its headline."""
    return re.findall(r"^  (?:baseline|gone|newly| {11}(?! )).*$", result.stdout.str(), re.MULTILINE)


def _stored_reports_have_it(
    pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str], reported: dict[str, Any]
) -> None:
    """Reports of a stored run compare it with its session's baseline while that is there, or with one asked for."""
    database = pytester.path / "helmbench.db"

    def report(*words: object, db: Path = database) -> tuple[int, str, str]:
        return captured(capsys, "report", *words, "--db", db)

    def compared(*words: object, db: Path = database) -> list[dict[str, Any]]:
        found = json.loads(report(*words, "--format", "json", db=db)[1])["runs"]
        return [one for run in found for one in run["comparisons"]]

    assert compared("2") == [reported]
    assert compared("1") == []
    again = report("2")[1]
    assert again.startswith("## ✗ FAILS test/good: worse by ")
    assert "### test/good with run 1: worse\n\n**Newly failing: 6**\n" in again
    page = report("2", "--format", "html")[1]
    assert "worse" in shown_text(page)
    assert cells_of(page, "flip").count("worse") == 6
    alone = Path(shutil.copy(database, pytester.path / "alone.db"))
    with sqlite3.connect(alone) as conn:
        conn.execute("DELETE FROM evaluation_runs WHERE id = 1")
    (kept,) = compared("2", db=alone)
    assert (kept["verdict"], kept["reason"]) == ("not comparable", "run 1 is gone")
    assert "run 1 is gone" in shown_text(report("2", "--format", "html", db=alone)[1])

    (other,) = compared("1", "--baseline", "2", "--max-drop", "0.5")
    assert (other["baseline_run"], other["verdict"], other["max_drop"]) == ("run 2", "not worse", 0.5)
    own = compared("2", "--baseline", "last")
    assert [one["reason"] for one in own] == ["run 2 is this very run"]
    assert "hint: add --baseline RUN" in report("2", "--max-drop", "0.1")[2]


def test_a_session_that_is_worse_than_its_baseline_fails_and_says_by_how_much(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _tree(pytester)
    _wrong_on(provider, ())
    run_tree(pytester, "--tb=no", url=provider.url)
    _wrong_on(provider, range(1, 7))

    files = ("--junitxml=junit.xml", "--helmbench-json=out.json", "--helmbench-markdown=out.md")
    worse = run_tree(pytester, "--tb=no", "--helmbench-baseline=last", *files, url=provider.url)

    assert worse.ret == _FAILED
    assert "helmbench: compared with run 1" in worse.outlines
    line, fell, failing = _compared(worse)
    assert line.startswith("  baseline   run 1: 100.0 → 25.0 %, −75.0 points (90 %: ")
    assert "p = 0.016: worse; 6 of 8 perturbations changed: 6 down, 0 up" in line
    assert "fell on these very cases" in fell
    assert failing.startswith("  newly failing 6: P1-B1-S1-C1-PT1 (severity 5), ")
    assert re.match(r"✗ FAILS   test/good: worse by [\d.]+$", worse.outlines[-1])
    (reported,) = json.loads((pytester.path / "out.json").read_text())["runs"][0]["comparisons"]
    assert (reported["baseline_run"], reported["verdict"], reported["p"]) == ("run 1", "worse", 0.015625)
    markdown = (pytester.path / "out.md").read_text()
    assert "### test/good with run 1: worse" in markdown
    assert "6 of 8: 6 down, 0 up | worse |" in markdown
    properties = {
        found.get("name"): found.get("value")
        for found in ElementTree.parse(pytester.path / "junit.xml").iter("property")
    }
    assert properties["helmbench.compare.test/good.verdict"] == "worse"
    assert properties["helmbench.compare.test/good.p"] == "0.015625"
    ((session,),) = rows(database, "SELECT session_id FROM evaluation_runs WHERE id = 1")
    ((kept,),) = rows(database, "SELECT baseline FROM evaluation_runs WHERE id = 2")
    assert json.loads(kept) == {"file": None, "run": 1, "session": session}
    _stored_reports_have_it(pytester, capsys, reported)

    _wrong_on(provider, (1,))
    same = run_tree(pytester, "--tb=no", "--helmbench-baseline=last~1", url=provider.url)
    same.stdout.re_match_lines(
        [
            r"helmbench: compared with run 1: a drop of about \d+ points would be seen 4 times of 5"
            r" \(rough; from run 1 and run 2\)"
        ]
    )
    assert same.ret == _OK  # one wrong answer is forgiven: the gate holds
    assert _compared(same)[0].endswith(
        "inconclusive: only 1 perturbation changed, at least 5 must before anything can be shown"
    )
    assert same.outlines[-1].startswith("✓ HOLDS   test/good: ")


def test_a_drop_that_is_allowed_and_a_part_that_may_not_drop(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester)
    _wrong_on(provider, ())
    run_tree(pytester, "--tb=no", url=provider.url)
    _wrong_on(provider, range(1, 7))

    allowed = run_tree(
        pytester, "--tb=no", "--helmbench-baseline=1", "--helmbench-max-drop=0.95", url=provider.url
    )
    named = run_tree(
        pytester, "--tb=no", "--helmbench-baseline=1", "--helmbench-max-drop=P1-B1=0,0.95", url=provider.url
    )
    unknown = run_tree(
        pytester, "--tb=no", "--helmbench-baseline=1", "--helmbench-max-drop=P9=0.1,0.95", url=provider.url
    )

    assert allowed.ret == _OK
    assert "not shown to be worse by more than 95 points" in _compared(allowed)[0]
    assert named.ret == _FAILED
    assert _compared(named)[1].startswith("  baseline P1-B1 run 1: 100.0 → ")
    assert ": worse; " in _compared(named)[1]
    unknown.stderr.fnmatch_lines(["*--helmbench-max-drop: P9 is not among what was selected*"])
    assert unknown.ret == _USAGE


def test_a_baseline_that_is_not_there_is_refused_before_anything_is_asked(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester)
    _wrong_on(provider, ())

    for options, words in (
        (("--helmbench-baseline=999",), "*helmbench.db: there is no such database*"),
        (("--helmbench-baseline=nowhere.json",), "*nowhere.json: the baseline cannot be read: No such file*"),
        (
            ("--helmbench-max-drop=0.1",),
            "*--helmbench-max-drop says how far a score may drop, but not below*",
        ),
        (("--helmbench-baseline=other/model=1",), "*'other/model' is not a model of this session*"),
    ):
        refused = run_tree(pytester, "--tb=no", *options, url=provider.url)
        assert refused.ret == _USAGE
        assert fnmatch(refused.stderr.str(), words)
    assert not provider.requests
    first = run_tree(pytester, "--tb=no", "--helmbench-baseline=last", url=provider.url)
    assert first.ret == _FAILED, "it makes what the next one is held against"
    first.stdout.fnmatch_lines(["helmbench: warning: test/good has no baseline, so that gate cannot hold:*"])
    unknown = run_tree(pytester, "--tb=no", "--helmbench-baseline=999", url=provider.url)
    assert unknown.ret == _USAGE
    assert fnmatch(unknown.stderr.str(), "*helmbench.db has no run 999*it has 1 to 1*")
    lonely = run_tree(
        pytester,
        *("--helmbench-model=test/a", "--helmbench-model=test/b", "--helmbench-baseline=1", "--tb=no"),
        url=provider.url,
    )
    assert lonely.ret == _FAILED
    lonely.stdout.fnmatch_lines(["helmbench: warning: test/a has no baseline, so that gate cannot hold:*"])
    assert lonely.outlines[-1].startswith("✗ FAILS   2 of 2 runs: test/a: run 1 has no run of test/a")


def test_a_dry_run_says_what_drop_a_comparison_can_find(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    _tree(pytester)
    _wrong_on(provider, (1,))
    run_tree(pytester, "--tb=no", url=provider.url)
    _wrong_on(provider, (2,))

    dry = run_tree(pytester, "--helmbench-dry-run", "--helmbench-baseline=1", url=provider.url)
    asked = run_tree(pytester, "--helmbench-baseline=1", url=provider.url)

    found = [line for line in dry.outlines if line.startswith("helmbench: compared with run 1: a drop of ")]
    assert len(found) == 1
    assert found[0] in asked.outlines


def test_stored_runs_are_compared_by_number_file_and_baseline_file(
    pytester: pytest.Pytester,
    provider: Provider,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    database = _tree(pytester)
    monkeypatch.chdir(pytester.path)
    _wrong_on(provider, ())
    run_tree(pytester, "--tb=no", url=provider.url)
    shutil.copy(database, "old.db")
    assert captured(capsys, "export", "1", "--format", "baseline", "-o", "main.json")[0] == _OK
    _wrong_on(provider, range(1, 7))
    run_tree(pytester, "--tb=no", url=provider.url)

    texts = [
        captured(capsys, "compare", address, "2")
        for address in ("1", "last~1", "old.db#1", "old.db", "main.json")
    ]

    assert [code for code, _, _ in texts] == [_FAILED] * 5
    heads, lines = zip(*(text.splitlines()[:2] for _, text, _ in texts), strict=True)
    assert heads[0] == "run 2 (candidate) with run 1 (baseline): changes are candidate − baseline"
    assert [line.split(" with ")[1].split(":")[0] for line in lines] == [
        *("run 1", "run 1", "run 1 of old.db", "run 1 of old.db", "run 1 of main.json"),
    ]
    assert len({line.split(": ", 1)[1] for line in lines}) == 1
    assert len(Path("main.json").read_bytes()) < 1_500

    (record,) = json.loads(captured(capsys, "compare", "1", "2", "--json")[1])
    assert (record["verdict"], record["scope"], record["unit"], record["common"]) == (
        *("worse", "", "perturbation", 1.0),
    )
    assert record["change"] == pytest.approx(record["score"] - record["baseline_score"])
    assert record["behaviours"][0]["word"] == "fell" or record["behaviours"][0]["word"] == "collapsed"
    markdown = captured(capsys, "compare", "1", "2", "--format", "markdown")[1]
    assert "| run | 100.0 % |" in markdown
    assert "\nnewly failing " in texts[0][1]
    assert re.search(r"\n\| case\W+&nbsp; \| severity \|\n", markdown)
    _page_holds(capsys, record, database)
    back: list[Any] = json.loads(captured(capsys, "compare", "2", "1", "--json")[1])
    assert back[0]["change"] == -record["change"]
    assert back[0]["verdict"] == "not worse"
    for words, said in (
        (("1", "1"), "run 1 would be compared with itself"),
        (("7", "1"), "has no run 7"),
        (("what", "1"), "'what' names no run: there is no file"),
        (("1", "main.json"), "'main.json' is a baseline file"),
    ):
        code, _, error = captured(capsys, "compare", *words)
        assert code == 2
        assert said in error


_FLIPPED = """
    SELECT new.code FROM results AS old
    JOIN results AS new ON new.code = old.code AND new.repetition = old.repetition
    WHERE old.run_id = 1 AND new.run_id = 2 AND old.outcome = 'passed' AND new.outcome = 'failed'
"""


def _page_holds(capsys: pytest.CaptureFixture[str], record: dict[str, Any], database: Path) -> None:
    """The page of a comparison says what its JSON says, which cases flipped, and holds the cases of both runs."""
    code, page, _ = captured(capsys, "compare", "1", "2", "--format", "html", "--with-text=all")
    assert code == _FAILED
    seen = shown_text(page)
    assert f"worse {points(record['change'])} points" in seen
    assert f"(95 %: {points(record['low'])} to {points(record['high'])})" in seen
    flipped = {code for (code,) in rows(database, _FLIPPED)}
    words = dict(zip(cells_of(page, "perturbation"), cells_of(page, "flip"), strict=True))
    assert {f"P1-B1-S1-C1-{name}" for name, word in words.items() if word == "worse"} == flipped
    assert f"{len(flipped)} worse" in seen
    assert "What has become worse" in seen
    assert cells_of(page, "outcome", "0b") == ["passed"] * _NUMBER
    assert '"category": "RISK"' in blocks_of(page)["t0b-0"]["0"]["r"]
    bare = captured(capsys, "compare", "main.json", "2", "--format", "html")[1]
    assert "The baseline's cases are not at hand" in shown_text(bare)
    assert captured(capsys, "compare", "1", "2", "--open")[2].startswith("helmbench: --open shows no text\n")


def test_what_has_changed_is_left_out_and_too_little_in_common_concludes_nothing(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _tree(pytester)
    _wrong_on(provider, ())
    run_tree(pytester, "--tb=no", url=provider.url)
    (perturbations,) = (pytester.path / "benchmark").rglob("perturbations.md")
    text = perturbations.read_text()
    perturbations.write_text(text.replace("Message 1.", "Message 1, with one thing more."))
    run_tree(pytester, "--tb=no", url=provider.url)

    code, text, _ = captured(capsys, "compare", "1", "2", "--db", database)

    assert code == _OK
    assert "inconclusive: only " in text
    assert "on the 7 cases in both, 1 left out, 1 case has changed" in text
    (pytester.path / "benchmark" / "benchmark.yml").write_text("roles: {system: [scenario]}\n")
    run_tree(pytester, "--tb=no", url=provider.url)
    assert "nothing in common" in captured(capsys, "compare", "2", "3", "--db", database)[1]


def test_cases_that_the_benchmark_has_lost_fail_the_gate_and_those_left_out_do_not(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    trees = {"P1-B1-S1": category(*["RISK"] * 6), "P1-B1-S2": category(*["RISK"] * 12)}
    folder = write_tree(pytester.path / "benchmark", trees)
    _wrong_on(provider, ())
    run_tree(pytester, url=provider.url)
    assert captured(capsys, "export", "last", "--format", "baseline", "-o", "main.json")[0] == _OK

    def compared(*words: str) -> tuple[int, str]:
        db = f"--helmbench-db=fresh{len(list(pytester.path.glob('fresh*')))}.db"
        result = run_tree(pytester, "--helmbench-baseline=main.json", db, *words, url=provider.url)
        return int(result.ret), "\n".join(_compared(result))

    code, said = compared("--helmbench-select=P1-B1-S1")
    assert (code, "12 of the baseline not selected" in said, "gone" in said) == (_OK, True, False)

    shutil.rmtree(folder / "scenarios" / "P1-B1-S2")
    gone = "  gone 12: P1-B1-S2-C1-PT1, P1-B1-S2-C1-PT2, "
    for narrowed in ((), ("benchmark/scenarios/P1-B1-S1",), ("-k", "PT1")):
        code, said = compared(*narrowed)
        assert code == _FAILED
        assert gone in said
        assert "accept that with --helmbench-allow-gone" in said
    code, said = compared("--helmbench-allow-gone")
    assert (code, gone in said) == (_OK, True)


def test_two_models_of_one_session_and_models_of_two_sessions(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _tree(pytester)
    _wrong_on(provider, ())
    both = ("--helmbench-model=test/one", "--helmbench-model=test/two", "--tb=no")
    run_tree(pytester, *both, url=provider.url)
    again = run_tree(pytester, *both, "--helmbench-baseline=1", url=provider.url)

    assert again.ret == _OK
    assert _compared(again) == [
        "  baseline   run 1: 100.0 %: no verdict differs in 8 cases",
        "  baseline   run 2: 100.0 %: no verdict differs in 8 cases",
    ]
    code, text, _ = captured(capsys, "compare", "1", "2", "--db", database)
    assert (code, text.splitlines()[1]) == (
        0,
        "compare test/two with run 1: no change shown: no verdict differs in 8 cases",
    )
    markdown = captured(capsys, "compare", "1", "2", "--format", "markdown", "--db", database)[1]
    assert markdown.strip() == "test/two with run 1: no change; no verdict differs in 8 cases."
    single = run_tree(
        pytester,
        *("--helmbench-model=test/three", "--helmbench-baseline=test/three=2", "--tb=no"),
        url=provider.url,
    )
    assert _compared(single) == ["  baseline   run 2: 100.0 %: no verdict differs in 8 cases"]


def test_flaky_cases_are_listed_and_pass_at_k_stands_in_reports(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    database = _tree(pytester)
    count = 0

    def reply(request: Request) -> str:
        nonlocal count
        count += "Message 2." in request.prompt
        said = "CALM" if "Message 2." in request.prompt and count == 1 else "RISK"
        return json.dumps({"response": "So.", "category": said})

    provider.reply = reply
    run_tree(pytester, "--tb=no", "--helmbench-repeat=2", url=provider.url)

    report = json.loads(captured(capsys, "report", "1", "--format", "json", "--db", database)[1])["runs"][0]
    assert report["repetitions"]["pass_hat"] == [0.9375, 0.875]
    markdown = captured(capsys, "report", "1", "--db", database)[1]
    assert "Over repetitions: pass@2 100.0 %, pass^2 87.5 %" in markdown
    assert [(one["passed"], one["repetitions"]) for one in report["repetitions"]["flaky"]] == [(1, 2)]


def test_a_session_that_was_cut_is_compared_when_it_has_gone_on(
    pytester: pytest.Pytester, provider: Provider
) -> None:
    database = _tree(pytester)
    _wrong_on(provider, ())
    run_tree(pytester, "--tb=no", url=provider.url)
    _wrong_on(provider, range(1, 7))
    wrong = provider.reply
    assert wrong is not None
    refusal = Answer(status=400, body={"error": {"message": "no"}})
    provider.reply = lambda request: refusal if "Message 8." in request.prompt else wrong(request)

    cut = run_tree(pytester, "--tb=no", "--helmbench-baseline=last", url=provider.url)
    provider.reply = wrong
    whole = run_tree(pytester, "--tb=no", "--helmbench-baseline=last", "--helmbench-resume", url=provider.url)

    assert (cut.ret, whole.ret) == (_FAILED, _FAILED)
    assert any("inconclusive: only " in line for line in _compared(cut))
    assert "6 of 8 perturbations changed" in _compared(whole)[0]
    kept = "SELECT id, baseline ->> '$.run' FROM evaluation_runs ORDER BY id"
    assert rows(database, kept) == [(1, None), (2, 1)]
