"""The jobs of scenario trees: a combination, the model it goes to, and the run it belongs to."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from pytest_helmbench.bench.model import ModelEntry
from pytest_helmbench.bench.outcome import Outcome
from pytest_helmbench.bench.problem import Problem
from pytest_helmbench.bench.rule import JudgeRule
from pytest_helmbench.bench.tree import Benchmark, Combination
from pytest_helmbench.gateway.providers import Endpoint, Unusable

__all__ = [
    "CaseJob",
    "LoadedBenchmark",
    "Route",
    "Target",
    "escaped_id",
    "escaped_path",
    "weighted_behaviours",
]


@dataclass(frozen=True, slots=True)
class Route:
    """A model and where its calls go.

    Args:
        entry: Everything that was said about the model, overrides applied.
        endpoint: Where it is reached, or why it is not.
    """

    entry: ModelEntry
    endpoint: Endpoint | Unusable

    @property
    def usable(self) -> bool:
        """Whether a call can be made."""
        return not isinstance(self.endpoint, Unusable)


@dataclass(slots=True, eq=False)
class Target:
    """One benchmark × model: what becomes one run.

    Args:
        benchmark: Root folder of the benchmark.
        model: Model under test.
        judge: Marking model; None when none is named.
        run_id: `evaluation_runs.id`, once the run is open.
    """

    benchmark: Path
    model: Route
    judge: Route | None
    run_id: int | None = None

    @property
    def key(self) -> tuple[str, str]:
        """Root folder and model id, the same in every process of a session."""
        return str(self.benchmark), self.model.entry.id


@dataclass(frozen=True, slots=True, eq=False)
class CaseJob:
    """One case × model × repetition, hashable by identity; the prompt is composed when it runs.

    Args:
        combination: The case.
        target: Where it goes.
        repetition: From 1.
        neutral: Judged, but ignored by scores.
        file_id: Node id of the scenario file.
    """

    combination: Combination
    target: Target
    repetition: int
    neutral: bool
    file_id: str

    @property
    def lane(self) -> str:
        """The model id: what limits fall under."""
        return self.target.model.entry.id

    @property
    def name(self) -> str:
        """`P1-B2-S1-C1-PT3[openai/gpt-4o-mini]`; `-r2` behind the model from the second repetition."""
        suffix = f"-r{self.repetition}" if self.repetition > 1 else ""
        return f"{self.combination.code}[{escaped_id(self.target.model.entry.id)}{suffix}]"

    @property
    def node_id(self) -> str:
        """pytest's node id."""
        return f"{self.file_id}::{self.name}"

    @property
    def judge_calls(self) -> int:
        """Calls to the judge that the rule needs."""
        rule = self.combination.scenario.rule
        return len(rule.criteria) if isinstance(rule, JudgeRule) else 0

    def facts(self) -> dict[str, str | int | None]:
        """Return what the `helmbench` marker says."""
        combination = self.combination
        scenario = combination.scenario
        return {
            "pillar": scenario.pillar,
            "behaviour": scenario.behaviour,
            "scenario": scenario.code,
            "condition": combination.condition.code if combination.condition else None,
            "user_context": combination.user_context.code if combination.user_context else None,
            "perturbation": combination.perturbation.code,
            "model": self.target.model.entry.id,
            "family": scenario.family,
            "severity": combination.severity,
            "repetition": self.repetition,
        }

    def properties(self, outcome: Outcome) -> list[tuple[str, object]]:
        """Return the JUnit properties of an outcome; what is unknown is left out."""
        usage = outcome.usage
        values = {
            "model": self.target.model.entry.id,
            "severity": self.combination.severity,
            "cost_usd": usage.cost_usd,
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "latency_ms": None if outcome.latency_ms is None else round(outcome.latency_ms, 1),
        }
        return [(name, value) for name, value in values.items() if value is not None]


class LoadedBenchmark:
    """A benchmark with the models it runs on, and its broken files by the file that stands for them.

    Args:
        benchmark: As loaded.
        targets: One per model, in order.
    """

    def __init__(self, benchmark: Benchmark, targets: tuple[Target, ...]) -> None:
        self.benchmark = benchmark
        self.targets = targets
        self.hosts = _hosts(benchmark)
        self._weighted = weighted_behaviours(benchmark)

    def is_neutral(self, combination: Combination) -> bool:
        """Return whether a case has base severity 0 in a behaviour that has other severities."""
        return combination.severity == 0 and combination.scenario.behaviour in self._weighted

    def problems_of_code(self, code: str) -> tuple[Problem, ...]:
        """Return every problem of a scenario, whatever its file."""
        broken = self.benchmark.broken
        return tuple(
            problem
            for path, problems in self.benchmark.problems.items()
            if broken[path] == code
            for problem in problems
        )


def weighted_behaviours(benchmark: Benchmark) -> frozenset[str]:
    """Return the behaviours in which some case has a base severity other than 0."""
    return frozenset(
        scenario.behaviour
        for scenario in benchmark.scenarios.values()
        if any(
            perturbation.weight + context != 0
            for perturbation in scenario.perturbations
            for context in {part.weight for part in scenario.user_contexts}
            | ({0} if not scenario.user_contexts else set())
        )
    )


def escaped_id(text: str) -> str:
    r"""Return a text for a node id: printable ASCII, no `::`; the rest as `\x..`."""
    safe = text.replace("::", r"\x3a\x3a")
    if safe.isascii() and safe.isprintable():
        return safe
    return "".join(
        character if character.isascii() and character.isprintable() else _escaped(character)
        for character in safe
    )


def escaped_path(text: str) -> str:
    r"""Return a path for a node id: what is not printable, or no UTF-8 at all, as `\x..`; letters stay."""
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _escaped(character) for character in text)


def _escaped(character: str) -> str:
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogatepass"))


def _hosts(benchmark: Benchmark) -> dict[Path, tuple[tuple[str, tuple[Problem, ...]], ...]]:
    """Give every broken file an existing file that stands for it: itself, or a neighbour when it is missing."""
    hosts: dict[Path, dict[str, list[Problem]]] = defaultdict(lambda: defaultdict(list))
    for path, problems in benchmark.problems.items():
        hosts[_host(path, benchmark)][benchmark.broken[path]].extend(problems)
    return {
        path: tuple((code, tuple(problems)) for code, problems in by_code.items())
        for path, by_code in hosts.items()
    }


def _host(path: Path, benchmark: Benchmark) -> Path:
    if path.is_file():
        return path
    prompt = f"{benchmark.broken[path].rpartition('-')[2]}.md"
    for folder in path.parents:
        files = sorted(file for file in folder.rglob("*") if file.is_file()) if folder.is_dir() else []
        if files:
            return next((file for file in files if file.name == prompt), files[0])
        if folder == benchmark.root:
            break
    return path
