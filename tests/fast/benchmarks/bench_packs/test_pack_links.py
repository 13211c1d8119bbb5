"""The manifest of a Bench Pack: what loads, every message word for word, and the hash."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from bench_pack_manifests import GONE, changed, healthy_manifest, write_bench_pack
from jsonschema import Draft202012Validator

from pytest_helmbench.benchmarks.bench_packs.bench_pack import BenchPackManifest, VerifierDefault
from pytest_helmbench.benchmarks.bench_packs.format.manifest import load_manifest
from pytest_helmbench.benchmarks.bench_packs.format.manifest_schema import BENCH_PACK_SCHEMA
from pytest_helmbench.core.problem import UnreadableBenchmarkError

_HEAD = {"schemaVersion": 1, "protocolVersion": 1, "author": "a.n.other", "version": "1.0.0"}
_CAPABILITIES = {"tools": False, "multiTurn": True, "streamingProgress": True, "verification": False}
_MODULE_HINT = "\n  hint: name the module that the pack is loaded by, such as './dist/benchlocal/index.js'"
_CONTEXT_HINT = "\n  hint: name a folder of the pack, such as './verification'"


def problems_of(root: Path) -> list[str]:
    """Return the problems of a manifest as people read them, without the file's name."""
    with pytest.raises(UnreadableBenchmarkError) as caught:
        load_manifest(root)
    return [problem.text(root).removeprefix("benchlocal.pack.json:") for problem in caught.value.problems]


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


# The shapes that published packs have, in words of our own.
PUBLISHED: dict[str, dict[str, Any]] = {
    "no verifier": {
        **_HEAD,
        "id": "calls-15",
        "name": "Calls-15",
        "samplingDefaults": {"temperature": 0},
        "theme": {"accent": "#336699"},
        "capabilities": {**_CAPABILITIES, "tools": True, "standaloneWebApp": True},
    },
    "sampling keys that we do not know": {
        **_HEAD,
        "id": "swift-15",
        "name": "Swift-15",
        "samplingDefaults": {
            "temperature": 0,
            "stream": True,
            "request_timeout_seconds": 600,
            "maxTokens": 8,
        },
        "capabilities": _CAPABILITIES,
        "repository": {"type": "git", "url": "https://example.org/swift-15.git"},
    },
    "requirements that we meet": {
        **_HEAD,
        "id": "runner-38",
        "name": "Runner-38",
        "requirements": {"benchlocal": {"minVersion": "0.2.0"}, "hostFeatures": ["inferenceEndpoints"]},
        "capabilities": {**_CAPABILITIES, "verification": True},
        "verifiers": [
            {
                "id": "runner",
                "transport": "http",
                "required": True,
                "defaultMode": "docker",
                "docker": {
                    "buildContext": "./verification",
                    "listenPort": 4010,
                    "healthcheckPath": "/health",
                },
            }
        ],
    },
    "names of the first months": {
        **_HEAD,
        "id": "hunt-15",
        "name": "Hunt-15",
        "capabilities": {"tools": False, "sidecars": True},
        "sidecars": [
            {
                "id": "verifier",
                "transport": "http",
                "required": True,
                "defaultMode": "docker",
                "docker": {
                    "buildContext": "./verification",
                    "containerPort": 4010,
                    "healthcheckPath": "/health",
                },
                "customUrl": {"defaultUrl": "http://127.0.0.1:4010", "healthcheckPath": "/health"},
                "cloud": {},
            }
        ],
    },
    "a page on the web": {
        **_HEAD,
        "id": "talk-arena",
        "name": "Talk Arena",
        "type": "web",
        "entry": "http://127.0.0.1:5177/",
        "requirements": {"benchlocal": {"minVersion": "0.3.0"}},
        "web": {
            "bridgeVersion": 1,
            "allowedOrigins": ["http://127.0.0.1:5177"],
            "permissions": ["runs:write"],
        },
        "capabilities": _CAPABILITIES,
    },
}


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


