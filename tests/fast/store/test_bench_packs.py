"""Bench Packs in a results file: what they say is kept whole, in their order, on their scale."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pytest
from bench_pack_records import (
    AT,
    bench_pack_store,
    error,
    judged,
    result,
    run_record,
    said,
    scenario,
)
from trees import rows

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore, PackStatus, ScenarioResult
from pytest_helmbench.benchmarks.bench_packs.record import (
    RECORD,
    bench_pack_events,
    bench_pack_results,
    bench_pack_rows,
    bench_pack_scenarios,
    pack_score,
)
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import Event, Outcome, Verdict
from pytest_helmbench.results.stored_scores import stored_score
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.read.reply_rows import cases_on_record
from pytest_helmbench.store.read.runs import run_detail

_WHOLE = {
    "score": 62.5,
    "points": 2,
    "note": "half of it",
    "rawLog": "line 1\nline 2",
    "output": {"finalAnswer": "4"},
    "verifier": {"status": "ok", "summary": "ran", "details": {"tests": 3}},
    "artifacts": [{"kind": "file", "label": "log"}],
    "timings": {"durationMs": 120},
    "ownKey": [1, None, "x"],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "helmbench.db"


def test_what_a_pack_says_is_kept_whole_beside_our_verdict(path: Path) -> None:
    whole = said("A", "partial", summary="so so", **_WHOLE)
    with bench_pack_store(path, [run_record()]) as (store, (run_id,)):
        store.record_result(result(run_id, "A", judged(whole, "asking", "checking")))
        store.record_result(result(run_id, "B", judged(replace(said("B"), timings_valid=False))))
        store.record_event(run_id, Event("run_started", {"type": "run_started"}, AT))

    columns = (
        "status, pack_results.score, points, note, summary, raw_log, output, verifier, artifacts, timings"
    )
    first, second = rows(path, f"SELECT {columns} FROM pack_results ORDER BY rowid")
    assert first[:6] == ("partial", 62.5, 2, "half of it", "so so", "line 1\nline 2")
    assert [json.loads(part) for part in first[6:]] == [
        _WHOLE[name] for name in ("output", "verifier", "artifacts", "timings")
    ]
    assert second == ("pass", *(None,) * 8, '{"valid":false}')
    told = "SELECT results.code, type FROM events LEFT JOIN results ON results.id = result_id"
    assert rows(path, f"{told} WHERE results.code IS NOT 'B' ORDER BY events.id") == [
        ("A", "scenario_started"),
        ("A", "model_progress"),
        ("A", "model_progress"),
        ("A", "scenario_result"),
        ("A", "scenario_finished"),
        (None, "run_started"),
    ]
    stated = bench_pack_results(path, run_id)[1][1]
    assert (dict(stated), stated["ownKey"]) == (dict(whole.stated), [1, None, "x"])
    with reading(path) as conn:
        plain, full = (
            next(iter(bench_pack_rows(conn, run_id, "A", with_text=texts).items())) for texts in (False, True)
        )
        events = bench_pack_events(conn, full[0])
    assert [event.payload.get("message") for event in events] == [None, "asking", "checking", None, None]
    assert plain[1] == {"status": "partial", "score": 62.5, "points": 2}
    assert (full[1]["raw_log"], full[1]["output"]) == ("line 1\nline 2", {"finalAnswer": "4"})
    detail = run_detail(path, run_id)
    assert detail is not None
    assert detail.kind == "bench_pack"


def test_a_result_that_replaces_an_error_replaces_what_its_pack_said_and_its_events(path: Path) -> None:
    first = replace(error("verifier", "it was down"), statement=said("A", "fail", note="no verifier"))
    with bench_pack_store(path, [run_record()]) as (store, (run_id,)):
        for outcome in (first, judged(said("A", score=1)), judged(said("A", "fail"))):
            store.record_result(result(run_id, "A", outcome))
            store.flush()
        for outcome in (first, Outcome(Verdict.SKIPPED, "budget")):
            store.record_result(result(run_id, "B", outcome))
            store.flush()

    assert rows(path, "SELECT status, score, note FROM pack_results") == [("pass", 1.0, None)]
    kinds = [kind for (kind,) in rows(path, "SELECT type FROM events")]
    assert kinds == ["scenario_started", "scenario_result", "scenario_finished"]


def test_a_pack_is_among_the_benchmarks_with_its_scenarios_in_its_order(path: Path) -> None:
    with bench_pack_store(path, [run_record(), run_record(model="test/other")]) as (_, run_ids):
        pass
    assert rows(path, "SELECT name, version, kind, count(*) OVER () FROM benchmarks") == [
        ("sums-3", "1.2.0", "bench_pack", 1)
    ]
    assert rows(
        path, "SELECT code, title, family, body FROM scenarios JOIN texts ON texts.hash = text_hash"
    ) == [(name, f"Title of {name}", "bench_pack", f"Add up for {name}.") for name in "BAC"]
    with reading(path) as conn:
        found = bench_pack_scenarios(conn, run_ids[1])
    assert list(found) == ["B", "A", "C"]
    about = replace(scenario("B"), prompt_text="", stated={})
    assert found["B"] == about


def test_the_score_is_the_share_passed_with_categories_as_groups(path: Path) -> None:
    with bench_pack_store(path, [run_record()]) as (store, (run_id,)):
        for code, status in (("A", "pass"), ("B", "partial")):
            store.record_result(result(run_id, code, judged(said(code, status, score=99))))

    score = stored_score(path, run_id)
    assert score is not None
    assert (score.score, score.total.coverage) == (Fraction(1, 2), Fraction(2, 3))
    assert [(group.code, group.score) for group in score.groups] == [
        ("category=Arithmetic", 0.5),
        ("category=Logic", None),
    ]


def test_what_a_pack_makes_of_a_run_is_kept_and_its_last_word_stands(path: Path) -> None:
    categories: tuple[JsonObject, ...] = (
        {"id": "a", "label": "A", "score": 3.5, "weight": 2, "own": "kept"},
    )
    with bench_pack_store(path, [run_record(), run_record(model="test/other")]) as (store, (run_id, other)):
        store.record_statement(run_id, PackScore(1, ()))
        store.record_statement(
            run_id, PackScore(83.25, categories, "well done", partial=True, unit="tokens/s")
        )

    with reading(path) as conn:
        assert pack_score(conn, run_id) == PackScore(
            83.25, categories, "well done", partial=True, unit="tokens/s"
        )
        assert pack_score(conn, other) is None


def test_a_session_that_goes_on_knows_what_was_said(path: Path) -> None:
    with bench_pack_store(path, [run_record()]) as (store, (run_id,)):
        whole = said("A", "partial", summary="so so", **_WHOLE)
        store.record_result(result(run_id, "A", judged(replace(whole, timings_valid=False))))
    (found,) = cases_on_record(path, run_id, RECORD.statements).values()
    hosted = found.outcome.statement
    assert isinstance(hosted, ScenarioResult)
    assert (hosted.status, hosted.score, hosted.points) == (PackStatus.PARTIAL, 62.5, 2)
    assert (hosted.summary, hosted.note, hosted.timings_valid) == ("so so", "half of it", False)


def test_an_outcome_crosses_processes_and_sheds_what_only_the_record_keeps() -> None:
    whole = judged(said("A", "partial", summary="so so", **_WHOLE), "asking")
    assert pickle.loads(pickle.dumps(result(1, "A", whole))) == result(1, "A", whole)

    waiting = whole.for_item()
    assert isinstance(waiting.statement, ScenarioResult)
    assert (waiting.events, waiting.statement.stated, waiting.statement.raw_log) == ((), {}, "")
    assert (waiting.statement.status, waiting.statement.score) == (PackStatus.PARTIAL, 62.5)
    plain = Outcome(Verdict.PASSED)
    assert plain.for_item() is plain
