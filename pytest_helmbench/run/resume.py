"""Going on with a session that did not finish: which of its runs, and whether they are still the same."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.kind_record import record_of
from pytest_helmbench.core.granted import Granted
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import CaseKey, RecordedCase
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.gateway.providers.application import FUNCTION_PREFIX
from pytest_helmbench.options.option import Resume
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.store.read.benchmark_places import BenchmarkKey, is_gone, names_of
from pytest_helmbench.store.read.reply_rows import cases_on_record
from pytest_helmbench.store.read.runs import RunDetail, judges_of, unfinished_runs
from pytest_helmbench.store.table_rows import as_json

_SAME = {
    "variant_of": "model behind {model}",
    "system_prompt": "system prompt of {model}",
    "sampling": "sampling of {model}",
    "judge": "judge of {model}",
    "judge_sampling": "sampling of the judge of {model}",
    "strict_json": "--helmbench-strict-json",
    "repeat": "--helmbench-repeat",
    "shard": "--helmbench-shard",
    "sample": "--helmbench-sample",
    "versions": "version of applications",
}
"""Settings that must be the same, as messages name them: verdicts under others do not belong to the same run."""

_SAME_ROUTE = {"address": "address", "key_env": "key variable"}

RunKey = tuple[str, str]
"""Folder of the benchmark, id of the model."""


class ResumeError(HelmbenchError):
    """The session cannot go on as it was started now."""


@dataclass(frozen=True, slots=True)
class Continued:
    """A run as it is planned now, with the settings as they would be recorded."""

    folder: str
    benchmark: BenchmarkKey
    model: str
    settings: Mapping[str, Any]

    @property
    def key(self) -> RunKey:
        """Its key in the session."""
        return self.folder, self.model


@dataclass(frozen=True, slots=True)
class Resumption:
    """A session that goes on: its runs by folder and model, and the cases that need not be asked again."""

    session_id: str
    runs: Mapping[RunKey, int]
    judged: Mapping[CaseKey, RecordedCase]


_SHAPES = {"models": list, "marking_models": list, "routes": list, "max_cost_usd": int | float}


def as_continued(settings: Settings, resume: Resume) -> Settings:
    """Return the settings with the budget of the session that goes on; without a model, with its models too.

    Addresses, variables of keys and code are never those of a results file: such files travel.

    Raises:
        ResumeError: There is none, and none is to be started; or its models are code that is not named now.
        StoreError: The file cannot be read.
    """
    runs = unfinished_runs(settings.db, resume.run)
    if not runs:
        if resume.run is None and not (resume.or_start or settings.dry_run):
            raise ResumeError(_nothing_to_resume(settings.db, None))
        return settings
    if all(run.status == "complete" and run.rescored_from is None for run in runs) and not settings.dry_run:
        if resume.or_start:
            return settings
        raise ResumeError(_nothing_to_resume(settings.db, resume.run))
    before: Mapping[str, Any] = runs[0].settings
    odd = [name for name, kind in _SHAPES.items() if not isinstance(before.get(name), kind | None)]
    if odd:
        raise ResumeError(
            f"{settings.db}: run {runs[0].id} cannot go on: its setting {odd[0]} is {_shown(before[odd[0]])}\n"
            "  hint: a results file is not written by hand; start a fresh run without --helmbench-resume"
        )
    if settings.max_cost_usd is None:
        settings = replace(settings, max_cost_usd=before.get("max_cost_usd"))
    if settings.models:
        return settings
    models, judges = (tuple(before.get(name) or ()) for name in ("models", "marking_models"))
    code = [name for name in (*models, *judges) if str(name).startswith(FUNCTION_PREFIX)]
    if code:
        raise ResumeError(
            f"{settings.db} names code, and a results file does not decide what runs: {', '.join(code)}\n"
            "  hint: give the command of the unfinished session again, with --helmbench-resume"
        )
    return replace(
        settings,
        models=Granted(models),
        marking_models=settings.marking_models or Granted(judges),
    )


def _nothing_to_resume(path: Path, run_id: int | None) -> str:
    option = "--helmbench-resume" if run_id is None else f"--helmbench-resume={run_id}"
    if run_id is not None:
        why = f"the session of run {run_id} in {path} is complete"
    else:
        why = f"{path} {'holds no unfinished session' if path.exists() else 'does not exist'}"
    return (
        f"nothing to resume: {why}; nothing was called\n"
        f"  hint: leave {option} out for a fresh run, or give --helmbench-resume=or-start in its place"
    )


def find_resumption(path: Path, run_id: int | None, planned: Sequence[Continued]) -> Resumption | None:
    """Return what goes on; None when nothing is unfinished.

    Args:
        run_id: A run of the wanted session, which this process owns; None for the last unfinished one.

    Raises:
        ResumeError: No such run, or models, sampling or judge differ.
        StoreError: The file cannot be read.
    """
    recorded = unfinished_runs(path, run_id)
    if not recorded:
        if run_id is not None:
            raise ResumeError(f"there is no run {run_id} in {path}\n  hint: `helmbench runs` lists them")
        return None
    for run in recorded:
        if run.rescored_from is not None:
            raise ResumeError(
                f"run {run.id} has only judged the replies of run {run.rescored_from} again: it asks nothing\n"
                f"  hint: --helmbench-resume={run.rescored_from}"
            )
    recorded = _where_they_are_now(path, recorded, [plan.benchmark for plan in planned])
    matches = _matches(recorded, planned)
    differences = _differences(recorded, planned, matches)
    if differences:
        raise ResumeError(
            "the unfinished session was another one: " + "; ".join(differences) + "\n"
            "  hint: give the same options, name an older session by a run of it (--helmbench-resume=N, `helmbench"
            " runs` lists them), or leave --helmbench-resume out for a fresh run"
        )
    runs = {key: run.id for key, run in matches.items()}
    kinds = {plan.key: plan.benchmark.kind for plan in planned}
    judged: dict[CaseKey, RecordedCase] = {}
    for key, number in runs.items():
        judged |= cases_on_record(path, number, record_of(kinds[key]).statements)
    return Resumption(recorded[0].session_id, runs, judged)


def _where_they_are_now(
    path: Path, recorded: Sequence[RunDetail], planned: Iterable[BenchmarkKey]
) -> tuple[RunDetail, ...]:
    """Return recorded runs with the benchmark of now, where it or the file was moved (merged to another folder).

    That is the planned one of its name and kind, where one is planned and where it was there is nothing.
    """
    now: defaultdict[tuple[str, str], set[BenchmarkKey]] = defaultdict(set)
    for key in planned:
        now[key.name, key.kind].add(key)
    gone = {run.key for run in recorded if is_gone(run.key, path)}
    often = Counter((key.name, key.kind) for key in gone)
    moved = {
        key: next(iter(found))
        for key in gone
        if often[key.name, key.kind] == len(found := now[key.name, key.kind]) == 1
    }
    return tuple(replace(run, benchmark_place=moved.get(run.key, run.key).place) for run in recorded)


def _matches(recorded: Sequence[RunDetail], planned: Iterable[Continued]) -> dict[RunKey, RunDetail]:
    """Return the recorded run of every planned one."""
    by_name = {(run.key, run.model): run for run in reversed(recorded)}
    found = {plan.key: by_name.get((plan.benchmark, plan.model)) for plan in planned}
    return {key: run for key, run in found.items() if run is not None}


def _differences(
    recorded: Sequence[RunDetail], planned: Sequence[Continued], matches: Mapping[RunKey, RunDetail]
) -> list[str]:
    differences = []
    names = names_of([*(run.key for run in recorded), *(plan.benchmark for plan in planned)])
    for benchmark in dict.fromkeys(plan.benchmark for plan in planned):
        before = {run.model for run in recorded if run.key == benchmark}
        now = {plan.model for plan in planned if plan.benchmark == benchmark}
        if not before:
            differences.append(f"it had no run of {names[benchmark]}")
        elif before != now:
            differences.append(f"models of {names[benchmark]} were {_listed(before)}, now {_listed(now)}")
    for plan in planned:
        run = matches.get(plan.key)
        if run is not None:
            differences += _other_settings(plan.model, run.settings, plan.settings)
            differences += _other_routes(run.settings, plan.settings)
    return list(dict.fromkeys(differences))


def _other_settings(model: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    before = {"shard": None, **before}  # only those of shards say so
    before, now = (
        {**one, "judge": " and ".join(judges_of(one)) or None} if "judge" in one else one
        for one in (before, now)
    )
    now = json.loads(as_json({key: now.get(key) for key in _SAME}))  # as it would be read back
    return [
        f"{name.format(model=model)} was {_shown(before[key])}, now {_shown(now[key])}"
        for key, name in _SAME.items()
        if key in before and before[key] != now[key]
    ]


def _other_routes(before: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Yield how servers and key variables differ; of models that were asked, and would be."""
    for was, is_now in zip(before.get("routes", ()), now.get("routes", ()), strict=False):
        if was["id"] == is_now["id"] and was["usable"]:
            for key, name in _SAME_ROUTE.items():
                if was[key] != is_now[key]:
                    yield f"{name} of {was['id']} was {was[key] or 'none'}, now {is_now[key] or 'none'}"


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    return value if isinstance(value, str) else json.dumps(value)


def _listed(models: set[str]) -> str:
    return ", ".join(sorted(models)) or "none"