PROBLEMS: list[tuple[dict[str, Any], list[str]]] = [
    ({"schemaVersion": GONE}, ["1: manifest: there is no 'schemaVersion'\n  hint: add \"schemaVersion\": 1"]),
    ({"schemaVersion": 2}, ["2: schemaVersion: 2 is not known here\n  hint: write 1"]),
    ({"protocolVersion": True}, ["3: protocolVersion: true is not known here\n  hint: write 1"]),
    ({"protocolVersion": "1"}, ["3: protocolVersion: '1' is not known here\n  hint: write 1"]),
    ({"id": GONE}, ["1: manifest: there is no 'id'\n  hint: a Bench Pack has a text 'id'"]),
    ({"id": 15}, ["4: id: 15 is a number, not text"]),
    ({"id": " "}, ["4: id: this is blank text"]),
    ({"id": "a\nb"}, ["4: id: 'a\\nb' holds a line break or another control character"]),
    ({"id": "x" * 201}, ["4: id: the text has 201 characters; at most 200 are taken"]),
    (
        {"id": "../up"},
        [
            "4: id: '../up' cannot be the name of a folder"
            "\n  hint: hosts keep what a pack stores in a folder of this name"
        ],
    ),
    ({"name": None}, ["5: manifest: there is no 'name'\n  hint: a Bench Pack has a text 'name'"]),
    ({"version": 1.5}, ["6: version: 1.5 is a number, not text"]),
    ({"author": {"name": "x"}}, ["24: author: this is an object, not text"]),
    ({"entry": GONE}, [f"1: manifest: there is no 'entry'{_MODULE_HINT}"]),
    ({"entry": "/etc/passwd"}, [f"7: entry: the path '/etc/passwd' is not relative{_MODULE_HINT}"]),
    ({"entry": "C:/index.js"}, [f"7: entry: the path 'C:/index.js' is not relative{_MODULE_HINT}"]),
    ({"entry": "dist\\index.js"}, [f"7: entry: the path 'dist\\\\index.js' holds a backslash{_MODULE_HINT}"]),
    ({"entry": "a\0b"}, [f"7: entry: the path 'a\\x00b' holds a control character{_MODULE_HINT}"]),
    (
        {"entry": "dist/../../x.js"},
        [f"7: entry: the path 'dist/../../x.js' leads out of the pack{_MODULE_HINT}"],
    ),
    ({"entry": "./dist"}, [f"7: entry: the file './dist' is a folder{_MODULE_HINT}"]),
    (
        {"entry": "./dist/other.js"},
        [
            "7: entry: the file './dist/other.js' does not exist"
            "\n  hint: build the pack (npm install, then npm run build; or `helmbench packs install PATH --build`,"
            " in a sandbox), or take one that is built"
        ],
    ),
    (
        {"type": "tabel"},
        ["24: type: 'tabel' is not known\n  hint: did you mean 'table'? known types: table, web"],
    ),
    (
        {"capabilities": GONE},
        ['1: manifest: there is no \'capabilities\'\n  hint: add "capabilities": {"verification": false}'],
    ),
    (
        {"capabilities": {"tools": True}},
        [
            "8: capabilities: there is no 'verification'"
            "\n  hint: write whether the pack has a verifier: true or false"
        ],
    ),
    ({"capabilities": []}, ["8: capabilities: this is a list, not an object"]),
    ({"samplingDefaults": [0]}, ["24: samplingDefaults: this is a list, not an object"]),
    (
        {"samplingDefaults": {"request_timeout_seconds": 0}},
        [
            "25: samplingDefaults.request_timeout_seconds: 0 is no time"
            "\n  hint: write a number of seconds above 0"
        ],
    ),
    (
        {"requirements": {"benchlocal": "0.3.0"}},
        ["25: requirements.benchlocal: '0.3.0' is text, not an object"],
    ),
    (
        {"requirements": {"benchlocal": {"minVersion": 0.3}}},
        ["26: requirements.benchlocal.minVersion: 0.3 is a number, not text"],
    ),
    ({"requirements": {"hostFeatures": [1]}}, ["26: requirements.hostFeatures[0]: 1 is a number, not text"]),
    ({"verifiers": {}}, ["11: verifiers: this is an object, not a list"]),
    ({"verifiers": ["gauge"]}, ["12: verifiers[0]: 'gauge' is not an object"]),
    (
        {"verifiers.0.id": GONE},
        ["12: verifiers[0]: there is no 'id'\n  hint: a pack asks for its verifiers by their ids"],
    ),
    (
        {"verifiers.1": {"id": "gauge"}},
        ["24: verifiers[1].id: 'gauge' is the id of another verifier\n  hint: rename one of them"],
    ),
    (
        {"verifiers.0.transport": "grpc"},
        ["14: verifiers[0].transport: 'grpc' is not known\n  hint: the only transport is 'http'"],
    ),
    ({"verifiers.0.required": "yes"}, ["15: verifiers[0].required: 'yes' is not true or false"]),
    (
        {"verifiers.0.defaultMode": "dokcer"},
        [
            "16: verifiers[0].defaultMode: 'dokcer' is not known"
            "\n  hint: did you mean 'docker'? known modes: cloud, docker, custom_url"
        ],
    ),
    (
        {"verifiers.0.docker.listenPort": GONE},
        [
            "17: verifiers[0].docker: there is no 'listenPort'"
            "\n  hint: name the port that the verifier listens on inside of its container"
        ],
    ),
    (
        {"verifiers.0.docker.listenPort": 65536},
        [
            "19: verifiers[0].docker.listenPort: 65536 is no port"
            "\n  hint: write a whole number from 1 to 65535"
        ],
    ),
    (
        {"verifiers.0.docker.listenPort": True},
        ["19: verifiers[0].docker.listenPort: true is no port\n  hint: write a whole number from 1 to 65535"],
    ),
    (
        {"verifiers.0.docker.buildContext": "../elsewhere"},
        [
            f"18: verifiers[0].docker.buildContext: the path '../elsewhere' leads out of the pack{_CONTEXT_HINT}"
        ],
    ),
    (
        {"verifiers.0.docker.healthcheckPath": "//evil.example/x"},
        [
            "20: verifiers[0].docker.healthcheckPath: '//evil.example/x' is no path of a URL"
            "\n  hint: write a path such as '/health'"
        ],
    ),
    (
        {"verifiers.0.cloud": {"baseUrl": "ftp://x"}},
        [
            "23: verifiers[0].cloud.baseUrl: 'ftp://x' is no HTTP address"
            "\n  hint: write an address such as 'http://127.0.0.1:4010'"
        ],
    ),
    (
        {"verifiers.0.customUrl": {"defaultUrl": "http://x:port"}},
        [
            "23: verifiers[0].customUrl.defaultUrl: 'http://x:port' is no HTTP address"
            "\n  hint: write an address such as 'http://127.0.0.1:4010'"
        ],
    ),
    (
        {"schemaVersion": 3, "version": [], "verifiers.0.transport": "ws"},
        [
            "2: schemaVersion: 3 is not known here\n  hint: write 1",
            "6: version: this is a list, not text",
            "14: verifiers[0].transport: 'ws' is not known\n  hint: the only transport is 'http'",
        ],
    ),
]


