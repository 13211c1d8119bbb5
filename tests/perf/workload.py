"""Workloads: benchmarks of any size, and the same prompts in a file for tools that know no benchmarks."""

from __future__ import annotations

import json
import math
from pathlib import Path

from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree

_CONDITIONS = 10
_WORDS = [
    "account",
    "order",
    "refund",
    "ticket",
    "invoice",
    "payment",
    "delivery",
    "policy",
    "upgrade",
    "contract",
]
_SCHEMA = {
    "type": "object",
    "properties": {"category": {"type": "string", "enum": ["CHAT", "HANDOFF"]}},
    "required": ["category"],
    "additionalProperties": False,
}
_FINDINGS = 300


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


def _messages(cases: int) -> int:
    return math.ceil(cases / _CONDITIONS)


def _text(number: int) -> str:
    return " ".join(_WORDS[(number * 7 + k * (1 + number % 5)) % len(_WORDS)] for k in range(180))
