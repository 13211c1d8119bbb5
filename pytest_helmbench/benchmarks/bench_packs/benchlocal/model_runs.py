"""One of our runs as its part in a run of the BenchLocal app: a model's results by scenario, and what was told."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.bench_pack import PackScore
from pytest_helmbench.benchmarks.bench_packs.benchlocal.entries import (
    error_result,
    majority_result,
    timed_result,
)
from pytest_helmbench.benchmarks.bench_packs.stored import (
    BenchPackEvent,
    BenchPackScenario,
    bench_pack_events,
    bench_pack_faults,
    bench_pack_results,
    pack_score,
    plain_rows,
)
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.store.result_queries import ResultRow, results
from pytest_helmbench.store.run_queries import RunDetail

__all__ = ["ModelRun", "model_run"]

_UNFINISHED = ("interrupted", "running")


@dataclass(frozen=True, slots=True)
class ModelRun:
    """A run of one pack on one model.

    Args:
        detail: As it was recorded.
        results: By scenario, in the pack's order; of several repetitions the majority's.
        events: In the order they happened.
        score: Of the pack; None where it could not be asked.
        errors: Cases without a verdict.
    """

    detail: RunDetail
    results: Mapping[str, JsonObject]
    events: Sequence[BenchPackEvent]
    score: PackScore | None
    errors: int

    @property
    def model(self) -> str:
        """Id of the model."""
        return self.detail.summary.model

    @property
    def unfinished(self) -> bool:
        """Whether its session was cut short, or goes on."""
        return self.detail.summary.status in _UNFINISHED

    def told(self, kind: str) -> list[JsonObject]:
        """Return what was told in events of one type."""
        return [event.payload for event in self.events if event.type == kind]


def model_run(db: Path, detail: RunDetail, scenarios: Sequence[BenchPackScenario]) -> ModelRun:
    """Return a run with its results.

    Raises:
        StoreError: The file is missing or no results file.
    """
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
    found: dict[str, JsonObject] = {}
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
    return ModelRun(detail, found, events, pack_score(db, run_id), errors)


def _is_judged(row: ResultRow, stated: Mapping[tuple[str, int], JsonObject]) -> bool:
    return row.outcome in ("passed", "failed") and (row.code, row.repetition) in stated
