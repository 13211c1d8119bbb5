"""Every problem of a manifest is told with its line, and the schema for editors agrees."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bench_pack_manifests import GONE, PUBLISHED, changed, healthy_manifest, problems_of, write_bench_pack
from jsonschema import Draft202012Validator

from pytest_helmbench.benchmarks.bench_packs.format.manifest import BENCH_PACK_SCHEMA

_MODULE_HINT = "\n  hint: name the module that the pack is loaded by, such as './dist/benchlocal/index.js'"
_CONTEXT_HINT = "\n  hint: name a folder of the pack, such as './verification'"


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
            "\n  hint: build the pack (npm install, then npm run build), or take one that is built"
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
