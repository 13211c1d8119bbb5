"""What is run: benchmarks of any size, and the same prompts in a file for tools that know no benchmarks."""

from __future__ import annotations

import heapq
import json
import math
from collections.abc import Iterable
from pathlib import Path

from perf.mock import latency_s

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree

__all__ = [
    "semaphore_wall_s",
    "tail_latencies_s",
    "write_bench_pack",
    "write_forest",
    "write_heavy_schema",
    "write_prompts",
    "write_tree",
]

_CONDITIONS = 10
_WORDS = [
    "account",
    "order",
    "refund",
    "ticket",
    "invoice",
    "payment",
    "delivery",
    "screen",
    "policy",
    "address",
    "upgrade",
    "password",
    "customer",
    "urgent",
    "please",
    "replace",
    "broken",
    "yesterday",
    "contract",
    "number",
    "shipping",
    "update",
    "cancel",
]
_SCHEMA = {
    "type": "object",
    "properties": {"category": {"type": "string", "enum": ["CHAT", "HANDOFF"]}},
    "required": ["category"],
    "additionalProperties": False,
}
_FINDINGS = 300
_ASKING = """
  const response = await fetch(`${provider.baseUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${secret.value}` },
    body: JSON.stringify({ model: input.model.model, messages: [{ role: "user", content: TEXT + input.scenario.id }] }),
  });
  const reply = (await response.json()).choices[0].message.content;
"""
_BENCH_PACK = """
const TEXT = "%s";
module.exports = {
  async listScenarios() {
    return Array.from({ length: %d }, (_, number) => ({ id: `S-${number + 1}`, title: `Scenario ${number + 1}` }));
  },
  async prepare({ providers: [provider], secrets: [secret] }) {
    return {
      async runScenario(input) {
        %s
        return { scenarioId: input.scenario.id, status: "pass", score: 100, summary: "ok", rawLog: reply };
      },
      async dispose() {},
    };
  },
  scoreModelResults: (results) => ({ totalScore: results.length, categories: [] }),
};
"""


def write_tree(root: Path, cases: int) -> None:
    """Write a benchmark of that many cases, some 1,300 characters each, in `root/benchmark`."""
    _write_scenario(root, 0, cases)


def write_forest(root: Path, scenarios: int, cases: int) -> None:
    """Write a benchmark of many scenarios in `root/benchmark`, each of that many cases."""
    for number in range(scenarios):
        _write_scenario(root, number, cases)


def _write_scenario(root: Path, number: int, cases: int) -> None:
    pillar, behaviour, name = 1 + number // 100, 1 + number // 10 % 10, f"S{1 + number % 10}"
    folder = root / "benchmark" / "scenarios" / f"P{pillar}-B{behaviour}-{name}"
    folder.mkdir(parents=True)
    (folder / f"{name}.json").write_text(json.dumps(_SCHEMA), encoding="utf-8")
    (folder / f"{name}.md").write_text(
        f"---\ncategory: HANDOFF\n---\n\n## Your job\n\nClassify{f' {number}' if number else ''}.\n",
        encoding="utf-8",
    )
    (folder / "conditions.md").write_text(
        "".join(
            f"# C{place}\n\n## Instructions\n\nCondition {place}.\n\n" for place in range(1, _CONDITIONS + 1)
        ),
        encoding="utf-8",
    )
    (folder / "perturbations.md").write_text(
        "".join(
            f"# PT{place}\n---\nseverity: {1 + place % 9}\n---\n\n## Input\n\n"
            f"Message {place}. {_text(place + number)}\n\n"
            for place in range(1, _messages(cases) + 1)
        ),
        encoding="utf-8",
    )


def write_bench_pack(root: Path, scenarios: int, *, asks: bool) -> None:
    """Write a Bench Pack in `root/pack` whose scenarios ask their model once, or do nothing at all."""
    entry = root / "pack" / "dist" / "benchlocal" / "index.js"
    entry.parent.mkdir(parents=True)
    manifest = {
        "schemaVersion": 1,
        "protocolVersion": 1,
        "id": "load",
        "name": "Load",
        "version": "1.0.0",
        "entry": "./dist/benchlocal/index.js",
        "capabilities": {"verification": False},
    }
    (root / "pack" / "benchlocal.pack.json").write_text(json.dumps(manifest), encoding="utf-8")
    act = _ASKING if asks else 'const reply = "";'
    entry.write_text(_BENCH_PACK % (_text(1), scenarios, act), encoding="utf-8")


def write_prompts(root: Path) -> Path:
    """Write the prompts of the benchmark in `root` as JSON lines, in the order in which pytest runs them."""
    benchmark = load_tree(root / "benchmark")
    prompts = root / "prompts.jsonl"
    with prompts.open("w", encoding="utf-8") as file:
        for scenario in benchmark.scenarios.values():
            for combination in scenario.combinations():
                line = {"name": combination.code, "prompt": combination.prompt(), "target": "HANDOFF"}
                file.write(json.dumps(line) + "\n")
    return prompts


def write_heavy_schema(root: Path) -> Path:
    """Let the benchmark in `root` want long lists of findings; return a file with a reply that takes long to check."""
    finding = {
        "type": "object",
        "properties": {
            "rule": {"type": "string", "pattern": "^R[0-9]{3}$"},
            "severity": {"type": "integer", "minimum": 0, "maximum": 9},
            "quote": {"type": "string", "maxLength": 200},
            "tags": {
                "type": "array",
                "items": {"type": "string", "enum": ["A", "B", "C", "D"]},
                "maxItems": 4,
            },
        },
        "required": ["rule", "severity", "quote", "tags"],
        "additionalProperties": False,
    }
    properties = {**_SCHEMA["properties"], "findings": {"type": "array", "items": finding}}  # type: ignore[dict-item]
    schema = {**_SCHEMA, "properties": properties, "required": list(properties)}
    path = root / "benchmark" / "scenarios" / "P1-B1-S1" / "S1.json"
    path.write_text(json.dumps(schema), encoding="utf-8")
    findings = [
        {"rule": f"R{number:03}", "severity": number % 10, "quote": _text(number)[:60], "tags": ["A", "C"]}
        for number in range(_FINDINGS)
    ]
    answer = root / "answer.json"
    answer.write_text(json.dumps({"category": "HANDOFF", "findings": findings}), encoding="utf-8")
    return answer


def tail_latencies_s(cases: int, median_s: float, sigma: float) -> list[float]:
    """Return what the provider takes for every case, in the order in which pytest runs them."""
    return [
        latency_s(condition, message, median_s, sigma)
        for condition in range(1, _CONDITIONS + 1)
        for message in range(1, _messages(cases) + 1)
    ]


def semaphore_wall_s(latencies_s: Iterable[float], places: int) -> float:
    """Return how long calls of these latencies take that start in order, as many at once as there are places."""
    free_at_s = [0.0] * places
    for latency in latencies_s:
        heapq.heapreplace(free_at_s, free_at_s[0] + latency)
    return max(free_at_s)


def _messages(cases: int) -> int:
    return math.ceil(cases / _CONDITIONS)


def _text(number: int) -> str:
    return " ".join(_WORDS[(number * 7 + k * (1 + number % 5)) % len(_WORDS)] for k in range(180))
