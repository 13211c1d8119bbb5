"""The size of the whole: lines, modules, settings, commands, dependencies.

A change that needs more room takes something out. An issue that adds a feature raises a figure and says so.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from house_figures import PACKAGE
from paths import ROOT

from pytest_helmbench.cli.main import helmbench
from pytest_helmbench.options.declarations import OPTIONS

_COUNTED = {".py", ".js", ".cjs", ".mjs", ".sql", ".jinja", ".css"}
_SLACK = 1.02
"""A figure of lines is set anew with every issue; between two issues, changes may exceed it by this factor."""
_PACKAGE_LINES = 80_732
_ROOM_LINES = {
    "benchmarks/packs": 14_746,
    "benchmarks/bench_packs": 5_058,
    "benchmarks/scenario_trees": 5_358,
    "benchmarks": 2_007,
    "gateway": 8_741,
    "run, results": 7_323,
    "store": 5_085,
    "reports, view, imports": 7_605,
    "pytest_side": 5_195,
    "speed": 324,
    "sandbox": 4_074,
    "engine": 1_712,
    "core": 3_512,
    "scoring": 2_621,
    "cli": 2_877,
    "files, judging, options, plugin": 4_494,
}
_TEST_LINES = 62_054
_MOST = {"modules": 410, "settings": 76, "commands": 20, "dependencies": 15}


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n")


def _shipped() -> Iterator[Path]:
    return (
        path for path in PACKAGE.rglob("*") if path.suffix in _COUNTED and "__pycache__" not in path.parts
    )


def _room(path: Path) -> str:
    parts = path.relative_to(PACKAGE).parts
    if parts[0] == "benchmarks":
        own = "/".join(parts[:2])
        return own if own in _ROOM_LINES else "benchmarks"
    return next(
        (room for room in _ROOM_LINES if parts[0] in room.split(", ")), "files, judging, options, plugin"
    )


def _test_files() -> Iterator[Path]:
    apart = {"__pycache__", ".pytest_cache"}
    return (path for path in (ROOT / "tests").rglob("*") if path.is_file() and apart.isdisjoint(path.parts))


def _measured() -> dict[str, int]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return {
        "modules": sum(path.suffix == ".py" for path in _shipped()),
        "settings": len(OPTIONS),
        "commands": len(helmbench.list_commands(click.Context(helmbench))),
        "dependencies": len(project["dependencies"]),
    }


def test_the_package_keeps_to_its_lines() -> None:
    assert sum(map(_lines, _shipped())) <= _PACKAGE_LINES * _SLACK, "take something out"


@pytest.mark.parametrize("room", _ROOM_LINES)
def test_a_room_keeps_to_its_lines(room: str) -> None:
    lines = sum(_lines(path) for path in _shipped() if _room(path) == room)
    assert lines <= _ROOM_LINES[room] * _SLACK, "take something out, or trade lines with another room"


def test_the_tests_keep_to_their_lines() -> None:
    assert sum(map(_lines, _test_files())) <= _TEST_LINES * _SLACK, "take something out"


@pytest.mark.parametrize("what", _MOST)
def test_the_whole_keeps_to_its_figures(what: str) -> None:
    assert _measured()[what] <= _MOST[what]


def test_every_line_belongs_to_one_room() -> None:
    rooms = Counter(_room(path) for path in _shipped())
    assert set(rooms) == set(_ROOM_LINES)
