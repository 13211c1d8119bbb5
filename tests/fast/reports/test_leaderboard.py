"""Runs side by side: which of them, what is said of each, who is told apart, and hostile names in every form."""

from __future__ import annotations

import csv
import json
import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from io import StringIO
from itertools import permutations, product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from attack_strings import ATTACKS
from board_runs import add_run
from commands import captured
from pages import shown_text

from pytest_helmbench.results.standings import MOST_COMPARED
from pytest_helmbench.scoring.breakdown import speed_of
from pytest_helmbench.scoring.changes import holm_adjusted
from pytest_helmbench.scoring.comparison import better_one, pair_difference, rank_bounds

_AT = "2026-11-22T08:00:00+00:00"
_GOOD, _FAIR, _BAD = [True] * 27 + [False] * 3, [True] * 25 + [False] * 5, [True] * 6 + [False] * 24


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "helmbench.db"


def _document(capsys: pytest.CaptureFixture[str], *runs: object) -> list[dict[str, Any]]:
    """Return the boards of a JSON leaderboard that fits the published schema."""
    code, out, _ = captured(capsys, "leaderboard", *runs, "--json")
    assert code == 0
    document, schema = json.loads(out), json.loads(captured(capsys, "schema", "leaderboard")[1])
    jsonschema.Draft202012Validator(schema).validate(document)
    found: list[dict[str, Any]] = document["benchmarks"]
    return found


