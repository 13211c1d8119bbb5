"""Runs of Bench Packs as the BenchLocal app stores them: a folder per run with `summary.json` and `events.jsonl`.

A run of the app is one pack on several models. Ours is one pack on one model, so the runs of a pack in one session
are one run of the app, and the repetitions of a scenario are one result by majority.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BENCH_PACK, PackScore
from pytest_helmbench.benchmarks.bench_packs.benchlocal.entries import (
    MARK,
    error_result,
    json_time,
    majority_result,
    stored_score,
    timed_result,
    without_text,
)
from pytest_helmbench.benchmarks.bench_packs.stored import (
    BenchPackEvent,
    BenchPackScenario,
    bench_pack_events,
    bench_pack_faults,
    bench_pack_results,
    bench_pack_scenarios,
    pack_score,
    plain_rows,
)
from pytest_helmbench.store.fault import StoreError
from pytest_helmbench.store.result_queries import ResultRow, results
from pytest_helmbench.store.run_queries import RunDetail, run_detail, run_summary

__all__ = ["DesktopRun", "desktop_run", "write_benchlocal"]

_UNFINISHED = ("interrupted", "running")
_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 100
_HEX_DIGITS = 8

_Json = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class DesktopRun:
    """A run of the app.

    Args:
        pack: Name of the folder that all runs of the pack stand in.
        id: Name of its own folder.
        summary: What `summary.json` says.
    """

    pack: str
    id: str
    summary: _Json


@dataclass(frozen=True, slots=True)
class _ModelRun:
    """One of our runs: a model's results by scenario, and what was told on the way to them."""

    detail: RunDetail
    results: Mapping[str, _Json]
    events: Sequence[BenchPackEvent]
    score: PackScore | None
    errors: int

    @property
    def model(self) -> str:
        return self.detail.summary.model


def write_benchlocal(folder: Path, db: Path, run_ids: Iterable[int], note: Callable[[str], None]) -> None:
    """Write the runs of a session that are of Bench Packs; all texts are in them. A run written before is replaced.

    Args:
        folder: As the app's `run_storage_dir`; made when missing.
        db: Results file.
        run_ids: Of the session.
        note: Says something in the summary.
    """
    written: set[int] = set()
    try:
        for run_id in run_ids:
            if run_id in written:
                continue
            found = desktop_run(db, run_id, folder=folder, with_text=True)
            if found is not None:
                written.update(found.summary[MARK]["runs"].values())
                note(f"BenchLocal run in {_write(folder, found)}")
    except StoreError as error:
        note(f"no BenchLocal run: {error}")
    except OSError as error:
        note(f"{folder}: the BenchLocal run cannot be written: {error.strerror}")


def desktop_run(db: Path, run_id: int, *, folder: Path = Path(), with_text: bool) -> DesktopRun | None:
    """Return the run of the app that one of our runs belongs to; None for a run of no Bench Pack.

    Args:
        db: Results file.
        run_id: `evaluation_runs.id`.
        folder: Where the app keeps its runs.
        with_text: Also what may quote replies: summaries, notes, logs, outputs, progress.

    Raises:
        StoreError: The file is missing or no results file.
    """
    detail = run_detail(db, run_id)
    if detail is None or detail.kind != BENCH_PACK:
        return None
    scenarios = bench_pack_scenarios(db, run_id)
    runs = [_model_run(db, found, scenarios) for found in _companions(db, detail)]
    pack = _folder_name(detail.summary.benchmark)
    name = f"{pack}-{_file_time(_started(runs))}-{_hex(detail)}"
    summary = _summary(runs, scenarios, name, with_text=with_text)
    return DesktopRun(pack, name, {"runId": name, "runDir": str(folder / pack / name), **summary})


def _companions(db: Path, detail: RunDetail) -> list[RunDetail]:
    """Return the runs of the same pack in the same session, itself too."""
    found = (run_detail(db, run.id) for run in run_summary(db, detail.summary.session_id))
    return [
        run
        for run in found
        if run is not None and run.kind == BENCH_PACK and run.benchmark_hash == detail.benchmark_hash
    ]


