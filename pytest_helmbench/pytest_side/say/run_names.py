"""The names of a session, of its runs and of their benchmarks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from pytest_helmbench.core.scrub import excerpt
from pytest_helmbench.reports.tables import count_text
from pytest_helmbench.run.coordinator import Coordinator
from pytest_helmbench.run.plan import Plan
from pytest_helmbench.scoring.run_score import RunScore

_LONGEST_NAME = 40


def scores_by_name(coordinator: Coordinator) -> Mapping[str, RunScore | None]:
    """Return the score of every run of a session by its name."""
    return {
        name: scored.score if (scored := coordinator.runs.scored.get(run_id)) is not None else None
        for run_id, name in run_names(coordinator).items()
    }


def run_names(coordinator: Coordinator) -> Mapping[int, str]:
    """Return the names of the runs of a session: the model, and the benchmark where there are several."""
    plan = coordinator.runs.plan
    if plan is None:
        return {}
    numbers = coordinator.runs.run_ids
    return {numbers[key]: name for key, name in planned_names(coordinator, plan).items() if key in numbers}


def planned_names(coordinator: Coordinator, plan: Plan) -> Mapping[tuple[str, str], str]:
    """Return the names of the runs of a plan, by their key."""
    names = names_of_benchmarks(coordinator, plan)
    return {
        run.key: run.model if len(names) == 1 else f"{run.model} on {names[run.benchmark]}"
        for run in plan.runs
    }


def names_of_benchmarks(coordinator: Coordinator, plan: Plan) -> Mapping[str, str]:
    """Return the name of each benchmark by its folder; of the same names, each with its folder in brackets."""
    names = {run.benchmark: coordinator.runs.name_of(run) for run in plan.runs}
    for shown in (lambda benchmark: Path(benchmark).name, lambda benchmark: benchmark):
        often = Counter(names.values())
        names = {
            benchmark: f"{name} ({shown(benchmark)})" if often[name] > 1 else name
            for benchmark, name in names.items()
        }
    return names


def summary_title(coordinator: Coordinator) -> str:
    """Return the title of the summary: benchmark, cases and models."""
    plan = coordinator.runs.plan
    if plan is None or not plan.runs:
        return "helmbench"
    benchmarks = names_of_benchmarks(coordinator, plan)
    models = list(dict.fromkeys(run.model for run in plan.runs))
    cases = plan.tests // (len(models) * coordinator.settings.repeat)
    title = title_text([*benchmarks.values()], cases, models)
    often = f" × {coordinator.settings.repeat} repetitions" if coordinator.settings.repeat > 1 else ""
    share = "" if plan.shard is None else f" · {plan.shard.name}"
    return f"{title}{often}{share}{' · dry run' if plan.dry else ''}"


def title_text(benchmarks: Sequence[str], cases: int, models: Sequence[str]) -> str:
    """Return `Northwind Energy · 1080 cases × 4 models`; of several benchmarks with the name of an only model."""
    name, many = excerpt(" ".join(benchmarks[0].split()), _LONGEST_NAME), count_text(len(models), "model")
    if len(benchmarks) > 1:
        name, many = f"{len(benchmarks)} benchmarks", models[0] if len(models) == 1 else many
    return f"{name} · {count_text(cases, 'case')} × {many}"
