"""Runs side by side: which of them, what each row says, which pairs differ, and hostile names in every form."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from attack_strings import ATTACKS
from board_runs import add_run
from commands import captured
from pages import shown_text

from pytest_helmbench.reports.tables import display_width, fitted, share, table
from pytest_helmbench.scoring.breakdown import speed_of
from pytest_helmbench.scoring.changes import holm_adjusted
from pytest_helmbench.scoring.comparison import better_one, pair_difference

_AT = "2026-11-22T08:00:00+00:00"
_GOOD, _FAIR, _BAD = [True] * 27 + [False] * 3, [True] * 25 + [False] * 5, [True] * 6 + [False] * 24


@pytest.fixture(autouse=True)
def _there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def database(tmp_path: Path) -> Path:
    return tmp_path / "helmbench.db"


def _document(capsys: pytest.CaptureFixture[str], *runs: object) -> dict[str, Any]:
    """Return a JSON report that fits the published schema."""
    code, out, _ = captured(capsys, "report", *runs, "--format=json")
    assert code == 0
    document, schema = json.loads(out), json.loads(captured(capsys, "schema", "report")[1])
    jsonschema.Draft202012Validator(schema).validate(document)
    found: dict[str, Any] = document
    return found


def _board(capsys: pytest.CaptureFixture[str], *runs: object) -> dict[str, Any]:
    (board,) = _document(capsys, *runs)["standings"]
    found: dict[str, Any] = board
    return found


def test_only_pairs_beyond_the_noise_are_told_apart(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for model, said in (("test/bad", _BAD), ("test/good", _GOOD), ("test/fair", _FAIR)):
        add_run(database, model, said)

    board = _board(capsys, 1, 2, 3)

    assert [(run["model"], run["better_than"]) for run in board["runs"]] == [
        ("test/good", [1]),
        ("test/fair", [1]),
        ("test/bad", []),
    ]
    by_pair = {(pair["first"]["run"], pair["second"]["run"]): pair for pair in board["pairs"]}
    raw = [by_pair[key]["p"] for key in by_pair]
    assert raw == [0.5, 2 / 2**21, 2 / 2**19]
    assert [pair["p_adjusted"] for pair in board["pairs"]] == holm_adjusted(raw)
    assert [pair["better"] for pair in board["pairs"]] == [None, 2, 3]
    markdown = captured(capsys, "report", 1, 2, 3)[1]
    assert "2 of 3 compared pairs differ." in markdown
    assert "no difference shown: only 2 cases differ" in markdown
    assert "**`test/" not in markdown
    assert "| **`test/good`** |" in captured(capsys, "report", 2, 1)[1]
    add_run(database, "test/same", _GOOD)
    assert "no difference shown: no case differs" in captured(capsys, "report", 2, 4)[1]


def test_every_form_shows_the_same_numbers(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(database, "test/good", [*_GOOD, None, None])
    add_run(database, "test/bad", _BAD, cost=None)
    runs = _document(capsys, 1, 2)["runs"]
    markdown = captured(capsys, "report", 1, 2)[1]
    page = shown_text(captured(capsys, "report", 1, 2, "--format", "html")[1])

    for run in runs:
        score = run["score"]
        for text in (share(score["score"]), f"{100 * score['low']:.1f} – {100 * score['high']:.1f} %"):
            assert text in markdown
            assert text in page
    assert "unknown" in markdown
    assert "| 93.8 % |" in markdown
    assert "1 of 1 compared pairs differ." in page


def test_a_run_whose_process_is_gone_is_interrupted_in_every_report(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(database, "test/a", [True])
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute("UPDATE evaluation_runs SET status = 'running'")
        conn.execute("DELETE FROM leases")

    assert "interrupted" in captured(capsys, "runs")[1]
    assert "the run was interrupted" in captured(capsys, "report")[1]


def test_speed_is_of_what_was_answered_in_the_run(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    add_run(database, "test/m", [True] * 5, recorded=2)

    document = _document(capsys, 1)

    times = [102.0, 103.0, 104.0]  # stored replies have none
    speed = document["runs"][0]["speed"]
    assert (speed["cases"], speed["median_ms"], speed["p95_ms"]) == (3, 103.0, 104.0)
    assert speed["tokens_per_second"] == pytest.approx(60 / (sum(times) / 1000))
    assert speed["in_flight"] == 3  # all begin at once
    assert speed["run_tokens_per_second"] == pytest.approx(600, rel=0.01)
    assert document["standings"][0]["runs"][0]["notes"] == [
        "2 of 5 calls were answered by stored replies: they have no cost and no time of their own"
    ]
    add_run(database, "test/m", [True] * 5, recorded=5)
    measured, replayed = (run["speed"] for run in _document(capsys, 1, 2)["runs"])
    assert measured == speed
    assert (replayed["tokens_per_second"], replayed["in_flight"]) == (None, None)
    head, _, *rows = captured(capsys, "report", "1", "2")[1].splitlines()[4:8]
    assert "| run | model | score | 95 % interval | right | cost USD | median time |" in head
    assert [row.split(" | ")[-2] for row in rows] == ["103 ms", "-"]
    earlier = "(SELECT count(*) FROM calls AS c WHERE c.rowid < calls.rowid)"
    starts = f"'2026-01-01T00:00:00.' || {earlier} || '00'"  # each begins as the one before ends
    with closing(sqlite3.connect(database)) as conn, conn:
        conn.execute(f"UPDATE calls SET started_at = {starts}, latency_ms = 100.6 WHERE NOT from_cache")
    assert _document(capsys, 1)["runs"][0]["speed"]["in_flight"] == 1
    assert speed_of([]).tokens_per_second is None
    assert speed_of([(10.0, None)]).tokens_per_second is None


@pytest.mark.parametrize(
    ("other", "reason", "note"),
    [
        (
            {"content": "cd"},
            "no case in common",
            "content cdcdcdcdcdcd (abababababab in run 2)",
        ),
        ({"judged_by": "test/j"}, "other judges", "judge test/j (none in run 2)"),
        ({"said": [*_GOOD[:15], *[None] * 15]}, "only 50 % of the points are in both", ""),
        ({"scope": "by_outcome"}, "run 3 has no score", ""),
        ({"settings": {"sampling": {"temperature": 1}}}, "", "temperature 1 (none in run 2)"),
        (
            {"settings": {"repeat": 1, "system_prompt": "Hi."}},
            "",
            "system_prompt Hi. (none in run 2)",
        ),
    ],
    ids=["content", "judge", "coverage", "no score", "sampling", "system prompt"],
)
def test_what_cannot_be_compared_is_said(
    database: Path, capsys: pytest.CaptureFixture[str], other: dict[str, Any], reason: str, note: str
) -> None:
    add_run(database, "test/a", _GOOD)
    add_run(database, "test/b", _FAIR)
    add_run(database, "test/odd", **{"said": _BAD, **other})

    board = _board(capsys, 1, 2, 3)

    (odd,) = [run for run in board["runs"] if run["model"] == "test/odd"]
    reasons = {
        pair["reason"]
        for pair in board["pairs"]
        if "test/odd" in (pair["first"]["model"], pair["second"]["model"])
    }
    assert reasons == {reason}
    assert not note or note in odd["notes"]


def test_two_runs_of_one_model_are_two_rows_that_say_what_differs(
    database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for value in (0, 0.7):
        add_run(database, "test/a", _GOOD, settings={"sampling": {"temperature": value}})
    add_run(database, "test/b", _FAIR)

    text = captured(capsys, "report", "1", "2", "3")[1]

    for name in ("test/a (temperature=0)", "test/a (temperature=0.7)", "test/b"):
        assert f"| `{name}` |" in text or f"| **`{name}`** |" in text


def test_runs_of_several_files_stand_by_benchmark(
    tmp_path: Path, database: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for benchmark in ("quiz 10", "quiz 9"):
        add_run(database, "test/a", _GOOD, benchmark=benchmark)
    add_run(tmp_path / "old.db", "test/b", _BAD, benchmark="quiz 9")

    boards = _document(capsys, 1, 2, "old.db#1")["standings"]

    assert [board["benchmark"] for board in boards] == ["quiz 9", "quiz 10"]
    assert [(run["run"], run["database"]) for run in boards[0]["runs"]] == [
        (2, "helmbench.db"),
        (1, "old.db"),
    ]
    assert "| 1 of old.db | `test/b` |" in captured(capsys, "report", 1, 2, "old.db#1")[1]


def test_hostile_names_act_in_no_form(database: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = ["=1+1|a`b", "@x **b** [l](u)", "-2 \x1b[31m\u202e", ATTACKS[0], ATTACKS[20]]
    for name in names:
        add_run(database, name, [True, False], benchmark="b | $x$ <i>")
    runs = range(1, len(names) + 1)

    markdown = captured(capsys, "report", *runs)[1]
    table = [line for line in markdown.splitlines() if re.match(r"\| \d \| ", line)]
    assert len({len(line.replace("\\|", "").split("|")) for line in table}) == 1
    outside = re.sub(r"(`+).*?\1", "", markdown)
    assert not re.search(r"<(?!/?(details|summary)>)", outside)
    page = captured(capsys, "report", *runs, "--format", "html")[1]
    assert page.count("<script>") == 1
    assert "&lt;script&gt;window.PWN=1&lt;/script&gt;" in page
    for form in ("html", "markdown", "json"):
        again = [captured(capsys, "report", *runs, "--format", form)[1] for _ in range(2)]
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


def test_a_baseline_file_and_a_form_without_a_page_are_refused(
    database: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    add_run(database, "test/a", _GOOD)
    captured(capsys, "export", "1", "--format", "baseline", "-o", tmp_path / "b.json")

    for words, said in (
        (("b.json",), "is a baseline file, which holds verdicts alone"),
        (("--open",), "--open shows no markdown"),
        (("--min-coverage", "1"), "--min-coverage belongs to a gate"),
    ):
        code, _, err = captured(capsys, "report", *words)
        assert code == 2
        assert said in err


@pytest.mark.parametrize(
    ("width", "head", "line"),
    [
        (60, "run model status cases score", "1    東京の学校の受付      complete     80   80.6"),
        (40, "run model cases score", "1    東京の学校の受付         80   80.6"),
        (33, "run model score", "1    東京の学校の受付       80.6"),
        (24, "run model score", "1    東京の…受付    80.6"),
        (1, "run model score", "1    東京…付    80.6"),
    ],
)
def test_a_table_fits_its_terminal(width: int, head: str, line: str) -> None:
    rows = [
        ("1", "東京の学校の受付", "complete", "80", "80.6"),
        ("2", "vendor/model-of-2026", "complete", "8", "9"),
    ]
    titles, spare = ("run", "model", "status", "cases", "score"), (("cases",), ("status",))
    lines = table(titles, rows, left=("run", "model", "status"), width=width, spare=spare)
    assert (" ".join(lines[0].split()), lines[1]) == (head, line)
    assert max(map(display_width, lines)) <= max(width, 20)


@pytest.mark.parametrize(
    ("text", "shown"),
    [("the tests pass", "the tests…"), ("a-long-name-of-1", "a-lon…of-1"), ("東京の学校の", "東京…校の")],
)
def test_a_text_that_is_too_long_is_cut_and_a_name_keeps_its_end(text: str, shown: str) -> None:
    assert [fitted(text, width) for width in (10, 40)] == [shown, text]