def _model_run(db: Path, detail: RunDetail, scenarios: Sequence[BenchPackScenario]) -> _ModelRun:
    run_id = detail.summary.id
    rows: dict[str, list[ResultRow]] = {}
    for row in results(db, run_id):
        rows.setdefault(row.code, []).append(row)
    stated = {(code, repetition): said for code, repetition, said in bench_pack_results(db, run_id)}
    said = plain_rows(db, run_id)
    faults = bench_pack_faults(db, run_id)
    events = bench_pack_events(db, run_id)
    messages = {
        (event.code, event.repetition): str(event.payload.get("message"))
        for event in events
        if event.type == "scenario_error"
    }
    found: dict[str, _Json] = {}
    errors = 0
    for code in (scenario.code for scenario in scenarios if scenario.code in rows):
        judged = [
            timed_result(stated[row.code, row.repetition], row, said.get(row.id))
            for row in rows[code]
            if _is_judged(row, stated)
        ]
        failed = [row for row in rows[code] if row.outcome == "error"]
        errors += len(failed)
        if judged:
            found[code] = majority_result(judged, len(rows[code]))
        elif failed:
            key = (code, failed[0].repetition)
            found[code] = error_result(failed[0], faults.get(key), messages.get(key, ""))
    return _ModelRun(detail, found, events, pack_score(db, run_id), errors)


def _is_judged(row: ResultRow, stated: Mapping[tuple[str, int], _Json]) -> bool:
    return row.outcome in ("passed", "failed") and (row.code, row.repetition) in stated


def _summary(
    runs: Sequence[_ModelRun], scenarios: Sequence[BenchPackScenario], name: str, *, with_text: bool
) -> dict[str, Any]:
    first = runs[0].detail
    repeat = first.settings.get("repeat")
    unfinished = any(run.detail.summary.status in _UNFINISHED for run in runs)
    wrong = [*(["The session was interrupted."] if unfinished else []), *_run_errors(runs)]
    ended = max(run.detail.summary.completed_at or _started(runs) for run in runs)
    found = {
        run.model: {code: said if with_text else without_text(said) for code, said in run.results.items()}
        for run in runs
    }
    scores = {
        run.model: stored_score(run.score, with_text=with_text) for run in runs if run.score is not None
    }
    total = _total(runs, scenarios)
    summary = {
        "packType": "table",
        "packVersion": first.summary.version,
        "benchPackId": first.summary.benchmark,
        "benchPackName": _pack_name(runs),
        "executionMode": "full_parallel",
        "runsPerTest": repeat if isinstance(repeat, int) else 1,
        "startedAt": json_time(_started(runs)),
        "completedAt": json_time(ended),
        "modelCount": len(runs),
        "scenarioCount": total,
        "cancelled": unfinished,
        **({"error": wrong[0]} if wrong else {}),
    }
    begun = {"type": "run_started", "runId": name, "models": _models(runs), "totalScenarios": total}
    events = [
        *_preparations(runs),
        begun,
        *_scenario_events(runs, scenarios, found, with_text=with_text),
        *({"type": "run_error", "message": message} for message in wrong),
        *([] if wrong else [{"type": "run_finished", "scores": scores}]),
    ]
    results_by_model = {model: list(said.values()) for model, said in found.items()}
    return {
        **summary,
        "events": events,
        "resultsByModel": results_by_model,
        "scores": scores,
        MARK: {
            "version": first.plugin_version,
            "session": first.summary.session_id,
            "runs": {run.model: run.detail.summary.id for run in runs},
            "notJudged": {run.model: run.errors for run in runs},
        },
    }