@pytest.mark.parametrize(("changes", "expected"), PROBLEMS, ids=range(len(PROBLEMS)))
def test_every_problem_is_told_with_its_line(
    tmp_path: Path, changes: dict[str, Any], expected: list[str]
) -> None:
    assert problems_of(write_bench_pack(tmp_path, changed(changes))) == expected


# What the schema leaves to loading: where paths lead, which ids there are already, and the like.
_BEYOND = ("entry: the", "buildContext: the path", "another verifier", "no 'listenPort'", "http://x:port")


@pytest.mark.parametrize(("changes", "expected"), PROBLEMS, ids=range(len(PROBLEMS)))
def test_the_schema_for_editors_agrees(changes: dict[str, Any], expected: list[str]) -> None:
    checker = Draft202012Validator(BENCH_PACK_SCHEMA.document())
    assert checker.is_valid(healthy_manifest())
    assert all(checker.is_valid({"entry": "./index.js"} | document) for document in PUBLISHED.values())
    if not any(word in expected[0] for word in _BEYOND):
        assert not checker.is_valid(changed(changes))


_NO_JSON = "manifest: this is no valid JSON"
_TEXT = json.dumps(healthy_manifest(), indent=1)

TEXTS: list[tuple[str | bytes, list[str]]] = [
    ("", [f"1: {_NO_JSON}: expecting value (column 1)"]),
    ("{\n1}", [f"2: {_NO_JSON}: expecting property name enclosed in double quotes (column 1)"]),
    ("[1]", ["1: manifest: this is a list, not an object"]),
    ("[" * 200 + "]" * 200, [f"1: {_NO_JSON}: it is nested too deeply"]),
    (
        b'{"id": "\xff"}',
        ["1: the file is not UTF-8: byte 0xff cannot be read\n  hint: save the file with the encoding UTF-8"],
    ),
    (
        "\ufeff" + _TEXT,
        [
            "1: manifest: the file begins with a byte order mark, at which packs that read it themselves stop"
            "\n  hint: save the file as UTF-8 without it"
        ],
    ),
    (
        _TEXT.replace(' "id": "tide', ' "id": "x",\n "id": "tide', 1),
        ["4: id: the key stands here twice\n  hint: keep one of them"],
    ),
    (
        _TEXT.replace(
            '"version": "2.1.0"', '"version": "2.1.0",\n "samplingDefaults": {"temperature":\nNaN}', 1
        ),
        [
            "7: samplingDefaults.temperature: the number is not finite\n  hint: JSON knows no NaN and no Infinity"
        ],
    ),
    (" " * 1_000_001, [" manifest: the file has 1,000,001 bytes; at most 1,000,000 are read"]),
]