def test_only_pairs_beyond_the_noise_are_told_apart(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for model, said in (("test/bad", _BAD), ("test/good", _GOOD), ("test/fair", _FAIR)):
        add_run(database, model, said)

    (board,) = _document(capsys)

    assert [(run["model"], run["best_place"], run["worst_place"]) for run in board["runs"]] == [
        ("test/good", 1, 2),
        ("test/fair", 1, 2),
        ("test/bad", 3, 3),
    ]
    by_pair = {(pair["first"]["run"], pair["second"]["run"]): pair for pair in board["pairs"]}
    raw = [by_pair[key]["p"] for key in by_pair]
    assert raw == [0.5, 2 / 2**21, 2 / 2**19]
    assert [pair["p_adjusted"] for pair in board["pairs"]] == holm_adjusted(raw)
    assert [pair["better"] for pair in board["pairs"]] == [None, 2, 3]
    text = captured(capsys, "leaderboard")[1]
    assert "2 of 3 compared pairs are told apart." in text
    assert "not told apart: only 2 rows differ" in text
    markdown = captured(capsys, "leaderboard", "--markdown")[1]
    assert "**" not in markdown
    assert "| **`test/good`** |" in captured(capsys, "leaderboard", "2", "1", "--markdown")[1]
    add_run(database, "test/same", _GOOD)
    assert "not told apart: no row differs" in captured(capsys, "leaderboard", "2", "4")[1]


def test_the_numbers_are_those_of_the_json_report(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(database, "test/good", [*_GOOD, None, None])
    add_run(database, "test/bad", _BAD, cost=None)
    reports = json.loads(captured(capsys, "report", "1", "2", "--format", "json")[1])["runs"]
    lines = list(csv.DictReader(StringIO(captured(capsys, "leaderboard", "--csv")[1])))

    (board,) = _document(capsys)

    for found, report, line in zip(board["runs"], reports, lines, strict=True):
        score, run = report["score"], report["run"]
        names = (
            "score",
            "low",
            "high",
            "raw",
            "capped",
            "coverage",
            "pass_rate",
            "judged_rows",
            "planned_rows",
        )
        assert [found[name] for name in names] == [score[name] for name in names]
        assert [found[name] for name in ("cost_usd", "known_cost_usd")] == [
            run[name] for name in ("cost_usd", "known_cost_usd")
        ]
        speed = report["speed"]
        assert {name: found[name] for name in speed} == speed
        assert float(line["score"]) == score["score"]
        assert line["cost_usd"] == ("" if run["cost_usd"] is None else str(run["cost_usd"]))
    assert [line["run"] for line in lines] == ["1", "2"]
    text = captured(capsys, "leaderboard")[1]
    assert "unknown" in text
    assert "coverage 93.8 %" in text
    page = shown_text(captured(capsys, "leaderboard", "--html")[1])
    assert "quiz 1: leaderboard" in page
    assert "1 of 1 compared pairs are told apart." in page


def test_a_run_whose_process_is_gone_is_interrupted_in_every_report(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(database, "test/a", [True])
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("UPDATE evaluation_runs SET status = 'running'")
        conn.execute("DELETE FROM leases")

    assert _document(capsys)[0]["runs"][0]["notes"][0] == "interrupted"
    assert "interrupted" in captured(capsys, "runs")[1]
    assert "the run was interrupted" in captured(capsys, "report")[1]


def test_speed_is_of_what_was_answered_in_the_run(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(database, "test/m", [True] * 5, recorded=2)

    ((run,),) = [board["runs"] for board in _document(capsys)]

    times = [102.0, 103.0, 104.0]  # of those that came from the record nobody knows any
    assert (run["cases"], run["median_ms"], run["p95_ms"]) == (3, 103.0, 104.0)
    assert run["tokens_per_second"] == pytest.approx(60 / (sum(times) / 1000))
    assert run["notes"] == [
        "2 of 5 calls were answered from the record: they have no cost and no time of their own"
    ]
    assert speed_of([]).tokens_per_second is None
    assert speed_of([(10.0, None)]).tokens_per_second is None


def test_of_several_runs_of_a_model_the_newest_complete_one_is_taken(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(database, "test/a", _BAD)
    add_run(database, "test/a", _GOOD)
    add_run(database, "test/a", _BAD, scope="selected")
    add_run(database, "test/a", _BAD, status="interrupted")
    add_run(database, "test/a", _BAD, scope="by_outcome")
    add_run(database, "test/b", _FAIR, status="interrupted")
    add_run(database, "test/c", [None] * 30)

    (board,) = _document(capsys)

    assert [(run["run"], run["passed_over"]) for run in board["runs"]] == [(2, [1, 3, 4]), (6, [])]
    assert board["runs"][0]["notes"] == ["the newest complete run of this model; not shown: runs 1, 3, 4"]
    assert board["runs"][1]["notes"] == ["interrupted"]
    (asked,) = _document(capsys, "1", "2", "5")
    assert [(run["run"], run["score"] is None) for run in asked["runs"]] == [
        (2, False),
        (1, False),
        (5, True),
    ]
    assert asked["pairs"][1]["reason"] == "run 5 has no score"
    assert "(--lf, --sw): no score" in asked["runs"][2]["notes"][0]


@pytest.mark.parametrize(
    ("other", "reason", "note"),
    [
        (
            {"content": "cd"},
            "no case in common",
            "other content of the benchmark (cdcdcdcdcdcd; abababababab in run 2)",
        ),
        ({"judged_by": "test/j"}, "other judges", "judged by test/j (no model in run 2)"),
        ({"said": [*_GOOD[:15], *[None] * 15]}, "only 50 % of the points are in both", "coverage 50.0 %"),
        ({"said": _GOOD[:10]}, "only 33 % of the points are in both", ""),
        ({"settings": {"sampling": {"temperature": 1}}}, "", "other sampling options than run 2"),
        (
            {"settings": {"repeat": 1, "system_prompt": "Hi."}},
            "",
            "the setting system_prompt differs from run 2",
        ),
    ],
    ids=["content", "judge", "coverage", "fewer cases", "sampling", "system prompt"],
)
def test_what_cannot_be_compared_is_said(
    database: Path, capsys: pytest.CaptureFixture[str], other: dict[str, Any], reason: str, note: str
) -> None:
    add_run(database, "test/a", _GOOD)
    add_run(database, "test/b", _FAIR)
    add_run(database, "test/odd", **{"said": _BAD, **other})

    (board,) = _document(capsys)

    (odd,) = [run for run in board["runs"] if run["model"] == "test/odd"]
    reasons = {
        pair["reason"]
        for pair in board["pairs"]
        if "test/odd" in (pair["first"]["model"], pair["second"]["model"])
    }
    assert reasons == {reason}
    assert not note or note in odd["notes"]
    if reason:
        assert (odd["best_place"], odd["worst_place"]) == (1, 3)


def test_models_by_benchmarks_stand_in_one_table_without_a_mean(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for benchmark in ("quiz 10", "quiz 9"):
        add_run(database, "test/a", _GOOD, benchmark=benchmark)
    add_run(database, "test/b", _BAD, benchmark="quiz 9")

    lines = captured(capsys, "leaderboard")[1].splitlines()

    assert lines[0].split() == ["model", "quiz", "9", "quiz", "10"]
    assert lines[1].startswith("test/a  90.0 % (74.4 to 96.5 %)  90.0 % (74.4 to 96.5 %)")
    assert lines[2].split()[-1] == "-"


def test_too_many_runs_are_not_compared(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for number in range(MOST_COMPARED + 1):
        add_run(database, f"test/{number}", [True])

    out = captured(capsys, "leaderboard")[1]

    assert "Not compared two by two: more than 24 runs. Name fewer." in out


def test_hostile_names_act_in_no_form(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [
        "=1+1|a`b",
        "@x **b** [l](u)",
        "\\input{/etc/passwd}%$&#_^~\"'",
        "-2 \x1b[31m\u202e",
        ATTACKS[0],
        ATTACKS[20],
    ]
    for name in names:
        add_run(database, name, [True, False], benchmark="b | $x$ <i>")

    markdown = captured(capsys, "leaderboard", "--markdown")[1]
    table = [line for line in markdown.splitlines() if line.startswith("| ") and "60" not in line]
    widths = {len(line.replace("\\|", "").split("|")) for line in table[2 : 2 + len(names)]}
    assert widths == {12}
    outside = re.sub(r"(`+).*?\1", "", markdown)
    assert "<" not in outside
    assert "**" not in outside.replace("\\*\\*", "")
    cells = list(csv.reader(StringIO(captured(capsys, "leaderboard", "--csv")[1])))
    column = cells[0].index("model")
    assert {row[column][:1] for row in cells[1:]}.isdisjoint({"=", "+", "-", "@", "\t", "\r"})
    assert all("\x1b" not in "".join(row) for row in cells)
    page = captured(capsys, "leaderboard", "--html")[1]
    assert page.count("<script>") == 1
    assert "&lt;script&gt;window.PWN=1&lt;/script&gt;" in page
    for form in ("--text=none", "--markdown", "--csv"):
        again = [captured(capsys, "leaderboard", form)[1] for _ in range(2)]
        assert again[0] == again[1]


def test_two_sided_p_counts_every_way_to_sign_the_differences() -> None:
    changes = [Fraction(number, 100) for number in (5, 3, -2, 4, 0, 1, 7)]
    total = abs(sum(changes, Fraction(0)))
    nonzero = [abs(change) for change in changes if change]
    signed = [
        sum((sign * size for sign, size in zip(signs, nonzero, strict=True)), Fraction(0))
        for signs in product((1, -1), repeat=len(nonzero))
    ]

    found = pair_difference(changes)

    assert found.p == sum(abs(one) >= total for one in signed) / len(signed)
    assert (found.units, found.changed, found.cannot_tell) == (7, 6, False)
    assert pair_difference([-change for change in changes]).p == found.p
    assert (
        better_one(Fraction(1, 9), 0.05),
        better_one(Fraction(-1, 9), 0.05),
        better_one(Fraction(1), 0.051),
    ) == (1, -1, 0)


def test_places_hold_every_order_that_the_pairs_allow() -> None:
    better = [("a", "c"), ("a", "d"), ("b", "d")]
    allowed = [
        order
        for order in permutations("abcd")
        if all(order.index(won) < order.index(lost) for won, lost in better)
    ]

    bounds = rank_bounds("abcd", better)

    assert bounds == {
        name: (
            1 + min(order.index(name) for order in allowed),
            1 + max(order.index(name) for order in allowed),
        )
        for name in "abcd"
    }


def test_a_baseline_file_and_two_forms_are_refused(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(database, "test/a", _GOOD)
    captured(capsys, "export", "1", "--format", "baseline", "-o", tmp_path / "b.json")

    for words, said in (
        (("b.json",), "is a baseline file, which holds verdicts alone"),
        (("--csv", "--json"), "csv and json: one form at a time"),
        (("--csv", "--open"), "--open shows no csv"),
    ):
        code, _, err = captured(capsys, "leaderboard", *words)
        assert code == 2
        assert said in err
