"""Score, pass rate, worst five and change of one run are the same wherever a person or a program reads them."""

from __future__ import annotations

import json
import re

import pytest
from commands import captured
from pages import shown_text
from provider import Provider, Request
from trees import category, clear_environment, rows, run_tree, write_tree

_REPORTS = (
    *("--helmbench-markdown=r.md", "--helmbench-json=r.json", "--helmbench-html=r.html"),
    "--junitxml=r.xml",
)
_CHANGE = re.compile(r"([\d.]+)(?: %)? (?:→|\|) ([\d.]+) % *[,|] ([+−]?[\d.]+) (?:points|\|)")
_CASE = re.compile(r"P\d-B\d-S1-C1-PT\d")
_WORST = "SELECT code FROM v_results WHERE run_id = 2 ORDER BY points_lost DESC, code LIMIT 5"


def _first_five(text: str, after: str) -> list[str]:
    """Return the first five cases that a text names behind some words."""
    return list(dict.fromkeys(_CASE.findall(text.partition(after)[2])))[:5]


def _check_changes(text: str) -> None:
    """See that each difference that a text shows is that of the two scores beside it."""
    found = _CHANGE.findall(text)
    assert found
    for before, after, change in found:
        assert round(float(after) - float(before), 1) == float(change.replace("−", "-"))


@pytest.mark.parametrize("scoring", ["", "floors: {P1: 0.9}\ncap: 0.3\n"])
def test_one_run_has_one_score_pass_rate_order_and_change(
    pytester: pytest.Pytester,
    provider: Provider,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    scoring: str,
) -> None:
    clear_environment(monkeypatch)
    sizes = {"P1-B1-S1": 9, "P1-B2-S1": 2, "P2-B1-S1": 6}  # a case of the smallest costs most
    folder = write_tree(
        pytester.path / "benchmark", {code: category(*["RISK"] * size) for code, size in sizes.items()}
    )
    if scoring:
        (folder / "scoring.yaml").write_text(scoring)
    run_tree(pytester, "--tb=no", url=provider.url)

    def reply(request: Request) -> str:
        is_wrong = any(f"Message {number}." in request.prompt for number in (1, 4, 5, 6, 7))
        return json.dumps({"response": "So.", "category": "CALM" if is_wrong else "RISK"})

    provider.reply = reply
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(pytester.path / "summary.md"))
    terminal = run_tree(pytester, "--helmbench-baseline=1", *_REPORTS, url=provider.url).stdout.str()
    database = pytester.path / "helmbench.db"
    texts = {name: (pytester.path / name).read_text() for name in ("r.md", "r.json", "summary.md")}
    page = shown_text((pytester.path / "r.html").read_text())
    show = captured(capsys, "show", "2", "--db", database)[1]
    compare = captured(capsys, "compare", "1", "2", "--db", database)[1]
    failed = captured(capsys, "show", "2", "--failed", "--db", database)[1]
    (run,) = json.loads(texts["r.json"])["runs"]

    own = "SELECT score_raw, pass_rate, score, score_low, score_high FROM evaluation_runs WHERE id = 2"
    ((score, pass_rate, final, low, high),) = rows(database, own)
    ((lost,),) = rows(database, "SELECT sum(points_lost) FROM results WHERE run_id = 2")
    assert (run["score"]["score"], run["score"]["pass_rate"]) == (score, pass_rate)
    ((score_before,),) = rows(database, "SELECT score FROM evaluation_runs WHERE id = 1")
    change = run["comparisons"][0]["change"]
    assert change == pytest.approx(score - score_before)
    assert lost == pytest.approx(100 * (1 - score))
    everywhere = (texts["r.md"], texts["summary.md"], page, show)
    assert all(f"{100 * score:.1f} %" in text and f"{100 * pass_rate:.1f} %" in text for text in everywhere)
    for text in (texts["r.md"], texts["summary.md"], show, terminal):
        assert f"{100 * low:.1f} – {100 * high:.1f}" in text
    p1 = next(part["score"] for part in run["score"]["pillars"] if part["code"] == "P1")
    capped = f"capped to 30.0: P1 {100 * p1:.1f} < 90"
    assert (final, run["score"]["capped"]) == ((0.3, 0.3) if scoring else (score, None))
    junit = (pytester.path / "r.xml").read_text()
    for text in (*everywhere, terminal, junit):
        assert (capped in text.replace("&lt;", "<")) is bool(scoring)
    for text in (terminal, texts["r.md"], texts["summary.md"], compare):
        _check_changes(text)
    named = re.findall(r'name="helmbench\.compare\.test/good\.(\w+)" value="([^"]*)"', junit)
    assert float(dict(named)["change"]) == pytest.approx(change)
    assert re.search(rf"test/good +{100 * score:.1f} .* {100 * pass_rate:.1f} %", terminal)
    told = f"−{-100 * change:.1f}"
    assert all(told in text for text in (terminal, texts["r.md"], texts["summary.md"], page, compare))
    assert "| worse |" in texts["r.md"]
    assert "worse (two-sided p = 0.002)" in compare

    worst = [code for (code,) in rows(database, _WORST)]
    assert [failure["code"] for failure in run["failures"][:5]] == worst
    annotations = "\n".join(re.findall(r"::error file=.*", terminal))
    assert _first_five(annotations, "::error") == _first_five(failed, "code") == worst
    assert _first_five(terminal, "= FAILURES =") == _first_five(page, "What has become worse") == worst
    assert _first_five(texts["r.md"], "cases failed") == _first_five(texts["r.md"], "Newly failing") == worst
    assert _first_five(terminal, "  newly failing") == worst
    assert _first_five(texts["summary.md"], "cases failed**") == worst
    tokens = [run["comparisons"][0][side]["tokens"] for side in ("before", "after")]
    assert all(f"{tokens[0]} → {tokens[1]}" in text for text in (texts["r.md"], page, compare))