@pytest.mark.parametrize(("text", "expected"), TEXTS, ids=range(len(TEXTS)))
def test_a_text_that_is_no_sound_json_is_told_with_its_line(
    tmp_path: Path, text: str | bytes, expected: list[str]
) -> None:
    assert problems_of(write_bench_pack(tmp_path, text)) == expected


def test_no_manifest_is_told(tmp_path: Path) -> None:
    hint = "a Bench Pack has its manifest at its root"
    assert problems_of(tmp_path) == [f" manifest: there is no such file\n  hint: {hint}"]


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
    assert (
        f"the path '{manifest['entry'] if path == 'entry' else 'link/in'}' leads out of the pack by a link"
        in problem
    )

    (root / "link").unlink()
    (outside / "in").rename(root / "kept")
    (root / "link").mkdir()
    (root / "link" / "in").symlink_to(root / "kept")  # a link that stays inside is fine
    assert load_manifest(root).obstacle is None


def test_a_manifest_that_is_a_link_out_of_the_pack_is_told(tmp_path: Path) -> None:
    root = write_bench_pack(tmp_path / "pack")
    (root / "benchlocal.pack.json").rename(tmp_path / "elsewhere.json")
    (root / "benchlocal.pack.json").symlink_to(tmp_path / "elsewhere.json")
    expected = " manifest: the file is a link that leads out of the pack\n  hint: copy it to its place"
    assert problems_of(root) == [expected]


def test_links_in_a_circle_lead_out_of_the_pack(tmp_path: Path) -> None:
    root = write_bench_pack(tmp_path, changed({"entry": "a/index.js"}))
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    (problem,) = problems_of(root)
    assert problem.startswith(
        ("7: entry: the path 'a/index.js' leads out", "7: entry: the file 'a/index.js' does")
    )


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


@pytest.mark.parametrize("declares", [False, True])
def test_a_link_out_of_a_pack_is_refused(tmp_path: Path, *, declares: bool) -> None:
    manifest = healthy_manifest() if declares else {**healthy_manifest(), "verifiers": []}
    root = write_bench_pack(tmp_path / "pack", manifest)
    (root / "inside").symlink_to("dist")
    load_manifest(root)
    (root / "node_modules").mkdir()
    (root / "node_modules" / "everything").symlink_to("/")
    with pytest.raises(UnreadableBenchmarkError) as caught:
        load_manifest(root)
    assert str(caught.value) == (
        f"{root}/node_modules/everything: a link that leads out of the Bench Pack, which may read its own folder alone"
        "\n  hint: put the file itself there"
    )
