"""The manifest of a Bench Pack: what loads, what keeps it from running, what is wrong with it; the hash of the pack."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bench_pack_manifests import GONE, PUBLISHED, changed, healthy_manifest, problems_of, write_bench_pack

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackManifest, VerifierDefault
from pytest_helmbench.benchmarks.bench_packs.format.manifest import load_manifest


def loaded(root: Path, changes: Mapping[str, Any]) -> BenchPackManifest:
    return load_manifest(write_bench_pack(root, changed(changes)))


def test_a_healthy_manifest_becomes_values(tmp_path: Path) -> None:
    manifest = loaded(tmp_path, {"description": "When the water comes."})

    assert (manifest.root, manifest.path) == (tmp_path, tmp_path / "benchlocal.pack.json")
    assert (manifest.id, manifest.name, manifest.version) == ("tide-tables", "Tide tables", "2.1.0")
    assert manifest.description == "When the water comes."
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
    ],
)
def test_a_verifier_that_says_little_is_required_and_runs_as_described(
    tmp_path: Path, stated: dict[str, Any], mode: VerifierDefault, health: str
) -> None:
    manifest = loaded(tmp_path, {"verifiers": [{"id": "gauge", **stated}]})
    (verifier,) = manifest.verifiers
    assert verifier.required
    assert (verifier.default_mode, verifier.health_path) == (mode, health)
    assert verifier.url == ("https://gauge.example" if health == "/" else "")


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
            {"benchlocal": {"minVersion": "^0.2"}},
            "it requires BenchLocal '^0.2', which is not a version such as '0.3.0'",
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


_MODULE = "\n  hint: name a module of the pack, relative to this file"
_LINE = "\n  hint: one line of text, at most 200 characters"
_TEXT = json.dumps(healthy_manifest(), indent=1)


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"schemaVersion": GONE}, ["1: there is no 'schemaVersion'\n  hint: add the key 'schemaVersion'"]),
        ({"protocolVersion": True}, ["3: protocolVersion is true\n  hint: known values: 1"]),
        ({"name": "a\nb"}, [f"5: name 'a\\nb' has the wrong form{_LINE}"]),
        (
            {"entry": "/etc/passwd"},
            [f"7: entry: '/etc/passwd' is not a relative path with plain slashes{_MODULE}"],
        ),
        ({"entry": "a\0b"}, [f"7: entry: 'a\\x00b' is not a relative path with plain slashes{_MODULE}"]),
        ({"entry": "dist/../../x.js"}, [f"7: entry: 'dist/../../x.js' leads out of the pack{_MODULE}"]),
        ({"entry": "./dist"}, [f"7: entry: './dist' is a folder{_MODULE}"]),
        (
            {"entry": "./other.js"},
            [
                "7: entry: './other.js' does not exist"
                "\n  hint: build the pack (npm install, then npm run build), or take one that is built"
            ],
        ),
        (
            {"capabilities": {"tools": True}},
            ["8: capabilities has no 'verification'\n  hint: add the key 'verification'"],
        ),
        (
            {"concurrency": 0},
            [
                "24: concurrency is 0, out of range"
                "\n  hint: scenarios to run at a time on a model: a whole number from 1 on"
            ],
        ),
        (
            {"verifiers": ["gauge"]},
            ["12: verifiers entry 1 is 'gauge', not a mapping\n  hint: write a mapping"],
        ),
        (
            {"verifiers.1": {"id": "gauge"}},
            ["24: verifiers entry 2.id: 'gauge' is the id of another verifier\n  hint: rename one of them"],
        ),
        (
            {"verifiers.0.docker.listenPort": GONE},
            [
                "17: verifiers entry 1.docker has no 'listenPort'"
                "\n  hint: name the port that the verifier listens on inside of its container"
            ],
        ),
        (
            {"verifiers.0.docker.image": " --net=host"},
            [
                "21: verifiers entry 1.docker.image: ' --net=host' is not a name of an image"
                "\n  hint: write name, name:tag or name@digest"
            ],
        ),
        (
            {"verifiers.0.docker.healthcheckPath": "//evil.example/x"},
            [
                "20: verifiers entry 1.docker.healthcheckPath '//evil.example/x' has the wrong form"
                "\n  hint: a path of a URL such as '/health'"
            ],
        ),
        (
            {"verifiers.0.customUrl": {"defaultUrl": "http://x:port"}},
            [
                "23: verifiers entry 1.customUrl.defaultUrl 'http://x:port' has the wrong form"
                "\n  hint: an address such as 'http://127.0.0.1:4010'"
            ],
        ),
        (
            {
                "schemaVersion": 3,
                "version": [],
                "verifiers.0.docker.buildContext": "../elsewhere",
                "type": "tabel",
            },
            [
                "2: schemaVersion is 3\n  hint: known values: 1",
                f"6: version is a list, not text{_LINE}",
                "18: verifiers entry 1.docker.buildContext: '../elsewhere' leads out of the pack"
                "\n  hint: name a folder of the pack, relative to this file",
                "24: type is 'tabel'\n  hint: did you mean 'table'? known types: table, web",
            ],
        ),
        (
            "{\n1}",
            ["2: this is not valid JSON: expecting property name enclosed in double quotes (column 1)"],
        ),
        (
            _TEXT.replace(' "id": "tide', ' "id": "x",\n "id": "tide', 1),
            ["4: id: the key stands here twice\n  hint: keep one of them"],
        ),
    ],
)
def test_every_problem_is_told_with_its_line(
    tmp_path: Path, changes: dict[str, Any] | str, expected: list[str]
) -> None:
    document = changes if isinstance(changes, str) else changed(changes)
    assert problems_of(write_bench_pack(tmp_path, document)) == expected


@pytest.mark.parametrize("path", ["entry", "verifiers.0.docker.buildContext"])
def test_a_link_must_not_lead_out_of_the_pack(tmp_path: Path, path: str) -> None:
    outside = tmp_path / "outside"
    (outside / "in").mkdir(parents=True)
    (outside / "in" / "index.js").touch()
    root = tmp_path / "pack"
    manifest = changed({path: "link/in/index.js" if path == "entry" else "link/in"})
    write_bench_pack(root, manifest)
    (root / "link").symlink_to(outside)

    (problem,) = problems_of(root)
    assert "leads out of the pack" in problem

    (root / "link").unlink()
    (outside / "in").rename(root / "kept")
    (root / "link").mkdir()
    (root / "link" / "in").symlink_to(root / "kept")  # a link that stays inside is fine
    assert load_manifest(root).obstacle is None


def test_the_hash_is_that_of_names_and_contents(tmp_path: Path) -> None:
    root = write_bench_pack(tmp_path / "pack")
    first = load_manifest(root).hash
    assert len(first) == 64
    copy = shutil.copytree(root, tmp_path / "copy")
    assert load_manifest(copy).hash == first

    for folder in (
        ".git",
        "node_modules/left-pad",
        "verification/node_modules",
        "verification/__pycache__",
        ".helmbench",
    ):
        (copy / folder).mkdir(parents=True)
        (copy / folder / "file").write_text("not of the pack")
    for name in ("helmbench.db", "helmbench.db-wal"):
        (copy / name).write_text("results of a run in the pack")
    (copy / "empty").mkdir()
    (copy / "dist" / "benchlocal" / "index.js").chmod(0o755)
    assert load_manifest(copy).hash == first

    seen = {first}
    (copy / "verification" / "Dockerfile").write_text("FROM scratch\n")
    seen.add(load_manifest(copy).hash)
    (copy / "verification" / "Dockerfile").rename(copy / "verification" / "Dockerfile.old")
    seen.add(load_manifest(copy).hash)
    (copy / "verification" / ".hidden").touch()
    seen.add(load_manifest(copy).hash)
    (copy / "data").symlink_to("verification")
    seen.add(load_manifest(copy).hash)
    (copy / "data").unlink()
    (copy / "data").symlink_to("dist")
    seen.add(load_manifest(copy).hash)
    os.mkfifo(copy / "pipe")  # is not waited for
    seen.add(load_manifest(copy).hash)
    assert len(seen) == 7


def test_a_link_out_of_a_pack_is_refused(tmp_path: Path) -> None:
    root = write_bench_pack(tmp_path / "pack")
    (root / "inside").symlink_to("dist")
    load_manifest(root)
    (root / "node_modules").mkdir()
    (root / "node_modules" / "everything").symlink_to("/")
    assert problems_of(root) == [
        "node_modules/everything: a link that leads out of the Bench Pack\n  hint: put the file itself there"
    ]
