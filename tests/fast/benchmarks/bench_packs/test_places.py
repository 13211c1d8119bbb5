"""Which folders are Bench Packs, and where they are found."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench_pack_manifests import write_bench_pack

from pytest_helmbench.benchmarks.bench_packs.places import MANIFEST, is_bench_pack
from pytest_helmbench.benchmarks.places import benchmark_root, benchmarks_below, is_benchmark


def make_tree(root: Path) -> Path:
    (root / "scenarios" / "P1-B1-S1").mkdir(parents=True)
    return root


def make_pack(root: Path) -> Path:
    root.mkdir(parents=True)
    (root / "manifest.yaml").write_text("id: demo\nversion: 1\n")
    (root / "tasks.jsonl").touch()
    return root


def test_a_folder_with_the_manifest_is_a_bench_pack_whatever_it_says(tmp_path: Path) -> None:
    assert not is_bench_pack(tmp_path)
    assert not is_bench_pack(tmp_path / "missing")
    assert not is_bench_pack(Path("a\0b"))
    (tmp_path / MANIFEST).mkdir()
    assert not is_bench_pack(tmp_path)
    assert not is_benchmark(tmp_path)
    (tmp_path / MANIFEST).rmdir()
    (tmp_path / MANIFEST).write_text("broken")
    assert is_bench_pack(tmp_path)
    assert is_benchmark(tmp_path)


def test_bench_packs_are_found_beside_and_inside_of_others(tmp_path: Path) -> None:
    tree = make_tree(tmp_path / "a-tree")
    expected = [
        tree,
        write_bench_pack(tree / "bench-packs" / "tides2"),
        write_bench_pack(tree / "bench-packs" / "tides10"),
        make_pack(tmp_path / "b-pack"),
        write_bench_pack(tmp_path / "c" / "d"),
    ]
    for hidden in (".hidden", "node_modules", "b-pack", "a-tree/scenarios"):
        write_bench_pack(tmp_path / hidden / "not-found")
    assert benchmarks_below(tmp_path) == expected
    assert benchmarks_below(tmp_path / "c" / "d") == [tmp_path / "c" / "d"]


@pytest.mark.parametrize("where", ["verification", "dist/benchlocal", "node_modules/other", "examples"])
@pytest.mark.parametrize("make", [make_tree, make_pack, write_bench_pack])
def test_nothing_inside_of_a_bench_pack_is_a_benchmark_of_its_own(
    tmp_path: Path, where: str, make: object
) -> None:
    root = write_bench_pack(tmp_path / "tides")
    inner = root / where / "inner"
    assert callable(make)
    make(inner)
    assert benchmarks_below(tmp_path) == [root]
    assert benchmark_root(inner) == root
    assert benchmark_root(inner / "scenarios" / "P1-B1-S1" / "S1.md") == root
