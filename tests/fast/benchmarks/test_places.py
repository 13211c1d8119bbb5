"""Folders and files that count as a benchmark."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_helmbench.benchmarks.places import benchmark_root, benchmarks_below
from pytest_helmbench.benchmarks.scenario_trees.places import is_prompt_file


@pytest.mark.parametrize("folder", ["P1-B1-S1", "P1-B2-S3A--calm-user", "P1", "P2--crisis"])
def test_a_folder_with_a_coded_folder_in_scenarios_is_a_benchmark(tmp_path: Path, folder: str) -> None:
    inside = tmp_path / "bench" / "scenarios" / folder
    inside.mkdir(parents=True)
    for place in (tmp_path / "bench", inside, inside / "S1.md", inside / ".." / "x"):
        assert benchmark_root(place) == tmp_path / "bench"
    assert benchmark_root(tmp_path) is None


@pytest.mark.parametrize("folder", ["first", "p1-b1-s1", "P1-B1", ".obsidian"])
def test_other_folders_make_no_benchmark(tmp_path: Path, folder: str) -> None:
    (tmp_path / "scenarios" / folder).mkdir(parents=True)
    (tmp_path / "scenarios" / "P1-B1-S1").write_text("a file, not a folder")
    assert benchmark_root(tmp_path / "scenarios") is None


def test_a_relative_path_is_looked_up_from_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "scenarios" / "P1").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "scenarios")
    assert benchmark_root(Path()) == tmp_path


def test_benchmarks_are_found_below_a_folder_but_not_in_hidden_or_foreign_ones(tmp_path: Path) -> None:
    for place in ("b10", "b2", ".hidden/b", "node_modules/b", "my-env/b", "b2/scenarios/P1-B1-S1/inner"):
        (tmp_path / place / "scenarios" / "P1-B1-S1").mkdir(parents=True)
    (tmp_path / "my-env" / "pyvenv.cfg").touch()
    assert benchmarks_below(tmp_path) == [tmp_path / "b2", tmp_path / "b10"]
    assert benchmarks_below(tmp_path / "b2") == [tmp_path / "b2"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("P1-B1-S2/S2.md", True),
        ("P1-B1-S2--calm/S2--calm.md", True),
        ("P1/B1/S2A/S2A.md", True),
        ("P1-B1-S2/MCSQE.md", True),
        ("P1-B1-S2/S1.md", False),
        ("P1-B1-S2/S2.json", False),
        ("P1-B1-S2/README.md", False),
        ("P1-B1-S2/conditions/C1.md", False),
        ("notes/MCSQE.md", False),
    ],
)
def test_a_prompt_file_is_told_by_its_name_and_folder(path: str, *, expected: bool) -> None:
    assert is_prompt_file(Path("scenarios") / path) is expected
