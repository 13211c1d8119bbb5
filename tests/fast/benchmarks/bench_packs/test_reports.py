"""Bench Packs as people and programs read them: their own scale is labelled, their words only where asked for."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from bench_pack_records import AT, END, bench_pack_store, error, judged, result, run_record, said

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore
from pytest_helmbench.benchmarks.bench_packs.record import suite_properties
from pytest_helmbench.cli.main import main
from pytest_helmbench.core.outcome import Outcome, Verdict
from pytest_helmbench.core.outline import RowOutline
from pytest_helmbench.store.write.run_rows import RunRecord, RunTotals
from pytest_helmbench.store.write.writer import Store

_CATEGORIES: tuple[dict[str, Any], ...] = (
    {"id": "a", "label": "Arith\x1bmetic", "score": 62.5, "weight": 2, "own": "QUOTE"},
    {"id": "l", "label": "Logic | more", "score": 1_234_567.0},
)
_SCORE = PackScore(83.33333333, _CATEGORIES, "QUOTE of a score", partial=True, unit="points")
_QUOTING: dict[str, Any] = {
    "score": 40.5,
    "points": 2,
    "summary": "QUOTE summary",
    "note": "QUOTE\x1b[2J note",
    "rawLog": "QUOTE log\n" + "x" * 9_000,
    "verifier": {"status": "QUOTE"},
    "artifacts": [{"kind": "file"}],
}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    """One run: a partial result whose replies came from the record, a pass, and an error."""
    path = tmp_path / "helmbench.db"
    with bench_pack_store(path, [run_record()]) as (store, (run_id,)):
        told = replace(said("A", "partial", **_QUOTING), timings_valid=False)
        store.record_result(result(run_id, "A", judged(told, "QUOTE\nprogress")))
        store.record_result(result(run_id, "B", judged(said("B"))))
        store.record_result(result(run_id, "C", error("crashed", "the pack has ended its process")))
        store.record_statement(run_id, _SCORE)
    return path


def _command(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def _valid(name: str, document: str, capsys: pytest.CaptureFixture[str]) -> Any:
    schema = json.loads(_command(capsys, "schema", name))
    found = json.loads(document)
    jsonschema.Draft202012Validator(schema).validate(found)
    return found


def test_junit_gets_totals_and_categories_by_pack_and_model() -> None:
    assert suite_properties("sums-3", "test/good", _SCORE) == [
        ("pack_total[sums-3][test/good]", 83.33333333),
        ("pack_partial[sums-3][test/good]", "true"),
        ("pack_category[sums-3][test/good][a]", 62.5),
        ("pack_category[sums-3][test/good][l]", 1_234_567.0),
    ]
    odd = PackScore(1, ({"id": "x\n", "score": True}, {"id": "y\x00", "score": 2}))
    assert suite_properties("p\x1b", "m", odd)[1:] == [("pack_category[p\\x1b][m][y\ufffd]", 2)]


def test_show_has_all_that_a_pack_says_of_a_case(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = _command(capsys, "show", "1", "A", "--db", db).splitlines()
    assert lines[:5] == [
        "A: failed (partial)",
        "  Title of A",
        "  category  Arithmetic",
        "  tags      short, sums",
        "  model     test/good",
    ]
    start = lines.index("pack: partial, score 40.5, points 2 (its own scale)")
    assert lines[start + 1 : start + 9] == [
        "  summary   QUOTE summary",
        "  note      QUOTE\\x1b[2J note",
        '  verifier  {"status": "QUOTE"}',
        '  artifacts [{"kind": "file"}]',
        "  times     not the model's: a reply was a stored one",
        "",
        "raw log (the start of 9010 characters)",
        "  | QUOTE log",
    ]
    assert len(lines[start + 9]) < 8_100
    assert lines[start + 10 : start + 20] == [
        "",
        "card: Success case",
        "  | The sum is right.",
        "",
        "events",
        "  12:00:00.000  scenario_started",
        "  12:00:00.000  model_progress  QUOTE progress",
        "  12:00:00.000  scenario_result",
        "  12:00:00.000  scenario_finished",
        "",
    ]
    silent = _command(capsys, "show", "1", "C", "--db", db)
    assert "pack: it has said nothing of this case" in silent
    assert "scenario_error  the pack has ended its process" in silent
    (record,) = json.loads(_command(capsys, "show", "1", "A", "--json", "--db", db))
    assert record["pack"]["result"]["note"] == _QUOTING["note"]
    assert record["pack"]["scenario"]["cards"] == [["Success case", "The sum is right."]]
    assert [event["type"] for event in record["pack"]["events"]][1] == "model_progress"
    assert "hosted" not in record


def test_reports_have_numbers_always_and_words_when_asked_for(
    db: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = ("report", "--db", db, "--format")
    plain, full = (_command(capsys, *report, "markdown", *texts) for texts in ((), ("--with-text=all",)))
    assert "QUOTE" not in plain
    assert (
        "Total: **83.3333 points (not over all scenarios)**. The score above is ours: the share passed.\n\n"
        "| category | score | weight |\n| :-- | --: | --: |\n"
        "| Arith\\\\x1bmetic | 62.5 | 2 |\n| Logic \\| more | 1234567 | - |\n"
    ) in plain
    assert "> - the pack's own total is not over all of its scenarios\n" in plain
    assert ("> - replies of 1 case were stored ones: the pack's times are not the model's\n") in plain
    assert "| group | score |" in plain
    for text in ("QUOTE of a score", "pack: partial, score 40.5", "QUOTE\\x1b[2J note", "QUOTE log"):
        assert text in full
    words = _valid("report", _command(capsys, *report, "json", "--with-text=all"), capsys)["runs"][0]
    text = _command(capsys, *report, "json")
    numbers = _valid("report", text, capsys)["runs"][0]
    assert "QUOTE" not in text
    assert numbers["pack_score"] == {
        "total": _SCORE.total,
        "unit": "points",
        "partial": True,
        "categories": [
            {"id": "a", "label": "Arith\x1bmetic", "score": 62.5, "weight": 2},
            {"id": "l", "label": "Logic | more", "score": 1_234_567.0},
        ],
    }
    assert words["pack_score"]["summary"] == "QUOTE of a score"
    assert words["pack_score"]["categories"][0]["own"] == "QUOTE"
    failure = numbers["failures"][0]
    assert (failure["pack_status"], failure["pack_score"], failure["pack_points"]) == ("partial", 40.5, 2)
    assert "pack_note" not in failure
    assert words["failures"][0]["pack_note"] == _QUOTING["note"]


def test_exports_have_columns_of_the_pack(db: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = _command(capsys, "export", "--format", "csv", "--db", db)
    rows = {row["code"]: row for row in csv.DictReader(io.StringIO(table))}
    assert "QUOTE" not in table
    found = {
        code: [row[f"pack_{name}"] for name in ("status", "score", "points")] for code, row in rows.items()
    }
    assert found == {"A": ["partial", "40.5", "2.0"], "B": ["pass", "", ""], "C": ["", "", ""]}
    texts = _command(capsys, "export", "--format", "csv", "--with-text=all", "--db", db)
    first = next(csv.DictReader(io.StringIO(texts)))
    assert (first["pack_summary"], first["pack_note"]) == ("QUOTE summary", "QUOTE\\x1b[2J note")

    numbers = _command(capsys, "export", "--format", "json", "--db", db)
    assert "QUOTE" not in numbers
    results = _valid("export", numbers, capsys)["results"]
    assert [(row["pack_status"], row["pack_score"]) for row in results] == [
        ("partial", 40.5),
        ("pass", None),
        (None, None),
    ]
    words = _valid(
        "export", _command(capsys, "export", "--format", "json", "--with-text=all", "--db", db), capsys
    )
    assert words["results"][0]["pack_raw_log"].startswith("QUOTE log\n")


def test_other_runs_have_no_such_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "helmbench.db"
    pack = RowOutline(tmp_path, "quiz", "1", "", "cd" * 32, {}, "pack")
    store = Store.open(path)
    (run_id,) = store.open_runs("s", [RunRecord(pack, "m", "test", None, "whole", 1, None, {}, "0.1.0", AT)])
    store.record_result(result(run_id, "row", Outcome(Verdict.SKIPPED, "budget")))
    store.close_run(run_id, RunTotals("partial", END))
    store.close()

    assert "pack_" not in _command(capsys, "export", "--format", "csv", "--db", path)
    assert "pack_" not in _command(capsys, "export", "--format", "json", "--db", path)
    assert '"pack' not in _command(capsys, "show", "1", "row", "--json", "--db", path)
    assert _valid("report", _command(capsys, "report", "--format", "json", "--db", path), capsys)


def test_a_bench_pack_cannot_be_judged_anew_from_its_replies(
    db: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["rescore", "1", "--db", str(db)]) == 2
    assert capsys.readouterr().err == (
        "helmbench: run 1 cannot be judged anew: a Bench Pack alone can judge its replies\n"
        "  hint: --helmbench-cache=only replays them through the pack of now, without a call\n"
    )
