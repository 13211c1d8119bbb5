"""Bench Packs on record, written without running one: outlines, what packs say, results and runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BenchPackOutline,
    PackStatus,
    ScenarioMeta,
    ScenarioResult,
)
from pytest_helmbench.core.outcome import (
    Evaluation,
    Event,
    Outcome,
    ResultRecord,
    Verdict,
)
from pytest_helmbench.store.write.run_rows import RunRecord, RunTotals
from pytest_helmbench.store.write.writer import Store

__all__ = [
    "AT",
    "END",
    "bench_pack_store",
    "error",
    "judged",
    "outline",
    "result",
    "run_record",
    "said",
    "scenario",
]

AT = "2026-07-04T12:00:00.000+00:00"
END = "2026-07-04T12:00:02.500+00:00"


def scenario(identity: str, **changes: Any) -> ScenarioMeta:
    """Return a scenario of the category `Arithmetic` with one detail card."""
    about: dict[str, Any] = {
        "title": f"Title of {identity}",
        "category": "Arithmetic",
        "prompt_text": f"Add up for {identity}.",
        "tags": ("short", "sums"),
        "cards": (("Success case", "The sum is right."),),
    }
    return ScenarioMeta(identity, **{**about, **changes})


def outline(*scenarios: ScenarioMeta, **changes: Any) -> BenchPackOutline:
    """Return the Bench Pack `sums-3` with three scenarios, the last of a category of its own."""
    found = scenarios or (scenario("B"), scenario("A"), scenario("C", category="Logic"))
    about: dict[str, Any] = {
        "root": Path("sums"),
        "name": "sums-3",
        "version": "1.2.0",
        "description": "",
        "hash": "ab" * 32,
    }
    return BenchPackOutline(**{**about, **changes}, scenarios={item.id: item for item in found})


def run_record(pack: BenchPackOutline | None = None, model: str = "test/good", **settings: Any) -> RunRecord:
    """Return a run of a pack as it starts."""
    codes = tuple((pack or outline()).scenarios)
    return RunRecord(
        pack or outline(), model, "test", None, "whole", len(codes), None, settings, "0.1.0", AT, codes
    )


def said(identity: str, status: str = "pass", **stated: Any) -> ScenarioResult:
    """Return what a pack says of a scenario, as the host hands it on."""
    whole = {"scenarioId": identity, "status": status, "summary": "", "rawLog": "", **stated}
    return ScenarioResult(
        scenario=identity,
        status=PackStatus(status),
        score=whole.get("score"),
        points=whole.get("points"),
        summary=whole["summary"],
        note=whole.get("note", ""),
        raw_log=whole["rawLog"],
        stated=whole,
    )


def judged(hosted: ScenarioResult, *progress: str) -> Outcome:
    """Return the verdict on what a pack has said, with its events."""
    passed = hosted.status is PackStatus.PASS
    events = [
        _event("scenario_started", scenarioId=hosted.scenario, title="told", index=1, total=3),
        *(_event("model_progress", modelId="forged", message=message) for message in progress),
        _event("scenario_result", scenarioId=hosted.scenario, result=hosted.stated),
        _event("scenario_finished", scenarioId=hosted.scenario),
    ]
    return Outcome(
        Verdict.PASSED if passed else Verdict.FAILED,
        None if passed else str(hosted.status),
        evaluations=(
            Evaluation(
                "", "bench_pack", "cd" * 8, passed, float(passed), None, None, "pass", str(hosted.status)
            ),
        ),
        score=float(passed),
        started_at=AT,
        completed_at=END,
        events=tuple(events),
        statement=hosted,
    )


def error(reason: str, message: str) -> Outcome:
    """Return an error with a word of what happened."""
    events = (_event("scenario_error", message=message),)
    return Outcome(Verdict.ERROR, reason, message, started_at=AT, completed_at=END, events=events)


def result(run_id: int, code: str, outcome: Outcome, repetition: int = 1) -> ResultRecord:
    """Return a result of a Bench Pack."""
    node = f"sums/benchlocal.pack.json::{code}"
    return ResultRecord(run_id, code, node, "bench_pack", repetition, 0, 0, False, outcome)


@contextmanager
def bench_pack_store(
    path: Path, runs: Iterable[RunRecord], status: str = "complete"
) -> Iterator[tuple[Store, list[int]]]:
    """Open runs in a results file; they are closed, and the file with them, at the end."""
    store = Store.open(path)
    try:
        run_ids = list(store.open_runs("a-session", tuple(runs)))
        yield store, run_ids
        for run_id in run_ids:
            store.close_run(run_id, RunTotals(status, END))
        store.flush()
        assert store.fault is None
    finally:
        store.close()


def _event(kind: str, **payload: Any) -> Event:
    whole: Mapping[str, Any] = {"type": kind, **payload}
    return Event(kind, whole, AT)
