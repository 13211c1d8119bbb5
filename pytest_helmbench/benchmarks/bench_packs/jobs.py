"""Bench Packs as jobs: every scenario, on every model."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from pytest_helmbench.benchmarks.bench_packs.bench_pack import (
    BENCH_PACK,
    BenchPackManifest,
    BenchPackOutline,
    BenchPackRule,
    ScenarioMeta,
    ScenarioResult,
)
from pytest_helmbench.benchmarks.bench_packs.work import BenchPackWork, item_limits_name
from pytest_helmbench.benchmarks.kind import JudgedByItself
from pytest_helmbench.core.case import Case
from pytest_helmbench.core.light_dataclass import dataclass
from pytest_helmbench.core.outcome import Outcome
from pytest_helmbench.core.problem import Problem
from pytest_helmbench.engine.job import CaseJob, Target
from pytest_helmbench.engine.work import RunnerSettings
from pytest_helmbench.gateway.permits import ModelLimits
from pytest_helmbench.options.option import least_score_text

_HASH_DIGITS = 16


@dataclass(frozen=True, slots=True, eq=False)
class BenchPackJob(CaseJob):
    """A scenario on its way.

    Args:
        loaded: Its pack.
        scenario: As the pack lists it.
        number: Its place in the pack's list, from 1.
    """

    loaded: LoadedBenchPack
    scenario: ScenarioMeta
    number: int

    @property
    def may_wait(self) -> bool:
        return False

    @property
    def code(self) -> str:
        """The scenario's id."""
        return self.scenario.id

    @property
    def family(self) -> str:
        """`bench_pack`: packs are all of one family."""
        return BENCH_PACK

    def prompt_characters(self) -> int:
        """Return the length of what the pack shows of its prompt; only its code knows what it will ask."""
        return len(self.scenario.prompt_text)

    def case(self, _system_prompt: str | None) -> Case:
        """See `CaseJob.case`; there is nothing to compose: the pack writes its own prompts."""
        return Case(self.code, (), None, self.loaded.rule(self.scenario, self.number))

    @property
    def work(self) -> BenchPackWork:
        """The work of its pack, which all its scenarios share."""
        return self.loaded.work

    @property
    def is_one_question(self) -> bool:
        """False: the pack asks what it likes."""
        return False

    def rule_hashes(self, case: Case, _settings: RunnerSettings) -> tuple[str, ...]:
        return (case.rule.hash,) if isinstance(case.rule, BenchPackRule) else ()

    def facts(self) -> dict[str, str | int | None]:
        """Return what the `helmbench` marker says."""
        return {
            "benchmark": self.loaded.outline.name,
            "scenario": self.code,
            "category": self.scenario.category or None,
            "model": self.model_id,
            "family": BENCH_PACK,
            "severity": 0,
            "repetition": self.repetition,
        }

    def properties(self, outcome: Outcome) -> list[tuple[str, object]]:
        """Return the JUnit properties, those of the pack's own scale too."""
        # By name, since a class with slots is made anew and `super()` looks for the first one.
        own = CaseJob.properties(self, outcome)
        result = outcome.statement
        if not isinstance(result, ScenarioResult):
            return own
        stated = {"pack_status": str(result.status), "pack_score": result.score, "pack_points": result.points}
        return [*own, *((name, value) for name, value in stated.items() if value is not None)]


class LoadedBenchPack(JudgedByItself):
    """A Bench Pack with the models it runs on. A fault of a part is one of the whole pack.

    Args:
        manifest: Checked.
        scenarios: As the pack lists them; empty where it cannot be asked: one represents all of them then.
        targets: One per model, in order.
        work: How its scenarios are run.
        least: See `BenchPackRule`.
    """

    def __init__(
        self,
        manifest: BenchPackManifest,
        scenarios: Sequence[ScenarioMeta],
        targets: tuple[Target, ...],
        work: BenchPackWork,
        least: float | None,
    ) -> None:
        self.manifest = manifest
        self.targets = targets
        self.work = work
        self._least = least
        self.warnings: Sequence[Problem] = ()
        self.stands_for_all = not scenarios
        scenarios = scenarios or (ScenarioMeta(manifest.id, manifest.name),)
        self.outline = BenchPackOutline(
            root=manifest.root,
            name=manifest.id,
            version=manifest.version,
            description=manifest.description,
            hash=manifest.hash,
            scenarios={scenario.id: scenario for scenario in scenarios},
        )

    @property
    def root(self) -> Path:
        """The folder of the manifest."""
        return self.manifest.root

    @property
    def item_limits(self) -> Iterator[ModelLimits]:
        """The limits that bound how many of its scenarios run at a time, where something does."""
        for target in self.targets:
            most = self.work.most_at_once(target.model.endpoint)
            if most is not None:
                yield ModelLimits(
                    item_limits_name(self.manifest, target.model.entry.id), most, free=True, items=True
                )

    @property
    def files(self) -> tuple[Path, ...]:
        """The manifest."""
        return (self.manifest.path,)

    def cases_in(self, path: Path) -> bool:
        """Return whether a file is its manifest."""
        return path == self.manifest.path

    def jobs(self, _path: Path, file_id: str, repeat: int) -> Iterator[BenchPackJob]:
        for number, scenario in enumerate(self.outline.scenarios.values(), 1):
            for target in self.targets:
                for repetition in range(1, repeat + 1):
                    yield BenchPackJob(target, repetition, False, file_id, self, scenario, number)

    def count(self) -> int:
        return len(self.outline.scenarios)

    def rule(self, scenario: ScenarioMeta, number: int) -> BenchPackRule:
        """Return the rule for a scenario."""
        decisive = f"{self.manifest.hash}\n{scenario.id}\n{least_score_text(self._least)}"
        digest = hashlib.sha256(decisive.encode("utf-8", "surrogatepass")).hexdigest()
        return BenchPackRule(scenario, number, self.count(), self._least, digest[:_HASH_DIGITS])