def test_several_runs_have_their_cap_beside_the_score_and_differ_by_the_shown_scores(
    pytester: pytest.Pytester, provider: Provider, capsys: pytest.CaptureFixture[str]
) -> None:
    sizes = {"P1-B1-S1": 9, "P1-B2-S1": 2, "P2-B1-S1": 6}  # 74.07 − 48.15 is 25.9, 74.1 − 48.1 is 26.0
    folder = write_tree(
        pytester.path / "benchmark", {code: category(*["RISK"] * size) for code, size in sizes.items()}
    )
    (folder / "scoring.yaml").write_text("floors: {P1: 0.8}\ncap: 0.5\n")

    def reply(request: Request) -> str:
        wrong = int(request.model[-1])
        is_wrong = any(f"Message {number}." in request.prompt for number in range(1, wrong + 1))
        return json.dumps({"response": "So.", "category": "CALM" if is_wrong else "RISK"})

    provider.reply = reply
    models = [f"--helmbench-model=test/m{wrong}" for wrong in (1, 2, 4)]
    run_tree(pytester, "--tb=no", *models, *_REPORTS, url=provider.url)
    database = pytester.path / "helmbench.db"
    markdown, page = (pytester.path / "r.md").read_text(), shown_text((pytester.path / "r.html").read_text())
    single = captured(capsys, "report", "1", "--format=html", "--db", database)[1]
    listed = captured(capsys, "runs", "--db", database)[1]
    compared = captured(capsys, "compare", "1", "3", "--db", database)[1]

    scores = dict(re.findall(r"\| \*{0,2}`test/(m\d)`\*{0,2} \| ([\d.]+) %", markdown))
    assert set(scores) == {"m1", "m2", "m4"}
    pairs = re.findall(r"\| `test/(m\d) \(run \d\)` \| `test/(m\d) \(run \d\)` \| \+([\d.]+) \|", markdown)
    assert len(pairs) == 3
    for first, second, change in pairs:
        assert round(float(scores[first]) - float(scores[second]), 1) == float(change)
    for text in (markdown, page, listed):
        assert f"{scores['m1']} %, capped to 50.0" in text
    assert f"{scores['m4']} %, floor breached" in markdown
    verdict = shown_text(single).partition("points lost")[0]
    assert verdict.count("capped to 50.0: P1") == 1
    assert f"{scores['m1']} → {scores['m4']} %, −" in compared
    assert f"{scores['m1']} → {scores['m4']} %  " in compared
