"""The manifest of a Bench Pack: what loads, and what keeps it from running."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bench_pack_manifests import PUBLISHED, changed, write_bench_pack

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackManifest, VerifierDefault
from pytest_helmbench.benchmarks.bench_packs.format.manifest import load_manifest


def loaded(root: Path, changes: Mapping[str, Any]) -> BenchPackManifest:
    return load_manifest(write_bench_pack(root, changed(changes)))


def test_a_healthy_manifest_becomes_values(tmp_path: Path) -> None:
    manifest = loaded(tmp_path, {"author": "harbour", "description": "When the water comes."})

    assert (manifest.root, manifest.path) == (tmp_path, tmp_path / "benchlocal.pack.json")
    assert (manifest.id, manifest.name, manifest.version) == ("tide-tables", "Tide tables", "2.1.0")
    assert (manifest.author, manifest.description) == ("harbour", "When the water comes.")
    assert manifest.entry == tmp_path / "dist/benchlocal/index.js"
    assert manifest.sampling_defaults == {}
    assert manifest.obstacle is None
    (verifier,) = manifest.verifiers
    assert (verifier.id, verifier.required, verifier.default_mode) == ("gauge", True, VerifierDefault.DOCKER)
    assert (verifier.image, verifier.build_context) == ("", tmp_path / "verification")
    assert (verifier.listen_port, verifier.health_path) == (4010, "/health")


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_published_packs_look_like_loads(tmp_path: Path, name: str) -> None:
    document: dict[str, Any] = {"entry": "./dist/benchlocal/index.js"} | PUBLISHED[name]

    manifest = load_manifest(write_bench_pack(tmp_path, document))

    assert manifest.sampling_defaults == document.get("samplingDefaults", {})
    assert (manifest.obstacle is None) is (document.get("type") != "web")
    assert all(verifier.listen_port == 4010 for verifier in manifest.verifiers)
    declared = [*document.get("verifiers", ()), *document.get("sidecars", ())]
    assert [verifier.id for verifier in manifest.verifiers] == [entry["id"] for entry in declared]


def test_newer_names_win(tmp_path: Path) -> None:
    older = {"id": "old", "docker": {"containerPort": 1}}
    newer = {"id": "new", "docker": {"containerPort": 1, "listenPort": 2}}
    manifest = loaded(tmp_path, {"sidecars": [older], "verifiers": [newer]})
    assert [(verifier.id, verifier.listen_port) for verifier in manifest.verifiers] == [("new", 2)]

    manifest = loaded(tmp_path, {"sidecars": [older], "verifiers": None})
    assert [(verifier.id, verifier.listen_port) for verifier in manifest.verifiers] == [("old", 1)]


@pytest.mark.parametrize(
    ("stated", "mode", "health"),
    [
        ({"docker": {"listenPort": 80}, "cloud": {}}, VerifierDefault.DOCKER, ""),
        ({"customUrl": {"healthcheckPath": "alive"}, "cloud": {}}, VerifierDefault.CUSTOM_URL, "/alive"),
        ({"cloud": {"baseUrl": "https://gauge.example", "healthcheckPath": "/"}}, VerifierDefault.CLOUD, "/"),
        ({}, VerifierDefault.CUSTOM_URL, ""),
        (
            {
                "defaultMode": "cloud",
                "docker": {"listenPort": 80, "healthcheckPath": "/docker"},
                "cloud": {"healthcheckPath": "/cloud"},
            },
            VerifierDefault.CLOUD,
            "/cloud",
        ),
        (
            {"defaultMode": "cloud", "docker": {"listenPort": 80, "healthcheckPath": "/docker"}},
            VerifierDefault.CLOUD,
            "/docker",
        ),
    ],
)
def test_a_verifier_that_says_little_is_required_and_runs_as_described(
    tmp_path: Path, stated: dict[str, Any], mode: VerifierDefault, health: str
) -> None:
    manifest = loaded(tmp_path, {"verifiers": [{"id": "gauge", **stated}]})
    (verifier,) = manifest.verifiers
    assert verifier.required
    assert (verifier.default_mode, verifier.health_path) == (mode, health)
    assert verifier.cloud_url == stated.get("cloud", {}).get("baseUrl", "")


_OURS = "this host offers what 0.3.0 does"


@pytest.mark.parametrize(
    ("requirements", "obstacle"),
    [
        ({}, None),
        (None, None),
        ({"benchlocal": {"minVersion": "0.3.0-beta.1", "maxVersionExclusive": "1"}}, None),
        ({"benchlocal": {"minVersion": " v0.3.0+build.7 ", "maxVersionExclusive": "0.3.1-0"}}, None),
        ({"hostFeatures": ["dockerInferenceEndpoints", " inferenceEndpoints ", " "]}, None),
        (
            {"benchlocal": {"minVersion": "0.3.1-beta.1"}},
            f"it requires BenchLocal 0.3.1-beta.1 or newer; {_OURS}",
        ),
        (
            {"benchlocal": {"maxVersionExclusive": "0.3.0"}},
            f"it requires a BenchLocal older than 0.3.0; {_OURS}",
        ),
        (
            {"benchlocal": {"maxVersionExclusive": "0.3.0-rc.1"}},
            f"it requires a BenchLocal older than 0.3.0-rc.1; {_OURS}",
        ),
        (
            {"benchlocal": {"minVersion": "^0.2"}},
            "it requires BenchLocal '^0.2', which is no version such as '0.3.0'",
        ),
        (
            {"benchlocal": {"minVersion": "0." + "9" * 5000}},
            f"it requires BenchLocal '0.{'9' * 53}…', which is no version such as '0.3.0'",
        ),
        (
            {"hostFeatures": ["telepathy", "inferenceEndpoints", "levitation"]},
            "it requires 'telepathy', 'levitation' of its host, which offers inferenceEndpoints and"
            " dockerInferenceEndpoints",
        ),
    ],
)
def test_a_requirement_that_we_do_not_meet_is_an_obstacle(
    tmp_path: Path, requirements: dict[str, Any] | None, obstacle: str | None
) -> None:
    assert loaded(tmp_path, {"requirements": requirements}).obstacle == obstacle


@pytest.mark.parametrize(
    "changes", [{"entry": "https://arena.example/"}, {"type": "web", "entry": "https://arena.example/"}]
)
def test_a_page_on_the_web_is_an_obstacle(tmp_path: Path, changes: dict[str, Any]) -> None:
    expected = "it is a page on the web ('https://arena.example/'), which only the desktop app can show"
    assert loaded(tmp_path, changes).obstacle == expected


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"measures": "speed"}, []),
        (
            {"measures": "Speed"},
            ["measures: 'Speed' is not known and says nothing did you mean 'speed'? known: speed"],
        ),
        ({"measures": {"kind": "speed"}}, ['measures: {"kind": "speed"} is not known and says nothing']),
        ({"measures": 5}, ["measures: 5 is not known and says nothing"]),
    ],
)
def test_what_is_measured_and_not_known_is_a_warning(
    tmp_path: Path, changes: dict[str, Any], said: list[str]
) -> None:
    manifest = loaded(tmp_path, changes)
    found = [f"{problem.message} {problem.hint}" for problem in manifest.warnings]
    assert len(found) == len(said)
    assert all(one.startswith(start) for one, start in zip(found, said, strict=True))
    assert manifest.measures_speed is (changes["measures"] == "speed")
