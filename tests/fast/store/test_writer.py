"""Contents of a results file while and after a session writes it, read by plain sqlite3."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from waiting import until

from pytest_helmbench.benchmarks.scenario_trees.evaluation_types.field_types import FieldRule
from pytest_helmbench.benchmarks.scenario_trees.tree import Component, Scenario, ScenarioTree
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.outcome import (
    AttemptRecord,
    Beside,
    Evaluation,
    Event,
    Outcome,
    Parse,
    ResultRecord,
    Usage,
    Verdict,
)
from pytest_helmbench.core.outline import BehaviourEntry, PillarEntry, Scoring
from pytest_helmbench.judging.rubric import Criterion, JudgeRule
from pytest_helmbench.reports.cards import case_card, evaluation_cells
from pytest_helmbench.reports.run_cautions import answer_doubts, box_sentences
from pytest_helmbench.results.run_counts import RunCounts, recorded_counts
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey
from pytest_helmbench.store.read.connection import reading
from pytest_helmbench.store.read.costs import CostRange, price_history
from pytest_helmbench.store.read.results import recorded_outcomes, results
from pytest_helmbench.store.read.runs import runs
from pytest_helmbench.store.write.run_rows import RunRecord, RunTotals
from pytest_helmbench.store.write.writer import Store

AT = "2026-07-04T12:00:00+00:00"
Query: TypeAlias = Callable[..., list[dict[str, Any]]]
CODE = "P1-B1-S1-C1-U1-PT1"
FIELD_RULE = FieldRule("category_match", "category", ("SAFE",))
USAGE = Usage(prompt_tokens=100, completion_tokens=10, cost_usd=0.5)


def components(scenario: str, kind: str, count: int) -> tuple[Component, ...]:
    return tuple(
        Component(f"{kind}{n}", f"{scenario}-{kind}{n}", f"{kind}{n} body", "", n, Path("x.md"), 1)
        for n in range(1, count + 1)
    )


def scenario(code: str, rule: FieldRule | JudgeRule = FIELD_RULE) -> Scenario:
    schema: JsonObject = {"type": "json_schema", "json_schema": {"name": "a", "strict": True, "schema": {}}}
    family = "category_match" if isinstance(rule, FieldRule) else "sqe"
    conditions, contexts, perturbations = (components(code, kind, 2) for kind in ("C", "U", "PT"))
    return Scenario(
        code=code,
        path=Path(code),
        title="a title",
        body=f"{code} body",
        block="",
        category="SAFE",
        response_format=schema,
        rule=rule,
        conditions=conditions,
        user_contexts=contexts,
        perturbations=perturbations,
        family=family,
    )


_BENCHMARK_NUMBERS = """
    SELECT (SELECT count(*) FROM benchmarks AS other WHERE other.rowid <= benchmarks.rowid) AS n
    FROM evaluation_runs JOIN benchmarks ON benchmarks.id = benchmark_id ORDER BY evaluation_runs.id
