"""Bench Packs as authors read them: their scenarios, what they show of a prompt, their problems."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from pytest_helmbench.benchmarks.authoring import CaseRef, Checked, Listing, Prompt, ReadCases, counted
from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackOutline, ScenarioMeta
from pytest_helmbench.benchmarks.bench_packs.format.manifest import BENCH_PACK_SCHEMA
from pytest_helmbench.benchmarks.bench_packs.loading import BenchPackLoader, LoadedBenchPack
from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST
from pytest_helmbench.benchmarks.kind import SessionValues
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.problem import Problem

_HEAD = ("scenario", "category", "title")


class ReadBenchPack(ReadCases):
    """A Bench Pack as its authors read it.

    Args:
        pack: With the scenarios that it lists.
    """

    def __init__(self, pack: BenchPackOutline) -> None:
        self._pack = pack
        self._manifest = pack.root / MANIFEST
        super().__init__((CaseRef(self._manifest, one.id), one.category) for one in pack.scenarios.values())

    @property
    def root(self) -> Path:
        """The folder of the manifest."""
        return self._pack.root

    def listing(self) -> Listing:
        """Return the scenarios, in the pack's order."""
        pack = self._pack
        scenarios = pack.scenarios.values()
        rows = [(scenario.id, scenario.category, scenario.title) for scenario in scenarios]
        records = [self._record(scenario) for scenario in scenarios]
        notes = (counted(len(rows), "scenario"),)
        return Listing(f"{pack.name} {pack.version}", _HEAD, _HEAD, rows, notes, records)

    def prompt(self, code: str, _system_prompt: str | None) -> Prompt | None:
        """Return what the pack shows of a prompt: only its own code knows what it will send."""
        scenario = self._pack.scenarios.get(code)
        if scenario is None:
            return None
        refusal = (
            f"{code} is a scenario of a Bench Pack, whose own code writes the requests\n"
            "  hint: leave --model and --json out to see what the pack shows of it"
        )
        return Prompt(None, tuple(_shown(scenario)), refusal)

    def _record(self, scenario: ScenarioMeta) -> dict[str, object]:
        return {
            "benchmark": self._pack.name,
            "code": scenario.id,
            "title": scenario.title,
            "category": scenario.category or None,
            "tags": list(scenario.tags),
            "family": self._pack.kind,
            "cases": 1,
            "path": str(self._manifest),
        }


def loaded_bench_pack(root: Path, session: SessionValues) -> LoadedBenchPack:
    """Return a Bench Pack with the scenarios that it lists; without Node, with one that represents all.

    Raises:
        UnreadableBenchmarkError: Its manifest is broken, or it cannot list its scenarios.
    """
    loop = session.loop()
    loader = BenchPackLoader(session.settings, session.environ, loop, session.note)
    try:
        return loader.load(root, ())
    finally:
        loop.run(loader.close())


def _shown(scenario: ScenarioMeta) -> Iterator[str]:
    yield "[what the pack shows of its prompt; its own code writes the requests]"
    yield scenario.prompt_text or "(nothing)"
    for title, content in scenario.cards:
        yield ""
        yield f"[{title}]"
        yield content


class BenchPackAuthoring:
    def check(self, root: Path, session: SessionValues) -> Checked:
        """See `Authoring.check`: the pack is loaded in Node and lists its scenarios."""
        loaded = loaded_bench_pack(root, session)
        refusal, warnings = loaded.work.refusal, tuple(loaded.warnings)
        if refusal is not None:
            message, _, hint = refusal.message.partition("\n  hint: ")
            skipped = Problem(loaded.manifest.path, None, f"it would be skipped: {message}", hint)
            warnings = (*warnings, skipped)
        listed = "not loaded" if loaded.stands_for_all else counted(len(loaded.outline.scenarios), "scenario")
        return Checked(f"{loaded.outline.name}: {listed}", (), warnings)

    def read(self, root: Path, session: SessionValues) -> ReadBenchPack:
        return ReadBenchPack(loaded_bench_pack(root, session).outline)

    def schema(self, _name: str) -> JsonObject:
        """Return the schema of manifests."""
        return BENCH_PACK_SCHEMA.document()


AUTHORING = BenchPackAuthoring()
