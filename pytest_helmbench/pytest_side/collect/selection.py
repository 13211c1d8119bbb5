"""Selection and order of the collected items: `--helmbench-select`, shards, local models one after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pytest

from pytest_helmbench.core.case import BrokenCase
from pytest_helmbench.core.codes import CaseCode, Selection, scenario_code_of
from pytest_helmbench.core.sample import Sample
from pytest_helmbench.core.shard import Shard, case_share, hashed_share
from pytest_helmbench.engine.job import CaseJob
from pytest_helmbench.gateway.providers.endpoints import Endpoint
from pytest_helmbench.options.settings import Settings
from pytest_helmbench.pytest_side.collect.items import BrokenItem, job_of, jobs_of
from pytest_helmbench.run.library import Library
from pytest_helmbench.run.plan import Notes

_NOT_SAMPLED = (
    "--helmbench-sample: cases that pytest itself collects (Python tests) are in no sample: all of them run"
)


def arrange(
    items: list[pytest.Item], settings: Settings, library: Library, notes: Notes
) -> list[pytest.Item]:
    """Select and order the items in place, and return the dropped ones."""
    selection = settings.selection  # items of others stay
    dropped = [] if selection is None else _drop(items, lambda item: _is_selected(item, selection))
    if settings.sample is not None:
        dropped += _leave_out(items, library.samples, notes)
    _group_local_models(items)
    return dropped


def _drop(items: list[pytest.Item], is_kept: Callable[[pytest.Item], bool]) -> list[pytest.Item]:
    """Drop items in place, and return them."""
    kept: list[pytest.Item] = []
    dropped: list[pytest.Item] = []
    for item in items:
        (kept if is_kept(item) else dropped).append(item)
    items[:] = kept
    return dropped


def _is_selected(item: pytest.Item, selection: Selection) -> bool:
    job = job_of(item)
    if job is not None:
        return selection.matches(job.parts)
    if isinstance(item, BrokenItem):
        # A file of the whole benchmark (scoring.yaml) is named by no code and concerns every case.
        return scenario_code_of(item.name) is None or selection.may_match(tuple(item.name.split("-")))
    return True


def broken_cases(
    items: Iterable[pytest.Item], selection: Selection | None
) -> Mapping[Path, Sequence[BrokenCase]]:
    """Return the cases of broken scenarios and rows among the selected items, by folder of their benchmark.

    Args:
        items: The selected items. A scenario may have several broken ones, one per file.
        selection: Filters their cases too; None for all.
    """
    seen: set[tuple[Path, str]] = set()
    found: dict[Path, list[BrokenCase]] = {}
    for item in items:
        if not isinstance(item, BrokenItem) or item.loaded is None:
            continue
        root = item.loaded.root
        if (root, item.code) not in seen:
            seen.add((root, item.code))
            cases = item.loaded.broken_cases(item.code)
            found.setdefault(root, []).extend(case for case in cases if _may_be_selected(case, selection))
    return found


def _may_be_selected(case: BrokenCase, selection: Selection | None) -> bool:
    parts = CaseCode.parse(case.code)
    if selection is None or parts is None:
        return True
    if parts.perturbation is not None:
        return selection.matches(parts.parts())
    return selection.may_match((parts.pillar, parts.behaviour or "", parts.scenario or ""))


def share_out(items: list[pytest.Item], shard: Shard, library: Library) -> list[pytest.Item]:
    """Keep the share of a shard in place, and return the dropped items.

    Every item is in one share: cases by their code, other items (broken files, Python tests) by their node id.
    """
    names = {loaded.root: loaded.outline.name for loaded in library.loaded}

    def is_own(item: pytest.Item) -> bool:
        job = job_of(item)
        if job is None:
            return hashed_share(item.nodeid, shard.of) == shard.index
        name = names.get(job.target.benchmark, "")
        return case_share(name, job.code, job.repetition, shard.of) == shard.index

    return _drop(items, is_own)


def _leave_out(
    items: list[pytest.Item], samples: Mapping[Path, Sample | None], notes: Notes
) -> list[pytest.Item]:
    """Drop the cases that no sample has, in place, and return them. Benchmarks without a sample stay whole."""
    if any(samples.get(job.target.benchmark) is None for job in jobs_of(items)):
        notes.say(_NOT_SAMPLED)

    def is_drawn(job: CaseJob | None) -> bool:
        sample = None if job is None else samples.get(job.target.benchmark)
        return sample is None or job is None or job.code in sample.weights

    return _drop(items, lambda item: is_drawn(job_of(item)))


def _group_local_models(items: list[pytest.Item]) -> None:
    """Sort the items of local models by model, so that a server need not swap them."""
    order: dict[str, int] = {}
    for job in jobs_of(items):
        endpoint = job.target.model.endpoint
        if isinstance(endpoint, Endpoint) and endpoint.server.local:
            order.setdefault(job.model_id, len(order) + 1)
    if len(order) > 1:
        items.sort(key=lambda item: order.get(job.model_id, 0) if (job := job_of(item)) is not None else 0)
