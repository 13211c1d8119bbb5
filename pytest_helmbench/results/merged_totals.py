"""The words of kinds on merged runs, such as the total of a Bench Pack: they cannot be added up of shards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from pytest_helmbench.benchmarks.kind import Loader, RunFollower, SessionValues
from pytest_helmbench.benchmarks.registry import KindError, kind_of, places_named, places_of
from pytest_helmbench.core.model import ModelEntry
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.engine.job import Target
from pytest_helmbench.engine.work import Route
from pytest_helmbench.gateway.providers.endpoints import Unusable
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.results.merging import Merged, MergedShards
from pytest_helmbench.store.writer import Store

__all__ = ["ask_totals"]


def ask_totals(
    merged: MergedShards, session: SessionValues, settings: Settings, roots: Sequence[Path]
) -> list[str]:
    """Have the kinds that follow runs say what they make of the merged ones; return what could not be had.

    Args:
        merged: The runs.
        session: For the kinds.
        settings: Of the project.
        roots: Benchmarks of the user. What a shard says of folders is not believed: code in them may be run.
    """
    notes: list[str] = []
    repeat = max(run.facts.repeat for run in merged.runs)
    session = replace(session, settings=replace(settings, repeat=repeat), note=notes.append)
    for kind in dict.fromkeys(run.like.benchmark[3] for run in merged.runs):
        runs = [run for run in merged.runs if run.like.benchmark[3] == kind]
        loader = _follower(kind, session)
        if loader is None:
            continue
        try:
            notes += _asked(merged.path, runs, loader, roots)
        finally:
            session.loop().run(loader.close())
    return notes


def _follower(kind: str, session: SessionValues) -> Loader | None:
    """Return what loads benchmarks of a kind, where it follows runs; None where it does not, or is not installed."""
    with suppress(KindError):
        loader = kind_of(places_named(kind)).open(session)
        return loader if isinstance(loader, RunFollower) else None
    return None


def _asked(path: Path, runs: Sequence[Merged], loader: Loader, roots: Sequence[Path]) -> Iterator[str]:
    run_ids: dict[tuple[str, str], int] = {}
    by_benchmark: dict[tuple[str, str], list[Merged]] = {}
    for run in runs:
        by_benchmark.setdefault((run.like.benchmark[0], run.like.benchmark[2]), []).append(run)
    for (name, content), same in by_benchmark.items():
        found = None
        for root in roots:
            places = places_of(root)
            if places is None or places.name != same[0].like.benchmark[3]:
                continue
            targets = tuple(_target(root, run) for run in same)
            try:
                loaded = loader.load(root, targets)
            except HelmbenchError:
                continue
            if (loaded.outline.name, loaded.outline.hash) == (name, content):
                found = loaded
                run_ids |= {target.key: run.run_id for target, run in zip(targets, same, strict=True)}
                break
        if found is None:
            yield (
                f"{name} has no total of its own: it is not here as it was run\n"
                "  hint: merge where its benchmark is, or name it with --benchmark PATH"
            )
    if not run_ids or not isinstance(loader, RunFollower):
        return
    store = Store.open(path)
    try:
        loader.store_totals(store, run_ids)
    finally:
        store.close()


def _target(root: Path, run: Merged) -> Target:
    return Target(root, Route(ModelEntry(run.name[1]), Unusable("merged shards ask nothing", "")), ())
