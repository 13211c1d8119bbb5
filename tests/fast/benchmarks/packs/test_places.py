"""Which folders are packs: told by the manifest and the names beside it, without a YAML parser."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.packs.places import is_pack, row_files_of

YAML = [
    ("id: demo\nversion: 1\n", True),
    ("version: 12 # counts\nid: a pack of ours   # yes\n", True),
    ("---\n# a comment\n'id': 'x'\n\"version\": +3\n", True),
    ("%YAML 1.1\n---\nid: &name x\nversion: 1\n", True),
    ("{id: demo, version: 1}\n", False),  # never written so, and loading is not asked
    ('{"id": "demo", "version": 1}\n', True),
    ("id: demo\nversion: 1\nbroken: [\n", True),  # loading says what is wrong
    ('{"id": "demo", "version": 1,}\n', True),
    ("\ufeffid: demo\r\nversion: 1\r\n", True),
    ("id: demo\nversion: '2'\nschema_version: '2.0'\n", True),  # loading says that it is another format
    ("id: demo\nschema_version: '1.0'\n", False),
    ("id: demo\n", False),
    ("version: 1\n", False),
    ("id: 7\nversion: 1\n", False),
    ("id: true\nversion: 1\n", False),
    ("id:\nversion: 1\n", False),
    ("id: demo\nversion: true\n", False),
    ("id: demo\nversion: 1.0\n", False),
    ("id: demo\nversion: '1'\n", False),
    ("meta:\n  id: demo\n  version: 1\n", False),
    ('{"id": "demo", "version": true}', False),
    ("[1, 2]", False),
    ("", False),
]


@pytest.mark.parametrize(("manifest", "expected"), YAML, ids=range(len(YAML)))
def test_a_manifest_with_id_and_version_makes_a_pack(tmp_path: Path, manifest: str, expected: bool) -> None:
    (tmp_path / "manifest.yaml").write_text(manifest, newline="")
    (tmp_path / "tasks.jsonl").write_text("")

    assert is_pack(tmp_path) is expected


@pytest.mark.parametrize("name", ["manifest.yaml", "manifest.yml", "manifest.json"])
def test_there_are_three_names(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text(json.dumps({"id": "demo", "version": 1}))
    assert not is_pack(tmp_path)  # no rows beside it
    (tmp_path / "rows.jsonl").write_text("")
    assert is_pack(tmp_path)


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    assert not is_pack(tmp_path / "missing")
    (tmp_path / "benchlocal.pack.json").write_text('{"id": "demo", "version": 1}')
    (tmp_path / "rows.jsonl").write_text("")
    assert not is_pack(tmp_path)  # a Bench Pack is something else
    (tmp_path / "manifest.yaml").mkdir()
    assert not is_pack(tmp_path)
    (tmp_path / "manifest.json").write_bytes(b"\xff\xfe\x00")
    assert not is_pack(tmp_path)


def test_rows_are_in_tasks_or_in_every_file_in_natural_order(tmp_path: Path) -> None:
    for name in ("b10.jsonl", "b9.jsonl", "a.jsonl", "notes.json"):
        (tmp_path / name).write_text("")
    (tmp_path / "folder.jsonl").mkdir()
    assert [path.name for path in row_files_of(tmp_path)] == ["a.jsonl", "b9.jsonl", "b10.jsonl"]
    (tmp_path / "tasks.jsonl").write_text("")
    assert [path.name for path in row_files_of(tmp_path)] == ["tasks.jsonl"]
