"""Bench Packs as real folders: written by tests in a few lines, CommonJS or ES module."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_helmbench.benchmarks.bench_packs.node.command import BridgePlace

__all__ = ["ENTRY", "pack_place", "write_bench_pack_folder"]

ENTRY = "dist/benchlocal/index.js"

_COMMONJS = """\
"use strict";
const {{ defineBenchPack, loadBenchPackManifest }} = require("@benchlocal/sdk");
{head}
module.exports = defineBenchPack({{
  manifest: loadBenchPackManifest(__dirname),
{body}
}});
"""
_ES_MODULE = """\
import {{ defineBenchPack, loadBenchPackManifest }} from "@benchlocal/sdk";
{head}
export default defineBenchPack({{
  manifest: loadBenchPackManifest(new URL(".", import.meta.url).href),
{body}
}});
"""
_BODY = """\
  async listScenarios() {{ return {scenarios}; }},
  async prepare(context) {{
    {prepare}
    return {{
      async runScenario(input, emit) {{
        const result = (more) => ({{
          scenarioId: input.scenario.id, status: "pass", score: 100, summary: "done", rawLog: "", ...more
        }});
        const act = {{ {runs} }}[input.scenario.id];
        return act === undefined ? result() : act();
      }},
      async dispose() {{ {dispose} }},
    }};
  }},
  scoreModelResults(results) {{
    {score}
    const total = results.reduce((sum, one) => sum + (one.score ?? 0), 0) / Math.max(results.length, 1);
    return {{ totalScore: total, categories: [{{ id: "all", label: "All", score: total }}] }};
  }},
"""


def write_bench_pack_folder(
    root: Path,
    runs: Mapping[str, str],
    *,
    es_module: bool = False,
    manifest: Mapping[str, Any] | None = None,
    source: str | None = None,
    **parts: str,
) -> Path:
    """Write a Bench Pack and return its folder.

    Args:
        root: The folder; made.
        runs: Scenario ids, each with the JavaScript function that runs it, which sees `input`, `emit`, `context` and
            `result(more)`: `"async () => result({ score: 50 })"`. Empty text for a scenario that simply passes.
        es_module: Write an ES module instead of CommonJS.
        manifest: Keys that differ from those of a small manifest.
        source: The whole entry instead of the generated one.
        parts: JavaScript statements at the start of `head` (the module), `prepare`, `dispose` and `score`.
    """
    entry = root / ENTRY
    entry.parent.mkdir(parents=True)
    stated = {
        "schemaVersion": 1,
        "protocolVersion": 1,
        "id": "small-pack",
        "name": "Small pack",
        "version": "1.0.0",
        "entry": f"./{ENTRY}",
        "capabilities": {
            "tools": False,
            "multiTurn": False,
            "streamingProgress": True,
            "verification": False,
        },
        **(manifest or {}),
    }
    (root / "benchlocal.pack.json").write_text(json.dumps(stated, indent=2), encoding="utf-8")
    if es_module:
        (root / "package.json").write_text('{"type": "module"}', encoding="utf-8")
    entry.write_text(_entry(runs, es_module, parts) if source is None else source, encoding="utf-8")
    return root


def pack_place(root: Path, work: Path) -> BridgePlace:
    """Return where a pack is and may write: four folders of its own below `work`."""
    folders = [work / name for name in ("data", "cache", "runs", "home")]
    for folder in folders:
        folder.mkdir(parents=True, exist_ok=True)
    return BridgePlace(root, root / ENTRY, *folders)


def _entry(runs: Mapping[str, str], es_module: bool, parts: Mapping[str, str]) -> str:
    scenarios: Sequence[Mapping[str, str]] = [{"id": name, "title": f"Scenario {name}"} for name in runs]
    body = _BODY.format(
        scenarios=json.dumps(scenarios),
        runs=", ".join(f"{json.dumps(name)}: {act}" for name, act in runs.items() if act),
        **{name: parts.get(name, "") for name in ("prepare", "dispose", "score")},
    )
    return (_ES_MODULE if es_module else _COMMONJS).format(head=parts.get("head", ""), body=body)
