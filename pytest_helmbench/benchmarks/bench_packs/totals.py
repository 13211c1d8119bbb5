"""Scores of whole runs by their Bench Packs: asked for once per run, when nothing more comes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from statistics import fmean

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackManifest, PackScore
from pytest_helmbench.benchmarks.bench_packs.jobs import LoadedBenchPack
from pytest_helmbench.benchmarks.bench_packs.stored import bench_pack_results
from pytest_helmbench.core.json_types import JsonObject, JsonValue
from pytest_helmbench.core.outcome import Event
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.attempt import utc_now
from pytest_helmbench.options.declarations import Options
from pytest_helmbench.store.writer import Store

__all__ = ["PackRun", "mean_score", "note_pack_starts", "store_pack_totals"]

Scores = Callable[[BenchPackManifest, Sequence[Sequence[JsonObject]]], Sequence[PackScore]]


PackRun = tuple[LoadedBenchPack, str, int]
"""A pack, the model that it ran on, and `evaluation_runs.id`."""


def note_pack_starts(runs: Iterable[PackRun], store: Store) -> None:
    """Put on record that runs have started."""
    for loaded, model, run_id in runs:
        payload: JsonObject = {
            "runId": str(run_id),
            "benchPackName": loaded.manifest.name,
            "models": [{"id": model, "label": model}],
            "totalScenarios": len(loaded.outline.scenarios),
        }
        store.record_event(run_id, _event("run_started", payload))


def store_pack_totals(
    runs: Iterable[PackRun], store: Store, settings: Options, scores: Scores
) -> tuple[str, ...]:
    """Ask each pack for its score of each run, put that on record, and return what went wrong.

    Args:
        runs: Of the session.
        store: What was recorded is on disk by now.
        settings: Of the session.
        scores: Asks a pack for the scores of groups of results, each with one per scenario.
    """
    wrong = []
    for loaded, model, run_id in runs:
        repetitions: defaultdict[int, list[JsonObject]] = defaultdict(list)
        for result in bench_pack_results(store.path, run_id):
            repetitions[result.repetition].append(result.stated)
        if not repetitions:
            continue
        try:
            found = scores(loaded.manifest, tuple(repetitions.values()))
        except HelmbenchError as error:
            wrong.append(f"{loaded.manifest.id} has no total for {model}: {error}")
            store.record_event(run_id, _event("run_error", {"message": str(error)}))
            continue
        everything = len(loaded.outline.scenarios)
        partial = len(repetitions) < settings.repeat or any(
            len(results) < everything for results in repetitions.values()
        )
        score = replace(mean_score(found), partial=partial)
        store.record_statement(run_id, score)
        stated: JsonValue = {
            "totalScore": score.total,
            "categories": [dict(category) for category in score.categories],
            "summary": score.summary,
            **({"totalUnit": score.unit} if score.unit else {}),
            **score.extra,
        }
        store.record_event(run_id, _event("run_finished", {"scores": {model: stated}}))
    return tuple(wrong)


def mean_score(scores: Sequence[PackScore]) -> PackScore:
    """Return the mean over repetitions: of the total, and of each category that has a score in all of them.

    Args:
        scores: At least one; texts, units and weights are those of the first.
    """
    first = scores[0]
    if len(scores) == 1:
        return first
    found: defaultdict[str, list[float]] = defaultdict(list)
    for score in scores:
        for category in score.categories:
            if isinstance(part := category.get("score"), int | float):
                found[str(category["id"])].append(part)

    def mean(name: str) -> float | None:
        return fmean(found[name]) if len(found[name]) == len(scores) else None

    categories = tuple({**category, "score": mean(str(category["id"]))} for category in first.categories)
    return replace(first, total=fmean(score.total for score in scores), categories=categories)


def _event(kind: str, payload: JsonObject) -> Event:
    return Event(kind, {"type": kind, **payload}, utc_now())
