"""Going on with a session that did not finish: which of its runs, and whether they are still the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pytest_helmbench.bench.problem import HelmbenchError
from pytest_helmbench.store.recall import CaseKey, Recall, RecordedCase, UnfinishedRun, unfinished_runs

__all__ = ["RESUMABLE_KEYS", "ResumeError", "Resumption", "find_resumption"]

RESUMABLE_KEYS = ("sampling", "judge")
"""Settings that must be the same: verdicts under others are no part of the same run."""

RunName = tuple[str, str]
"""Name of the benchmark, id of the model."""


class ResumeError(HelmbenchError):
    """The session cannot go on as it was started now."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """A session that goes on.

    Args:
        session_id: Of the session.
        runs: `evaluation_runs.id` by benchmark and model.
        judged: The cases that need not be asked again.
    """

    session_id: str
    runs: Mapping[RunName, int]
    judged: Mapping[CaseKey, RecordedCase]


def find_resumption(
    path: Path, run_id: int | None, planned: Mapping[RunName, Mapping[str, Any]]
) -> Resumption | None:
    """Return what goes on; None when nothing is unfinished.

    Args:
        path: Results file.
        run_id: A run of the wanted session; None for the last unfinished one.
        planned: Settings of now by benchmark and model.

    Raises:
        ResumeError: No such run, it is still being written, or models, sampling or judge differ.
        StoreError: The file cannot be read.
    """
    runs = unfinished_runs(path, run_id)
    if not runs:
        if run_id is not None:
            raise ResumeError(f"there is no run {run_id} in {path}\n  hint: `helmbench runs` lists them")
        return None
    alive = [run for run in runs if run.status == "running"]
    if alive:
        process = alive[0].settings.get("process") or {}
        raise ResumeError(
            f"run {alive[0].run_id} is still being written, by process {process.get('pid')} on {process.get('host')}\n"
            "  hint: wait for it, or stop it first"
        )
    differences = _differences({(run.benchmark, run.model): run for run in runs}, planned)
    if differences:
        raise ResumeError(
            "the unfinished session was another one: " + "; ".join(differences) + "\n"
            "  hint: give the same options, or leave --helmbench-resume out for a fresh run"
        )
    with Recall(path) as recall:
        judged = {key: case for run in runs for key, case in recall.judged_cases(run.run_id).items()}
    return Resumption(runs[0].session_id, {(run.benchmark, run.model): run.run_id for run in runs}, judged)


def _differences(
    recorded: Mapping[RunName, UnfinishedRun], planned: Mapping[RunName, Mapping[str, Any]]
) -> list[str]:
    differences = []
    for benchmark in {name for name, _ in planned}:
        before, now = ({model for name, model in runs if name == benchmark} for runs in (recorded, planned))
        if before != now:
            differences.append(f"models of {benchmark} were {_listed(before)}, now {_listed(now)}")
    for name, settings in planned.items():
        before_settings = recorded[name].settings if name in recorded else settings
        differences += [
            f"{key} of {name[1]} was {before_settings.get(key)}, now {settings.get(key)}"
            for key in RESUMABLE_KEYS
            if before_settings.get(key) != settings.get(key)
        ]
    return differences


def _listed(models: set[str]) -> str:
    return ", ".join(sorted(models)) or "none"
