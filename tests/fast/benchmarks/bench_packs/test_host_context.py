"""The context that a Bench Pack receives: its host, its model and its run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_pack_manifests import write_bench_pack

from pytest_helmbench.benchmarks.bench_packs.bench_pack import ScenarioMeta
from pytest_helmbench.benchmarks.bench_packs.format.manifest import load_manifest
from pytest_helmbench.benchmarks.bench_packs.node.command import BridgePlace
from pytest_helmbench.benchmarks.bench_packs.node.host_context import (
    host_context,
    merged_generation,
    run_input,
)
from pytest_helmbench.core.json_types import JsonObject
from pytest_helmbench.core.model import Sampling
from pytest_helmbench.gateway.relay.relay import RelayAddress


@pytest.mark.parametrize(
    ("defaults", "overrides", "expected"),
    [
        ({}, Sampling(), {"request_timeout_seconds": 120}),
        (
            {"temperature": 0, "stream": True, "request_timeout_seconds": 600, "top_p": None},
            Sampling(),
            {"request_timeout_seconds": 600, "temperature": 0, "stream": True},
        ),
        ({"request_timeout_seconds": None}, Sampling(), {"request_timeout_seconds": 120}),
        (
            {"temperature": 0, "seed": 1, "stop": ["x"]},
            Sampling(0.5, 0.9, 40, 0.05, 1.1, 7, 256),
            {
                "request_timeout_seconds": 120,
                "temperature": 0.5,
                "seed": 7,
                "stop": ["x"],
                "top_p": 0.9,
                "top_k": 40,
                "min_p": 0.05,
                "repetition_penalty": 1.1,
                "max_tokens": 256,
            },
        ),
        (
            {"temperature": 1, "reasoning": {"budget_tokens": 9}},
            Sampling(temperature=0, reasoning_effort="low"),
            {"request_timeout_seconds": 120, "temperature": 0, "reasoning": {"effort": "low"}},
        ),
        (
            {"extra_body": {"a": 1, "b": 1}},
            Sampling(extra_body={"b": 2, "c": {"d": None}}),
            {"request_timeout_seconds": 120, "extra_body": {"a": 1, "b": 2, "c": {"d": None}}},
        ),
        (
            {"extra_body": "nonsense"},
            Sampling(extra_body={}),
            {"request_timeout_seconds": 120, "extra_body": {}},
        ),
    ],
)
def test_the_host_then_the_pack_then_the_user(
    defaults: dict[str, Any], overrides: Sampling, expected: dict[str, Any]
) -> None:
    before = json.dumps(defaults)
    assert merged_generation(defaults, overrides, 120.0) == expected
    assert json.dumps(defaults) == before


@pytest.fixture
def place(tmp_path: Path) -> BridgePlace:
    root = write_bench_pack(tmp_path / "pack")
    entry = root / "dist/benchlocal/index.js"
    return BridgePlace(root, entry, tmp_path / "data", tmp_path / "cache", tmp_path / "runs", tmp_path)


def test_the_context_is_that_of_one_item(place: BridgePlace, tmp_path: Path) -> None:
    gauge: JsonObject = {"id": "gauge", "status": "running", "url": "http://127.0.0.1:9", "port": 9}

    context: Any = host_context(
        load_manifest(place.root),
        place,
        "vendor/model",
        RelayAddress("http://127.0.0.1:4711/a/v1", "t"),
        "",
        [gauge],
    )

    assert json.loads(json.dumps(context)) == context
    assert context["protocolVersion"] == 1
    assert context["benchPack"] == {
        "id": "tide-tables",
        "version": "2.1.0",
        "installDir": str(tmp_path / "pack"),
        "dataDir": str(tmp_path / "data"),
        "cacheDir": str(tmp_path / "cache"),
        "runsDir": str(tmp_path / "runs"),
    }
    assert context["verifiers"] == [gauge]
    assert context["sidecars"] is context["verifiers"]
    assert set(context) == {
        "protocolVersion",
        "benchPack",
        "providers",
        "models",
        "secrets",
        "verifiers",
        "sidecars",
        "inferenceEndpoints",
    }


def test_a_scenario_is_handed_back_as_it_was_listed(place: BridgePlace) -> None:
    stated: JsonObject = {"id": "A", "category": "Words", "weight": 3}
    generation = {"temperature": 0}
    given = run_input(
        "run-7", load_manifest(place.root), ScenarioMeta("A", "A", stated=stated), "m", generation
    )
    assert given == {
        "runId": "run-7",
        "benchPackId": "tide-tables",
        "scenario": {"id": "A", "title": "A", "category": "Words", "weight": 3},
        "model": given["model"],
        "generation": {"temperature": 0},
    }
    assert given["generation"] is not generation
