"""The order of tests for several workers: slow files first in each worker's run, no test lost, files in one piece."""

from __future__ import annotations

from pathlib import Path

import pytest
from dealing import dealt, slow_files

_TESTS = Path(__file__).resolve().parents[1]


def _file(test: str) -> str:
    return test[0]


def _rank(test: str) -> int | None:
    place = "dcb".find(test[0])
    return None if place < 0 else place


def test_each_run_begins_with_slow_files_and_ends_with_quick_ones() -> None:
    tests = ["a1", "a2", "a3", "a4", "b1", "c1", "c2", "d1"]
    assert dealt(tests, 2, file=_file, rank=_rank) == ["d1", "a1", "a2", "a3", "c1", "c2", "b1", "a4"]


@pytest.mark.parametrize("workers", [1, 2, 3, 7, 40])
def test_no_test_is_lost_or_doubled(workers: int) -> None:
    tests = [f"{file}{number}" for file in "abcde" for number in range(6)]
    assert sorted(dealt(tests, workers, file=_file, rank=_rank)) == tests


def test_the_list_of_slow_files_names_files_that_are_there() -> None:
    assert [file for file in slow_files() if not (_TESTS / file).is_file()] == []