def _scenario_events(
    runs: Sequence[_ModelRun],
    scenarios: Sequence[BenchPackScenario],
    found: Mapping[str, Mapping[str, _Json]],
    *,
    with_text: bool,
) -> list[_Json]:
    """Return the events scenario by scenario, as the app writes them that runs one after the other."""
    events: list[_Json] = []
    total = _total(runs, scenarios)
    for number, scenario in enumerate(scenarios, 1):
        code = scenario.code
        if not any(code in results for results in found.values()):
            continue
        started = {"scenarioId": code, "title": scenario.title, "index": number, "total": total}
        events.append({"type": "scenario_started", **started})
        for run in runs:
            progress = (
                event.payload for event in run.events if event.code == code and event.type == "model_progress"
            )
            events += [
                {
                    "type": "model_progress",
                    "modelId": run.model,
                    "scenarioId": code,
                    "message": str(told.get("message", "")) if with_text else "",
                }
                for told in progress
            ]
        events += [
            {"type": "scenario_result", "modelId": model, "scenarioId": code, "result": results[code]}
            for model, results in found.items()
            if code in results
        ]
        events.append({"type": "scenario_finished", "scenarioId": code})
    return events


def _preparations(runs: Sequence[_ModelRun]) -> list[_Json]:
    """Return what was told of verifiers, once: every run has it."""
    found: list[_Json] = []
    for run in runs:
        told = [event.payload for event in run.events if event.type == "verifier_preparing"]
        found += [payload for payload in told if payload not in found]
    return found


def _pack_name(runs: Sequence[_ModelRun]) -> str:
    """Return what the pack calls itself for people; its id where nobody has put that on record."""
    told = (
        event.payload.get("benchPackName")
        for run in runs
        for event in run.events
        if event.type == "run_started"
    )
    return next((str(name) for name in told if name), runs[0].detail.summary.benchmark)


def _run_errors(runs: Sequence[_ModelRun]) -> list[str]:
    return [
        str(event.payload.get("message")) for run in runs for event in run.events if event.type == "run_error"
    ]


def _models(runs: Sequence[_ModelRun]) -> list[_Json]:
    return [{"id": run.model, "label": run.model} for run in runs]


def _total(runs: Sequence[_ModelRun], scenarios: Sequence[BenchPackScenario]) -> int:
    """Return how many scenarios the pack lists, as the runs were told; else as the record has them."""
    stated = [
        event.payload.get("total") for run in runs for event in run.events if event.type == "scenario_started"
    ]
    return max((number for number in stated if isinstance(number, int)), default=len(scenarios))


def _write(folder: Path, run: DesktopRun) -> Path:
    """Write a run; its summary comes last, since the app lists only folders that have one."""
    place = folder / run.pack / run.id
    place.mkdir(parents=True, exist_ok=True)
    events = "".join(f"{json.dumps(event)}\n" for event in run.summary["events"])
    _replace(place / "events.jsonl", events)
    _replace(place / "summary.json", json.dumps(run.summary, indent=2))
    return place


def _replace(path: Path, text: str) -> None:
    """Put a file in place at once: nobody sees half of it."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="\n") as stream:
            stream.write(text)
        Path(name).replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            Path(name).unlink()
        raise


def _folder_name(pack: str) -> str:
    """Return a pack's id as the name of a folder; one that cannot be is told apart by its hash."""
    safe = _UNSAFE.sub("_", pack).strip(".")[:_LONGEST_NAME]
    if safe == pack:
        return safe
    return f"{safe or 'pack'}-{hashlib.sha256(pack.encode('utf-8', 'replace')).hexdigest()[:_HEX_DIGITS]}"


def _hex(detail: RunDetail) -> str:
    """Return what tells runs of the same moment apart: the same for all runs of a pack in a session."""
    decisive = f"{detail.summary.session_id}\n{detail.benchmark_hash}"
    return hashlib.sha256(decisive.encode()).hexdigest()[:_HEX_DIGITS]


def _started(runs: Sequence[_ModelRun]) -> str:
    return min(run.detail.summary.started_at for run in runs)


def _file_time(iso: str) -> str:
    return json_time(iso).replace(":", "-")
