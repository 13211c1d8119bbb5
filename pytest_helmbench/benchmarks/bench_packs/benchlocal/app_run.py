"""A run of the BenchLocal app, made of ours: what its `summary.json` says, and what it is called.

A run of the app is one pack on several models. Ours is one pack on one model, so the runs of a pack in one session
are one run of the app, and the repetitions of a scenario are one result by majority.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BENCH_PACK
from pytest_helmbench.benchmarks.bench_packs.benchlocal.entries import (
    MARK,
    json_time,
    stored_score,
    without_text,
)
from pytest_helmbench.benchmarks.bench_packs.benchlocal.model_runs import ModelRun, model_run
from pytest_helmbench.benchmarks.bench_packs.stored import BenchPackScenario, bench_pack_scenarios
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.run_queries import RunDetail, run_detail, run_summary

__all__ = ["DesktopRun", "desktop_run"]

_UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
_LONGEST_NAME = 100
_HEX_DIGITS = 8


@dataclass(frozen=True, slots=True)
class DesktopRun:
    """A run of the app.

    Args:
        pack: Name of the folder that all runs of the pack stand in.
        id: Name of its own folder.
        runs: `evaluation_runs.id` of those of ours that it is made of.
        events: In the order of scenarios, as the app writes them that runs one after the other.
        summary: What `summary.json` says, the events too.
    """

    pack: str
    id: str
    runs: tuple[int, ...]
    events: Sequence[JsonObject]
    summary: JsonObject


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
    session = _Session(
        [model_run(db, found, scenarios) for found in _companions(db, detail)], scenarios, with_text
    )
    pack = _folder_name(detail.summary.benchmark)
    name = f"{pack}-{_file_time(session.started)}-{_hex(detail)}"
    events = session.events(name)
    summary: JsonObject = {
        "runId": name,
        "runDir": str(folder / pack / name),
        **session.head(),
        "events": [dict(event) for event in events],
        "resultsByModel": {model: list(said.values()) for model, said in session.results.items()},
        "scores": session.scores,
        MARK: session.mark(),
    }
    return DesktopRun(pack, name, tuple(run.detail.summary.id for run in session.runs), events, summary)


def _companions(db: Path, detail: RunDetail) -> list[RunDetail]:
    """Return the runs of the same pack in the same session, itself too."""
    found = (run_detail(db, run.id) for run in run_summary(db, detail.summary.session_id))
    return [
        run
        for run in found
        if run is not None and run.kind == BENCH_PACK and run.benchmark_hash == detail.benchmark_hash
    ]


class _Session:
    """The runs of one pack in one session.

    Args:
        runs: At least one, each on a model of its own.
        scenarios: Of the pack, in its order.
        with_text: Also what may quote replies.
    """

    def __init__(
        self, runs: Sequence[ModelRun], scenarios: Sequence[BenchPackScenario], with_text: bool
    ) -> None:
        self.runs = runs
        self.started = min(run.detail.summary.started_at for run in runs)
        self.results: Mapping[str, Mapping[str, dict[str, JsonValue]]] = {
            run.model: {
                code: dict(said if with_text else without_text(said)) for code, said in run.results.items()
            }
            for run in runs
        }
        self.scores: dict[str, JsonValue] = {
            run.model: dict(stored_score(run.score, with_text=with_text))
            for run in runs
            if run.score is not None
        }
        self._scenarios = scenarios
        self._with_text = with_text
        self._first = runs[0].detail
        self._unfinished = any(run.unfinished for run in runs)
        self._wrong = [
            *(["The session was interrupted."] if self._unfinished else []),
            *(str(payload.get("message")) for run in runs for payload in run.told("run_error")),
        ]
        self._total = self._listed_scenarios()

    def head(self) -> JsonObject:
        """Return what the summary says of the run as a whole."""
        repeat = self._first.settings.get("repeat")
        ended = max(run.detail.summary.completed_at or self.started for run in self.runs)
        return {
            "packType": "table",
            "packVersion": self._first.summary.version,
            "benchPackId": self._first.summary.benchmark,
            "benchPackName": self._pack_name(),
            "executionMode": "full_parallel",
            "runsPerTest": repeat if isinstance(repeat, int) else 1,
            "startedAt": json_time(self.started),
            "completedAt": json_time(ended),
            "modelCount": len(self.runs),
            "scenarioCount": self._total,
            "cancelled": self._unfinished,
            **({"error": self._wrong[0]} if self._wrong else {}),
        }

    def mark(self) -> JsonValue:
        """Return what we add to the summary."""
        return {
            "version": self._first.plugin_version,
            "session": self._first.summary.session_id,
            "runs": {run.model: run.detail.summary.id for run in self.runs},
            "notJudged": {run.model: run.errors for run in self.runs},
        }

    def events(self, name: str) -> list[JsonObject]:
        """Return the events of a run of this name."""
        begun: JsonObject = {
            "type": "run_started",
            "runId": name,
            "models": [{"id": run.model, "label": run.model} for run in self.runs],
            "totalScenarios": self._total,
        }
        ended: list[JsonObject] = [{"type": "run_error", "message": message} for message in self._wrong]
        return [
            *self._preparations(),
            begun,
            *self._scenario_events(),
            *(ended or [{"type": "run_finished", "scores": self.scores}]),
        ]

    def _scenario_events(self) -> list[JsonObject]:
        """Return the events scenario by scenario, as the app writes them that runs one after the other."""
        events: list[JsonObject] = []
        for number, scenario in enumerate(self._scenarios, 1):
            code = scenario.code
            if not any(code in results for results in self.results.values()):
                continue
            started: JsonObject = {
                "scenarioId": code,
                "title": scenario.title,
                "index": number,
                "total": self._total,
            }
            events.append({"type": "scenario_started", **started})
            for run in self.runs:
                events += [
                    {
                        "type": "model_progress",
                        "modelId": run.model,
                        "scenarioId": code,
                        "message": str(event.payload.get("message", "")) if self._with_text else "",
                    }
                    for event in run.events
                    if event.code == code and event.type == "model_progress"
                ]
            events += [
                {"type": "scenario_result", "modelId": model, "scenarioId": code, "result": results[code]}
                for model, results in self.results.items()
                if code in results
            ]
            events.append({"type": "scenario_finished", "scenarioId": code})
        return events

    def _preparations(self) -> list[JsonObject]:
        """Return what was told of verifiers, once: every run has it."""
        found: list[JsonObject] = []
        for run in self.runs:
            found += [payload for payload in run.told("verifier_preparing") if payload not in found]
        return found

    def _pack_name(self) -> str:
        """Return what the pack calls itself for people; its id where nobody has put that on record."""
        told = (payload.get("benchPackName") for run in self.runs for payload in run.told("run_started"))
        return next((str(name) for name in told if name), self._first.summary.benchmark)

    def _listed_scenarios(self) -> int:
        """Return how many scenarios the pack lists, as the runs were told; else as the record has them."""
        stated = (payload.get("total") for run in self.runs for payload in run.told("scenario_started"))
        return max((number for number in stated if isinstance(number, int)), default=len(self._scenarios))


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


def _file_time(iso: str) -> str:
    return json_time(iso).replace(":", "-")
