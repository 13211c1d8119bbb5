"""Bench Packs (Bench Protocol v1) as every room may know them: what a pack is, and what it says of a scenario."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from enum import StrEnum
from math import inf
from pathlib import Path

from pytest_helmbench.core.case import CaseRule
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Cell
from pytest_helmbench.core.outline import CaseAxes, Catalogue, ScenarioEntry
from pytest_helmbench.store.table_rows import foreign_json, foreign_text

BENCH_PACK = "bench_pack"
"""The kind of benchmark, the family of its cases and the rule that they are judged by."""


class PackStatus(StrEnum):
    """A pack's verdict on a model's work on a scenario."""

    PASS = "pass"
    PARTIAL = "partial"
    FAIL = "fail"


class VerifierDefault(StrEnum):
    """Where a manifest expects its verifier."""

    CLOUD = "cloud"
    DOCKER = "docker"
    CUSTOM_URL = "custom_url"


@dataclass(frozen=True, slots=True)
class VerifierSpec:
    """A service that a pack has its answers checked by.

    Args:
        id: Unique in the pack.
        required: Without it nothing runs.
        url: Where the manifest expects a server that others run; empty for none.
        image: Container image to run; empty for none.
        build_context: Folder with a Dockerfile, inside of the pack; None for none.
        listen_port: Inside of the container; None where no container is described.
        health_path: Begins with `/`; empty where the manifest names none: to listen is enough then.
    """

    id: str
    required: bool
    default_mode: VerifierDefault
    url: str = ""
    image: str = ""
    build_context: Path | None = None
    listen_port: int | None = None
    health_path: str = "/health"


@dataclass(frozen=True, slots=True, eq=False)
class BenchPackManifest:
    """`benchlocal.pack.json`, checked.

    Args:
        id: As written; `name`, `version` and `description` likewise, empty where there is none.
        entry: The module that it names.
        sampling_defaults: As written; unknown keys too.
        verifiers: In order; legacy `sidecars` are among them.
        obstacle: Why no host like us can run it, in a sentence; None when one can.
        hash: SHA-256 (hex) over the files of the pack.
        measures_speed: It says so (`measures: speed`).
        most_at_once: Scenarios that it wants to run at a time on a model (`concurrency`); None where it does not say.
    """

    root: Path
    path: Path
    id: str
    name: str
    version: str
    description: str
    entry: Path
    sampling_defaults: JsonObject
    verifiers: tuple[VerifierSpec, ...]
    obstacle: str | None
    hash: str
    measures_speed: bool = False
    most_at_once: int | None = None


@dataclass(frozen=True, slots=True)
class ScenarioMeta:
    """A scenario as its pack lists it.

    Args:
        id: Unique in the pack.
        category: Empty for none; `description` and `prompt_text` likewise.
        cards: Title and content of each detail card.
        stated: Everything that the pack said about it: it is handed back when the scenario runs.
    """

    id: str
    title: str
    category: str = ""
    description: str = ""
    prompt_text: str = ""
    tags: tuple[str, ...] = ()
    cards: tuple[tuple[str, str], ...] = ()
    stated: JsonObject = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScenarioResult:
    """A pack's statement on one run of a scenario, checked.

    Args:
        score: On the pack's own scale; None for none. `points` likewise.
        summary: For people; `note` and `raw_log` likewise, empty for none.
        stated: Everything that the pack said, unknown keys too.
        timings_valid: False when a reply came from the record: its time is not the model's.
    """

    scenario: str
    status: PackStatus
    score: float | None
    points: float | None
    summary: str
    note: str
    raw_log: str
    stated: JsonObject
    timings_valid: bool = True

    @property
    def table(self) -> str:
        return "pack_results"

    def cells(self) -> Mapping[str, Cell]:
        """Return its row of `pack_results`."""
        parts = {name: self.stated.get(name) for name in ("output", "verifier", "artifacts", "timings")}
        if not self.timings_valid:
            timings = parts["timings"]
            parts["timings"] = {**(timings if isinstance(timings, Mapping) else {}), "valid": False}
        return {
            "status": self.status.value,
            "score": self.score,
            "points": self.points,
            "note": foreign_text(self.note),
            "summary": foreign_text(self.summary),
            "raw_log": foreign_text(self.raw_log),
            **{name: None if part is None else foreign_json(part) for name, part in parts.items()},
        }

    def for_item(self) -> ScenarioResult:
        """Return it without its texts."""
        return replace(self, summary="", note="", raw_log="", stated={})


@dataclass(frozen=True, slots=True)
class PackScore:
    """A pack's score of all results of a model.

    Args:
        total: On the pack's own scale.
        categories: Each with `id`, `label`, `score` and perhaps `weight`; unknown keys are kept.
        summary: For people; empty for none.
        partial: Not every scenario of the pack is in it.
        unit: What the pack says of its scale; empty for nothing.
        extra: Whatever else it says.
    """

    total: float
    categories: tuple[JsonObject, ...]
    summary: str = ""
    partial: bool = False
    unit: str = ""
    extra: JsonObject = field(default_factory=dict)

    @property
    def table(self) -> str:
        return "pack_scores"

    def cells(self) -> Mapping[str, Cell]:
        """Return its row of `pack_scores`."""
        return {
            "total": self.total,
            "unit": foreign_text(self.unit),
            "categories": foreign_json(self.categories),
            "summary": foreign_text(self.summary),
            "partial": int(self.partial),
            "extra": foreign_json(self.extra) if self.extra else None,
        }


@dataclass(frozen=True, slots=True, eq=False)
class BenchPackOutline:
    """A Bench Pack as the record keeps it.

    Args:
        name: The manifest's `id`.
        description: Empty where there is none.
        scenarios: By id, in the pack's order.
    """

    root: Path
    name: str
    version: str
    description: str
    hash: str
    scenarios: Mapping[str, ScenarioMeta]
    kind: str = BENCH_PACK

    def catalogue(self, _codes: Iterable[str]) -> Catalogue:
        """Return all scenarios, planned or not: the order of their rows is the pack's own."""
        return Catalogue(map(_entry, self.scenarios.values()))

    def axes(self, code: str) -> CaseAxes:
        """Return the scenario itself."""
        return CaseAxes(scenario=code)


def _entry(scenario: ScenarioMeta) -> ScenarioEntry:
    about = {
        "type": "scenario",
        "groups": {"category": scenario.category} if scenario.category else {},
        "tags": scenario.tags,
        "description": scenario.description,
        "cards": [{"title": title, "content": content} for title, content in scenario.cards],
    }
    text = scenario.prompt_text or None
    return ScenarioEntry(scenario.id, scenario.id, BENCH_PACK, about, scenario.title, text=text)


@dataclass(frozen=True, slots=True)
class BenchPackRule(CaseRule):
    """A scenario that its own pack runs and judges.

    Args:
        scenario: As the pack lists it.
        number: Its place in the pack's list, from 1.
        total: How many the pack lists.
        least: The score from which a partial result passes, see `BenchPackOptions.partial`.
        hash: 16 hex digits over pack, scenario and that score.
    """

    scenario: ScenarioMeta
    number: int
    total: int
    least: float | None
    hash: str

    def passes(self, result: ScenarioResult) -> bool:
        """Return whether a result passes."""
        if result.status is not PackStatus.PARTIAL or self.least is None:
            return result.status is PackStatus.PASS
        return self.least == -inf or (result.score is not None and result.score >= self.least)
