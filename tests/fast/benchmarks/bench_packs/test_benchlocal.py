"""Runs as the BenchLocal app stores them: its fields, its way with errors, and nothing half-written."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from bench_pack_records import (
    AT,
    bench_pack_store,
    error,
    failed_call,
    judged,
    outline,
    result,
    run_record,
    said,
)

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore
from pytest_helmbench.benchmarks.bench_packs.benchlocal.app_run import desktop_run
from pytest_helmbench.benchmarks.bench_packs.benchlocal.run_folders import write_benchlocal
from pytest_helmbench.cli.main import main
from pytest_helmbench.core.outcome import Event, Outcome, Verdict

_SCORE = PackScore(75, ({"id": "a", "label": "A", "score": 75, "own": "QUOTE"},), "QUOTE: three of four")
_QUOTING: dict[str, Any] = {
    "score": 40,
    "points": 2,
    "summary": "QUOTE",
    "note": "QUOTE",
    "rawLog": "QUOTE",
    "output": {"finalAnswer": "QUOTE"},
    "verifier": {"status": "QUOTE", "summary": "QUOTE"},
    "artifacts": [{"kind": "QUOTE", "label": "QUOTE"}],
    "timings": {"durationMs": 7, "own": "QUOTE"},
    "ownKey": "QUOTE",
    "helmbench": {"outcome": "error", "own": "QUOTE"},
}


@pytest.fixture
def db(tmp_path: Path) -> Path:
    return tmp_path / "helmbench.db"


def _written(db: Path, folder: Path, run_ids: Sequence[int]) -> tuple[Any, list[Any], list[str]]:
    """Return the summary, the events and the notes of the only run that was written."""
    notes: list[str] = []
    write_benchlocal(folder, db, run_ids, notes.append)
    (place,) = (path.parent for path in folder.glob("*/*/summary.json"))
    assert sorted(path.name for path in place.iterdir()) == ["events.jsonl", "summary.json"]
    lines = (place / "events.jsonl").read_text("ascii").splitlines()
    return (
        json.loads((place / "summary.json").read_text("ascii")),
        [json.loads(line) for line in lines],
        notes,
    )


def test_the_runs_of_a_pack_in_a_session_are_one_run_of_the_app(db: Path, tmp_path: Path) -> None:
    preparing = {"type": "verifier_preparing", "verifierId": "v", "phase": "building_image", "message": "…"}
    records = [run_record(model=name) for name in ("test/good", "test/other")]
    with bench_pack_store(db, records) as (store, run_ids):
        for run_id in run_ids:
            store.record_event(run_id, Event("run_started", {"benchPackName": "Three sums"}, AT))
            store.record_event(run_id, Event("verifier_preparing", preparing, AT))
            store.record_result(result(run_id, "A", judged(said("A", score=1), "asking")))
            store.record_result(result(run_id, "B", judged(said("B", "fail", **_QUOTING))))
            store.record_statement(run_id, _SCORE)
        store.record_result(result(run_ids[0], "C", Outcome(Verdict.SKIPPED, "budget")))

    folder = tmp_path / "runs"
    summary, events, notes = _written(db, folder, run_ids)

    run_id = summary["runId"]
    assert re.fullmatch(r"sums-3-2026-07-04T12-00-00\.000Z-[0-9a-f]{8}", run_id)
    assert notes == [f"BenchLocal run in {folder / 'sums-3' / run_id}"]
    known = {
        name: value for name, value in summary.items() if name not in ("events", "resultsByModel", "scores")
    }
    assert known == {
        "runId": run_id,
        "runDir": str(folder / "sums-3" / run_id),
        "packType": "table",
        "packVersion": "1.2.0",
        "benchPackId": "sums-3",
        "benchPackName": "Three sums",
        "executionMode": "full_parallel",
        "runsPerTest": 1,
        "startedAt": "2026-07-04T12:00:00.000Z",
        "completedAt": "2026-07-04T12:00:02.500Z",
        "modelCount": 2,
        "scenarioCount": 3,
        "cancelled": False,
        "helmbench": {
            "version": "0.1.0",
            "session": "a-session",
            "runs": {"test/good": 1, "test/other": 2},
            "notJudged": {"test/good": 0, "test/other": 0},
        },
    }
    stored = summary["resultsByModel"]["test/other"]
    assert [found["scenarioId"] for found in stored] == ["B", "A"]
    given = {name: value for name, value in _QUOTING.items() if name != "helmbench"}
    times = {"startedAt": "2026-07-04T12:00:00.000Z", "completedAt": "2026-07-04T12:00:02.500Z"}
    assert stored[0] == {
        **given,
        "scenarioId": "B",
        "status": "fail",
        "timings": {**times, "durationMs": 7, "own": "QUOTE"},
    }
    assert stored[1]["timings"] == {**times, "durationMs": 2500}
    score = {"totalScore": 75.0, "categories": list(_SCORE.categories), "summary": _SCORE.summary}
    assert summary["scores"] == {"test/good": score, "test/other": score}
    assert events == summary["events"]
    models = [{"id": name, "label": name} for name in ("test/good", "test/other")]
    assert events[:3] == [
        preparing,
        {"type": "run_started", "runId": run_id, "models": models, "totalScenarios": 3},
        {"type": "scenario_started", "scenarioId": "B", "title": "Title of B", "index": 1, "total": 3},
    ]
    assert [event["type"] for event in events[3:]] == [
        *("scenario_result", "scenario_result", "scenario_finished", "scenario_started"),
        *("model_progress", "model_progress", "scenario_result", "scenario_result", "scenario_finished"),
        "run_finished",
    ]
    assert events[7] == {
        "type": "model_progress",
        "modelId": "test/good",
        "scenarioId": "A",
        "message": "asking",
    }
    assert events[-1]["scores"] == summary["scores"]


def test_our_errors_are_errors_for_the_app_too(db: Path, tmp_path: Path) -> None:
    with bench_pack_store(db, [run_record()]) as (store, (run_id,)):
        store.record_attempt(failed_call(run_id, "A", 503))
        store.record_result(result(run_id, "A", error("server_error", "")))
        store.record_result(result(run_id, "B", error("crashed", "the pack has ended its process (exit 3)")))
        store.record_result(result(run_id, "C", judged(said("C"))))

    summary, events, _ = _written(db, tmp_path / "runs", [run_id])

    broken, refused, fine = summary["resultsByModel"]["test/good"]
    assert (fine["status"], "errorType" in fine) == ("pass", False)
    assert summary["helmbench"]["notJudged"] == {"test/good": 2}
    text = "the pack has ended its process (exit 3)"
    assert {**broken, "timings": None} == {
        "scenarioId": "B",
        "status": "fail",
        "errorType": "execution_error",
        "retryable": False,
        "score": 0,
        "summary": "Not judged, and no failure of the model: crashed.",
        "note": text,
        "rawLog": f"error={text}",
        "verifier": {
            "status": "fail",
            "summary": "The scenario ended without a verdict.",
            "details": {"error": text},
        },
        "timings": None,
        "helmbench": {"outcome": "error", "reason": "crashed"},
    }
    # Without the status in its details, the app would take `provider_error` off and count a failure.
    assert (refused["errorType"], refused["retryable"]) == ("provider_error", True)
    assert refused["verifier"]["details"] == {
        "error": "server_error: HTTP 503",
        "providerHttpStatus": 503,
        "providerResponseBlank": False,
    }
    assert [event["result"] for event in events if event["type"] == "scenario_result"] == [
        broken,
        refused,
        fine,
    ]


@pytest.mark.parametrize(
    ("statuses", "expected", "chosen"),
    [
        (("fail", "pass", "pass"), "pass", 3),
        (("fail", "pass", "partial"), "partial", 3),
        (("fail", "pass", None), "partial", 2),
        (("fail", None, None), "fail", 1),
    ],
)
def test_repetitions_become_one_result_by_majority_of_what_was_judged(
    db: Path, statuses: Sequence[str | None], expected: str, chosen: int
) -> None:
    with bench_pack_store(db, [run_record(repeat=3)]) as (store, (run_id,)):
        for number, status in enumerate(statuses, 1):
            texts = {"summary": f"no. {number}", "rawLog": f"log {number}", "score": number}
            outcome = error("timeout", "slow") if status is None else judged(said("A", status, **texts))
            store.record_result(result(run_id, "A", outcome, number))

    found = desktop_run(db, run_id, with_text=True)

    assert found is not None
    summary: Any = found.summary
    assert summary["runsPerTest"] == 3
    (one,) = summary["resultsByModel"]["test/good"]
    count = sum(status is not None for status in statuses)
    assert (one["status"], one["score"]) == (expected, chosen)
    assert one["helmbench"] == {"repetitions": 3, "judged": count}
    votes = ", ".join(f"{statuses.count(name)} {name}" for name in ("pass", "partial", "fail"))
    assert one["summary"] == f"Majority of {count} judged repetitions: {votes}. no. {chosen}"
    assert one["rawLog"].startswith("--- repetition 1 ---\nlog 1")


def test_a_partial_total_and_an_interrupted_session_are_called_so(db: Path, tmp_path: Path) -> None:
    with bench_pack_store(db, [run_record()], "interrupted") as (store, (run_id,)):
        store.record_result(result(run_id, "A", judged(said("A"))))
        store.record_event(run_id, Event("run_error", {"message": "no total"}, AT))
        store.record_statement(run_id, replace(_SCORE, partial=True))

    summary, events, _ = _written(db, tmp_path / "runs", [run_id])

    assert (summary["cancelled"], summary["error"]) == (True, "The session was interrupted.")
    assert summary["scores"]["test/good"]["summary"] == "Not over all scenarios. QUOTE: three of four"
    messages = ("The session was interrupted.", "no total")
    assert events[-2:] == [{"type": "run_error", "message": message} for message in messages]


@pytest.mark.parametrize("name", ["../../up", "..", "a/b:c", "ä", "n" * 300])
def test_a_pack_stays_in_its_folder_whatever_it_calls_itself(db: Path, tmp_path: Path, name: str) -> None:
    with bench_pack_store(db, [run_record(outline(name=name))]) as (store, (run_id,)):
        store.record_result(result(run_id, "A", judged(said("A"))))
    folder = tmp_path / "in" / "runs"
    summary, _, _ = _written(db, folder, [run_id])
    assert summary["benchPackId"] == name
    assert [path.name for path in tmp_path.iterdir() if not path.name.startswith(db.name)] == ["in"]
    (place,) = folder.iterdir()
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,120}", place.name)


def test_two_packs_of_a_session_are_two_runs_of_the_app(db: Path, tmp_path: Path) -> None:
    other = outline(name="other", hash="cd" * 32)
    with bench_pack_store(db, [run_record(), run_record(other)]) as (store, run_ids):
        for run_id in run_ids:
            store.record_result(result(run_id, "A", judged(said("A"))))
    notes: list[str] = []
    write_benchlocal(tmp_path / "runs", db, run_ids, notes.append)
    found = [json.loads(path.read_text()) for path in sorted((tmp_path / "runs").glob("*/*/summary.json"))]
    assert [(run["benchPackId"], run["helmbench"]["runs"]) for run in found] == [
        ("other", {"test/good": 2}),
        ("sums-3", {"test/good": 1}),
    ]
    assert len(notes) == 2


def test_writing_again_replaces_and_a_fault_leaves_what_was_there(db: Path, tmp_path: Path) -> None:
    with bench_pack_store(db, [run_record()]) as (store, (run_id,)):
        store.record_result(result(run_id, "A", judged(said("A"))))
    folder = tmp_path / "runs"
    first, _, _ = _written(db, folder, [run_id, run_id])
    assert _written(db, folder, [run_id])[0] == first

    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    notes: list[str] = []
    write_benchlocal(blocked, db, [run_id], notes.append)
    write_benchlocal(folder, tmp_path / "none.db", [run_id], notes.append)
    assert notes == [
        f"{blocked}: the BenchLocal run cannot be written: Not a directory",
        f"no BenchLocal run: {tmp_path / 'none.db'}: there is no such database"
        "\n  hint: name the results file with --helmbench-db=PATH",
    ]
    # What cannot take the place of a file leaves no trace beside it.
    place = next(folder.glob("*/*"))
    (place / "summary.json").unlink()
    (place / "summary.json").mkdir()
    write_benchlocal(folder, db, [run_id], notes.append)
    assert notes[-1] == f"{folder}: the BenchLocal run cannot be written: Is a directory"
    assert sorted(path.name for path in place.iterdir()) == ["events.jsonl", "summary.json"]


def test_the_command_writes_the_same_summary_without_what_may_quote_a_reply(
    db: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with bench_pack_store(db, [run_record()]) as (store, (run_id,)):
        store.record_result(result(run_id, "A", judged(said("A", "fail", **_QUOTING), "QUOTE")))
        store.record_result(result(run_id, "B", error("crashed", "QUOTE")))
        store.record_statement(run_id, _SCORE)
    written, _, _ = _written(db, tmp_path / "runs", [run_id])
    out = tmp_path / "out.json"

    command = ["export", str(run_id), "--format", "benchlocal", "--db", str(db)]
    assert main([*command, "--with-text", "-o", str(out)]) == 0
    full = json.loads(out.read_text())
    assert capsys.readouterr().err == f"2 results of run 1 in {out}\n"
    assert main(command) == 0
    text = capsys.readouterr().out

    assert {**full, "runDir": ""} == {**written, "runDir": ""}
    assert "QUOTE" not in text
    plain = json.loads(text)
    assert plain["resultsByModel"]["test/good"][1] == {
        "scenarioId": "A",
        "status": "fail",
        "score": 40,
        "points": 2,
        "summary": "",
        "rawLog": "",
        "timings": {
            "startedAt": "2026-07-04T12:00:00.000Z",
            "completedAt": "2026-07-04T12:00:02.500Z",
            "durationMs": 7,
        },
    }
    assert plain["resultsByModel"]["test/good"][0]["errorType"] == "execution_error"
    assert plain["scores"]["test/good"] == {
        "totalScore": 75.0,
        "categories": [{"id": "a", "label": "A", "score": 75}],
    }
    assert [event["type"] for event in plain["events"]] == [event["type"] for event in full["events"]]