"""
_DEMO = BenchmarkKey("demo", "scenario_tree")


def benchmark(*scenarios: Scenario, **changes: Any) -> ScenarioTree:
    found = scenarios or (scenario("P1-B1-S1"),)
    plain = ScenarioTree(
        root=Path("benchmark"),
        name="demo",
        version="1",
        description="a demo",
        hash="ab" * 32,
        pillars=(PillarEntry("P1", "Safety", "Be safe."),),
        behaviours=(BehaviourEntry("P1-B1", "First", "About B1.", "Must."),),
        scenarios={item.path: item for item in found},
        scoring=Scoring({"P1-B1": 12.0}, {}),
        problems={},
        broken={},
        warnings=(),
        unrun={},
    )
    return replace(plain, **changes)


def run_record(tree: ScenarioTree | None = None, model: str = "test/good", **settings: Any) -> RunRecord:
    return RunRecord(tree or benchmark(), model, "test", None, "whole", 4, None, settings, "0.1.0", AT)


def attempt(run_id: int, code: str = CODE, **changes: Any) -> AttemptRecord:
    plain = AttemptRecord(
        run_id=run_id,
        code=code,
        repetition=1,
        criterion="",
        purpose="case",
        sequence=1,
        attempt=1,
        status_code=200,
        finish_reason="stop",
        error=None,
        latency_ms=12.5,
        usage=USAGE,
        provider_model="good-2026",
        request_hash="h1",
        request_body=b'{"prompt": 1}',
        response_body=b'{"answer": "SAFE"}',
        text="SAFE",
        reply_key="key-1",
        from_cache=False,
        started_at=AT,
        received_at=AT,
    )
    return replace(plain, **changes)


def judgement(*, passed: bool = True, criterion: str = "", observed: str = "SAFE") -> Evaluation:
    credit = float(passed)
    return Evaluation(
        criterion, "category_match", "cd" * 8, passed, credit, None, Parse.STRICT, "SAFE", observed
    )


def result(run_id: int, code: str = CODE, verdict: Verdict = Verdict.PASSED, **changes: Any) -> ResultRecord:
    judged = verdict in (Verdict.PASSED, Verdict.FAILED)
    outcome = Outcome(
        verdict,
        evaluations=(judgement(passed=verdict is Verdict.PASSED),) if judged else (),
        score=float(verdict is Verdict.PASSED) if judged else None,
        usage=USAGE,
        latency_ms=12.5,
        started_at=AT,
        completed_at=AT,
    )
    plain = ResultRecord(run_id, code, f"benchmark::{code}", "category_match", 1, 3, 1, False, outcome)
    shape = {key: changes.pop(key) for key in ("repetition", "neutral") if key in changes}
    return replace(plain, outcome=replace(outcome, **changes), **shape)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "helmbench.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with contextlib.closing(Store.open(path)) as opened:
        yield opened


@pytest.fixture
def ask(path: Path, store: Store) -> Query:
    """Flush, then read with another connection."""

    def rows(query: str, *values: object) -> list[dict[str, Any]]:
        store.flush()
        assert store.fault is None
        with contextlib.closing(sqlite3.connect(path)) as conn:
            conn.row_factory = sqlite3.Row
            return [dict(row) for row in conn.execute(query, values)]

    return rows


def test_the_mark_of_a_verdict_is_kept_counted_and_said(path: Path, store: Store) -> None:
    marks = [Beside.IN_PROCESS, Beside.IN_PROCESS, Beside.OWN_BOX, None]
    (run_id,) = store.open_runs("session", [run_record()])
    live = RunCounts()
    for number, mark in enumerate(marks, 1):
        marked = (replace(judgement(), beside=mark), replace(judgement(criterion="CR2"), beside=mark))
        record = result(run_id, f"P1-B1-S1-C1-U1-PT{number}", evaluations=marked)
        store.record_result(record)
        live.add_result(record)
    store.flush()

    rows = results(path, run_id)
    for counts in (live, recorded_counts(path, run_id, recorded_outcomes(path, run_id))):
        assert list(answer_doubts("good", counts)) == [
            "2 of 4 verdicts in_process, 1 own_box (docs/trust.md)"
        ]
    assert [[one.beside for one in row.evaluations] for row in rows] == [[mark, mark] for mark in marks]
    assert [evaluation_cells(row.evaluations[0])["beside"] for row in rows] == marks
    assert "  own_box: passed only in the agent's own box" in case_card(rows[2], (), "good")


def _box(part: str, cpus: float, memory_mb: int, kills: int | None) -> Event:
    figures = {"part": part, "engine": "podman", "cpus": cpus, "memory_mb": memory_mb, "memory_kills": kills}
    return Event("box", figures, AT)


def test_boxes_are_counted_from_their_events(path: Path, store: Store) -> None:
    boxes = [
        (_box("agent", 1, 2048, 1), _box("verifier", 2.0, 4096, 0)),
        (Event("tool", {"name": "shell"}, AT), _box("agent", 0.5, 65_536, None)),
        (),
    ]
    (run_id,) = store.open_runs("session", [run_record()])
    live = RunCounts()
    for number, events in enumerate(boxes, 1):
        record = result(run_id, f"P1-B1-S1-C1-U1-PT{number}", events=events)
        store.record_result(record)
        live.add_result(record)
    store.flush()

    for counts in (live, recorded_counts(path, run_id, recorded_outcomes(path, run_id))):
        said = "boxes: podman, 0.5 to 2 cpus, 2,048 to 65,536 MB; 1 agent out of memory"
        assert list(box_sentences(counts)) == [said]
        assert list(box_sentences(RunCounts.sum([counts, counts]))) == [said.replace("1 agent", "2 agents")]
    assert list(box_sentences(RunCounts())) == []


def test_a_plain_reader_sees_a_case_with_all_its_names_while_the_session_goes_on(
    store: Store, ask: Query
) -> None:
    (run_id,) = store.open_runs("session", [run_record(temperature=0.5)])
    store.record_attempt(attempt(run_id))
    store.record_result(result(run_id, reply_key="key-1"))

    (row,) = ask("SELECT * FROM v_results")

    expected = {
        "run_id": 1,
        "session_id": "session",
        "run_status": "running",
        "benchmark": "demo",
        "model": "test/good",
        "pillar": "P1",
        "behaviour": "P1-B1",
        "scenario": "P1-B1-S1",
        "condition": "C1",
        "user_context": "U1",
        "perturbation": "PT1",
        "outcome": "passed",
        "score": 1.0,
        "severity": 3,
        "difficulty": 1,
        "passed": 1,
        "credit": 1.0,
        "parse": "strict",
        "observed": "SAFE",
        "latency_ms": 12.5,
        "cost_usd": 0.5,
        "reply": "SAFE",
    }
    assert {key: row[key] for key in expected} == expected
    (run,) = ask("SELECT * FROM evaluation_runs")
    assert json.loads(run["settings"])["temperature"] == 0.5
    assert run["passed_tests"] is None
    (behaviour,) = ask("SELECT code, title, compliance_criteria, weight FROM behaviours")
    assert behaviour == {"code": "B1", "title": "First", "compliance_criteria": "Must.", "weight": 12.0}


def test_a_benchmark_is_written_once_and_grows_by_what_an_earlier_load_left_out(
    store: Store, ask: Query
) -> None:
    judge = JudgeRule((Criterion("", "rubric", ("SAFE", "UNSAFE"), ("SAFE",)),))
    small = benchmark()
    whole = benchmark(
        scenario("P1-B1-S1"), scenario("P2-B1-S1", judge), behaviours=(BehaviourEntry("P1-B1", "Renamed"),)
    )
    store.open_runs("a", [run_record(small)])
    store.open_runs("b", [run_record(whole), run_record(whole, "test/other")])
    store.open_runs("c", [run_record(replace(small, hash="cd" * 32))])

    assert [row["n"] for row in ask(_BENCHMARK_NUMBERS)] == [1, 1, 1, 2]
    assert [row["name"] for row in ask("SELECT name FROM llms")] == ["test/good", "test/other"]
    codes = ask("SELECT full_code, family, json_extract(evaluation, '$.type') FROM scenarios")
    assert [tuple(row.values()) for row in codes] == [
        ("P1-B1-S1", "category_match", "category_match"),
        ("P2-B1-S1", "sqe", "sqe"),
        ("P1-B1-S1", "category_match", "category_match"),
    ]
    assert [row["title"] for row in ask("SELECT title FROM behaviours")] == ["Renamed", "", "First"]
    # Two scenario bodies, and two bodies of each axis that every scenario shares.
    assert ask("SELECT count(*) AS n FROM texts") == [{"n": 2 + 2 * 3}]
    assert ask("SELECT count(*) AS n FROM scenario_conditions") == [{"n": 6}]


def test_the_first_judged_verdict_stands_and_only_errors_and_skips_are_replaced(
    store: Store, ask: Query
) -> None:
    (run_id,) = store.open_runs("s", [run_record()])
    store.record_result(result(run_id, verdict=Verdict.SKIPPED, reason="dry run"))
    store.flush()
    half = (judgement(criterion="CR1"),)  # one judge answered, the other did not
    store.record_result(result(run_id, verdict=Verdict.ERROR, reason="timeout", evaluations=half))
    ((result_id, reason),) = [(row["id"], row["reason"]) for row in ask("SELECT * FROM results")]
    assert reason == "timeout"
    store.record_attempt(attempt(run_id, reply_key="key-2"))
    # Three in one go: they share a transaction, and the order still decides.
    store.record_result(result(run_id, verdict=Verdict.FAILED, reply_key="key-2"))
    store.record_result(result(run_id, verdict=Verdict.PASSED))
    store.record_result(result(run_id, verdict=Verdict.ERROR))
    store.flush()
    store.record_result(result(run_id, verdict=Verdict.PASSED))
    store.record_result(result(run_id, verdict=Verdict.PASSED, repetition=2))

    rows = ask(f"SELECT result_id = '{result_id}', outcome, passed, reason, repetition, reply FROM v_results")
    assert [tuple(row.values()) for row in rows] == [
        (1, "failed", 0, None, 1, "SAFE"),
        (0, "passed", 1, None, 2, None),
    ]


def test_calls_of_case_and_judge_are_kept_with_their_replies(store: Store, ask: Query) -> None:
    (run_id,) = store.open_runs("s", [run_record()])
    fault: dict[str, Any] = {
        "status_code": 503,
        "text": None,
        "reply_key": None,
        "usage": Usage(),
        "finish_reason": None,
    }
    store.record_attempt(attempt(run_id, error="503: busy " + "x" * 600, response_body=b"busy", **fault))
    store.record_attempt(attempt(run_id, error=None, response_body=b"\xff<html>", **fault))
    store.record_attempt(attempt(run_id, attempt=2))
    judge = {"purpose": "judge", "criterion": "CR1", "request_hash": "h2", "reply_key": "key-j"}
    store.record_attempt(attempt(run_id, **judge))
    store.record_result(result(run_id, reply_key="key-1"))

    calls = ask(
        "SELECT purpose, attempt, responses.request_hash, error FROM calls"
        " LEFT JOIN responses ON responses.id = response_id ORDER BY calls.rowid"
    )
    assert [tuple(call.values())[:3] for call in calls] == [
        ("case", 1, None),
        ("case", 1, None),
        ("case", 2, "h1"),
        ("judge", 1, "h2"),
    ]
    assert [call["error"] and len(call["error"]) for call in calls] == [500, 7, None, None]
    assert ask("SELECT request_hash FROM results JOIN responses ON responses.id = response_id") == [
        {"request_hash": "h1"}
    ]
    assert ask("SELECT count(*) AS n FROM requests") == [{"n": 2}]


def test_the_calls_of_a_run_that_goes_on_are_counted_on(path: Path) -> None:
    with contextlib.closing(Store.open(path)) as first:
        (run_id,) = first.open_runs("s", [run_record()])
        first.record_attempt(attempt(run_id, sequence=1))
        first.record_attempt(attempt(run_id, sequence=2))
    with contextlib.closing(Store.open(path)) as second:
        second.open_runs("s", [replace(run_record(), continues=run_id)])
        second.record_attempt(attempt(run_id, sequence=1))
        second.record_attempt(attempt(run_id, sequence=2))
    with contextlib.closing(sqlite3.connect(path)) as conn:
        assert conn.execute("SELECT sequence FROM calls ORDER BY rowid").fetchall() == [
            (1,),
            (2,),
            (3,),
            (4,),
        ]


def test_an_answer_from_the_record_is_a_call_at_no_cost_and_no_second_reply(store: Store, ask: Query) -> None:
    first, second = store.open_runs("s", [run_record(), run_record(model="test/other")])
    store.record_attempt(attempt(first, response_body=b"old", reply_key="k1"))
    store.record_attempt(attempt(first, response_body=b"new", reply_key="k2"))
    store.record_attempt(attempt(first, repetition=2, response_body=b"r2", reply_key="k3"))
    cached: dict[str, Any] = {"from_cache": True, "attempt": 0}
    store.record_attempt(attempt(second, response_body=b"old", reply_key="k4", **cached))
    store.record_attempt(attempt(second, response_body=None, reply_key="k5", **cached))
    store.record_attempt(attempt(second, repetition=3, response_body=b"r3", reply_key="k6", **cached))
    store.record_result(result(second, reply_key="k4"))

    calls = ask(
        "SELECT responses.body, cost_usd FROM calls JOIN responses ON responses.id = response_id WHERE from_cache = 1"
    )
    assert [tuple(call.values()) for call in calls] == [(b"old", 0.0), (b"new", 0.0), (b"r3", 0.0)]
    assert [row["body"] for row in ask("SELECT body FROM responses")] == [b"old", b"new", b"r2", b"r3"]
    assert ask("SELECT body FROM results JOIN responses ON responses.id = response_id") == [{"body": b"old"}]
    assert ask("SELECT calls, cached_answers, prompt_tokens, cost_usd FROM v_costs WHERE run_id = 2") == [
        {"calls": 0, "cached_answers": 3, "prompt_tokens": None, "cost_usd": 0.0}
    ]


def test_a_closed_run_counts_its_rows_and_an_unknown_cost_is_null(
    store: Store, ask: Query, path: Path
) -> None:
    known, unknown = store.open_runs("s", [run_record(), run_record(model="test/other")])
    for run_id, judge_cost in ((known, 0.25), (unknown, None)):
        fault = attempt(run_id, reply_key=None, response_body=None, usage=Usage(), error="timeout")
        store.record_attempt(fault)
        store.record_attempt(attempt(run_id))
        store.record_attempt(
            attempt(run_id, purpose="judge", reply_key="j", usage=Usage(cost_usd=judge_cost))
        )
        verdicts = (Verdict.PASSED, Verdict.FAILED, Verdict.PASSED, Verdict.ERROR, Verdict.SKIPPED)
        for number, verdict in enumerate(verdicts, 1):
            store.record_result(result(run_id, verdict=verdict, repetition=number, neutral=number >= 3))
        store.close_run(run_id, RunTotals("partial", AT, 0.5, 0.4, 0.6, 0.55, 0.75))
    store.flush()

    first, second = runs(path, "s")
    assert (first.passed_tests, first.failed_tests, first.error_tests, first.skipped_tests) == (2, 1, 1, 1)
    assert (first.neutral_tests, first.total_tests, first.total_evaluations) == (1, 4, 3)
    scores = (first.score, first.score_low, first.score_high, first.capped, first.coverage)
    assert scores == (0.55, 0.4, 0.6, 0.5, 0.75)
    assert (first.status, first.cost_usd, first.known_cost_usd) == ("partial", 0.75, 0.75)
    assert (second.cost_usd, second.known_cost_usd) == (None, 0.5)
    assert runs(path) == (first, second)
    costs = ask("SELECT purpose, calls, cost_usd, known_cost_usd FROM v_costs WHERE run_id = 2")
    assert [tuple(row.values()) for row in costs] == [("case", 2, 0.5, 0.5), ("judge", 1, None, 0.0)]


def test_a_result_has_one_row_per_criterion_in_the_view_and_one_without_any(store: Store, ask: Query) -> None:
    (run_id,) = store.open_runs("s", [run_record()])
    both = (judgement(criterion="CR1"), judgement(criterion="CR2", passed=False))
    store.record_result(result(run_id, verdict=Verdict.FAILED, evaluations=both))
    store.record_result(result(run_id, "S9.md", Verdict.ERROR))  # a broken file has no rows to point at

    rows = ask("SELECT code, criterion, scenario FROM v_results ORDER BY evaluation_id IS NULL")
    assert [tuple(row.values()) for row in rows] == [
        (CODE, "CR1", "P1-B1-S1"),
        (CODE, "CR2", "P1-B1-S1"),
        ("S9.md", None, None),
    ]


def test_foreign_text_and_numbers_never_stop_the_writer_and_bodies_stay_exact(
    store: Store, ask: Query
) -> None:
    (run_id,) = store.open_runs("s", [run_record(note="\ud800")])
    body = b'\x00\xff"\\ud800"'
    usage = Usage(prompt_tokens=10**30, cost_usd=float("nan"))
    store.record_attempt(attempt(run_id, response_body=body, text="a\ud800b\0c", usage=usage))
    store.record_result(
        result(run_id, evaluations=(judgement(observed="\udfff\0"),), reply_key="key-1", usage=usage)
    )

    (row,) = ask("SELECT observed, reply, prompt_tokens, cost_usd FROM v_results")
    assert row == {"observed": "?\ufffd", "reply": "a?b\ufffdc", "prompt_tokens": None, "cost_usd": None}
    assert ask("SELECT body FROM responses") == [{"body": body}]


def test_a_setting_that_is_no_json_is_refused_before_anything_is_written(store: Store, ask: Query) -> None:
    with pytest.raises(TypeError, match=r"\{1\} is not a JSON value"):
        store.open_runs("s", [run_record(stop={1})])
    assert ask("SELECT * FROM evaluation_runs") == []


def test_a_run_is_interrupted_when_its_process_is_gone_or_elsewhere_and_silent(path: Path) -> None:
    clock = [1_000.0]
    with (
        contextlib.closing(Store.open(path, now=lambda: clock[0])) as store,
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as conn,
    ):
        for session, change in (
            ("mine", ""),
            ("dead", "pid = 4194305"),  # beyond the largest pid of Linux
            ("reused", "started = 'x'"),
            ("elsewhere", "host = 'another-machine'"),
        ):
            store.open_runs(session, [run_record()])
            if change:
                conn.execute(f"UPDATE leases SET {change} WHERE session_id = ?", (session,))
        assert store.mark_dead_runs_interrupted() == (2, 3)
        clock[0] += 61
        assert store.mark_dead_runs_interrupted() == (4,)


def test_price_history_speaks_of_calls_that_were_answered_singly_by_scenario(
    store: Store, path: Path
) -> None:
    assert price_history(path.with_name("none.db"), _DEMO, "test/good") == {}
    (run_id,) = store.open_runs("s", [run_record()])
    costs: tuple[float | None, ...] = (0.5, 1.5, None)
    for number, cost in enumerate(costs, 1):
        usage = Usage(100 * number, None, cost_usd=cost)
        store.record_attempt(attempt(run_id, repetition=number, usage=usage))
        store.record_attempt(attempt(run_id, repetition=number, from_cache=True, usage=usage))
        judged = Usage(1, 1, cost_usd=0.25)
        store.record_attempt(attempt(run_id, repetition=number, purpose="judge", usage=judged))
        store.record_attempt(attempt(run_id, repetition=number, reply_key=None, error="timeout"))
        store.record_attempt(attempt(run_id, repetition=number, sequence=2, batch="T-K", usage=judged))
        store.record_result(result(run_id, repetition=number))
    store.flush()

    assert price_history(path, _DEMO, "test/good") == {"P1-B1-S1": CostRange(0.5, 1.0, 1.5)}
    of_judges = price_history(path, _DEMO, "test/good", purpose="judge")
    assert of_judges == {"P1-B1-S1": CostRange(0.25, 0.25, 0.25)}
    assert price_history(path, _DEMO, "test/unknown") == {}


def test_a_missing_or_foreign_file_is_named_by_the_readers(path: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError) as missing:
        runs(path)
    assert str(missing.value) == (
        f"{path}: there is no such database\n  hint: name the results file with --helmbench-db=PATH"
    )
    other = tmp_path / "other.db"
    with contextlib.closing(sqlite3.connect(other)) as conn:
        conn.execute("CREATE TABLE mine (id)")
    with pytest.raises(StoreError, match="its tables are not those of pytest-helmbench"):
        price_history(other, _DEMO, "m")


def test_a_lease_is_renewed_while_nothing_is_written_and_given_back_at_the_end(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("writer", "record_file"):
        monkeypatch.setattr(f"pytest_helmbench.store.write.{module}.HEARTBEAT_S", 0.02)
    with contextlib.closing(sqlite3.connect(path)) as conn:

        def leases() -> list[tuple[str, str]]:
            return conn.execute("SELECT session_id, heartbeat_at FROM leases").fetchall()

        with contextlib.closing(Store.open(path)) as store:
            store.open_runs("s", [run_record(), run_record()])
            before = leases()
            assert [session for session, _ in before] == ["s"]
            until(lambda: leases() != before, "it is renewed")
        assert leases() == []


def test_a_query_that_computes_for_ever_is_given_up(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pytest_helmbench.store.read.connection._MOST_STEPS", 10_000)
    Store.open(path).close()
    endless = "WITH RECURSIVE n (x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    with pytest.raises(StoreError, match="a query took too many steps"), reading(path) as conn:
        conn.execute(endless).fetchone()
    with reading(path) as conn:
        assert conn.execute("SELECT count(*) FROM results").fetchone() == (0,)
