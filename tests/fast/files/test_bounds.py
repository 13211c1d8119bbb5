"""Files that a benchmark brings: links, devices, sizes and aliases that would quote, block or fill up."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from packs import write_pack
from trees import category, write_tree

from pytest_helmbench.benchmarks.packs.format.pack_loader import load_pack
from pytest_helmbench.benchmarks.scenario_trees.format.tree_loader import load_tree

_SECRET = "alias s3cr3t='hunter2'"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "benchmark"
    write_tree(root, {"P1-B1-S1": category("CALM", "CALM")})
    return root


@pytest.mark.parametrize("name", ["S1.md", "S1.json"])
def test_a_link_out_of_a_tree_is_no_file_and_quotes_nothing(tree: Path, tmp_path: Path, name: str) -> None:
    secret = tmp_path / "secret"
    secret.write_text(_SECRET)
    (place,) = tree.rglob(name)
    place.unlink()
    place.symlink_to(secret)
    shown = repr(load_tree(tree))
    assert "a link leads out of the benchmark" in shown
    assert "s3cr3t" not in shown


def test_a_link_within_a_tree_is_a_file(tree: Path) -> None:
    (place,) = tree.rglob("S1.md")
    place.rename(tree / "elsewhere.md")
    place.symlink_to(tree / "elsewhere.md")
    loaded = load_tree(tree)
    assert len(loaded.scenarios) == 1
    assert "leads out" not in repr(loaded)


def test_a_device_and_a_file_too_large_are_said(tree: Path) -> None:
    (place,) = tree.rglob("S1.md")
    place.unlink()
    os.mkfifo(place)
    assert len(load_tree(tree).scenarios) == 0  # reading a pipe would never end
    place.unlink()
    with place.open("wb") as file:
        file.truncate(2**33)
    assert "at most 33,554,432 are read" in repr(load_tree(tree))


def test_row_files_have_a_size_and_are_files(tmp_path: Path) -> None:
    write_pack(tmp_path / "pack", [])
    rows = tmp_path / "pack" / "tasks.jsonl"
    with rows.open("wb") as file:
        file.truncate(2**33)
    assert "at most 2,147,483,648 are read" in _pack_problems(tmp_path / "pack")
    rows.unlink()
    os.mkfifo(rows)
    assert "there is no *.jsonl beside the manifest" in _pack_problems(tmp_path / "pack")


def _pack_problems(root: Path) -> str:
    return "\n".join(problem.text() for problem in load_pack(root).all_problems())
