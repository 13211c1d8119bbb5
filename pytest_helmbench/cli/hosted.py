"""What the commands say of Bench Packs: their scenarios, what they show of a prompt, their problems."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackOutline, ScenarioMeta
from pytest_helmbench.benchmarks.bench_packs.jobs import LoadedBenchPack
from pytest_helmbench.benchmarks.bench_packs.loading import BenchPackLoader
from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST
from pytest_helmbench.engine.loop import LoopThread
from pytest_helmbench.reports.tables import table
from pytest_helmbench.session.settings import Settings

__all__ = [
    "bench_pack_rows",
    "bench_pack_table",
    "find_scenario",
    "first_scenarios",
    "loaded_bench_pack",
    "manifest_of",
    "prompt_lines",
]

_HEAD = ("scenario", "category", "title")


def loaded_bench_pack(root: Path, settings: Settings) -> LoadedBenchPack:
    """Return a Bench Pack with the scenarios that it lists; without Node, with one that stands for all.

    Raises:
        UnreadableBenchmarkError: Its manifest is broken, or it cannot list its scenarios.
    """
    loop = LoopThread()
    try:
        bench_pack_loader = BenchPackLoader(settings, os.environ, loop)
        try:
            return bench_pack_loader.load(root, ())
        finally:
            loop.run(bench_pack_loader.close())
    finally:
        loop.close()


def manifest_of(pack: BenchPackOutline) -> Path:
    """Return the file that its scenarios are collected from."""
    return pack.root / MANIFEST


def bench_pack_rows(pack: BenchPackOutline) -> list[dict[str, Any]]:
    """Return one mapping per scenario, in the pack's order."""
    return [
        {
            "benchmark": pack.name,
            "code": scenario.id,
            "title": scenario.title,
            "category": scenario.category or None,
            "tags": list(scenario.tags),
            "family": pack.kind,
            "cases": 1,
            "path": str(manifest_of(pack)),
        }
        for scenario in pack.scenarios.values()
    ]


def bench_pack_table(pack: BenchPackOutline) -> Iterator[str]:
    """Yield the scenarios of a Bench Pack and their number."""
    cells = [(scenario.id, scenario.category, scenario.title) for scenario in pack.scenarios.values()]
    yield f"{pack.name} {pack.version}"
    yield from table(_HEAD, cells, left=_HEAD)
    yield f"{len(cells)} scenario{'s' if len(cells) != 1 else ''}"


def find_scenario(
    packs: Sequence[BenchPackOutline], code: str
) -> tuple[BenchPackOutline, ScenarioMeta] | None:
    """Return the scenario with an id."""
    found = ((pack, pack.scenarios[code]) for pack in packs if code in pack.scenarios)
    return next(found, None)


def first_scenarios(pack: BenchPackOutline) -> list[ScenarioMeta]:
    """Return the first scenario of each category."""
    found: dict[str, ScenarioMeta] = {}
    for scenario in pack.scenarios.values():
        found.setdefault(scenario.category, scenario)
    return list(found.values())


def prompt_lines(scenario: ScenarioMeta) -> Iterator[str]:
    """Yield what a pack shows of its prompt: nobody but its own code knows what it will send."""
    yield "[what the pack shows of its prompt; its own code writes the requests]"
    yield scenario.prompt_text or "(nothing)"
    for title, content in scenario.cards:
        yield ""
        yield f"[{title}]"
        yield content
