"""The shape of the house: who may import whom, and that a session that does not ask pays nothing."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from house_figures import PACKAGE, Source, paths, source, typing_only
from paths import ROOT


def _rooms_of_the_page() -> dict[str, set[str]]:
    """Return what every room may import, as the table in docs/design.md says."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = re.findall(r"^\| `([a-z_/]+)/` \|.*\| ([^|]+) \|$", page, re.MULTILINE)
    return {room: set() if names == "–" else set(names.split(", ")) for room, names in table}


_ROOMS = _rooms_of_the_page()
_PYTEST_MODULES = {"pytest_side", "benchmarks/python_tests"}
_SOLE_USERS = {
    "aiohttp": {"gateway", "view"},
    "distributed": {"run"},
    "genai_prices": {"gateway"},
    "jinja2": {"reports"},
    "pycurl": {"gateway"},
    "regex": {"core"},
    "sqlite_utils": {"cli"},
    "yaml": {"files"},
}
_AT_EVERY_START: dict[str, set[str]] = {
    "core/light_dataclass": {"__future__", "collections", "dataclasses", "operator", "typing"},
    "core/granted": {"__future__", "pytest_helmbench.core.light_dataclass", "typing"},
    "options/option": {
        "__future__",
        "collections",
        "dataclasses",
        "json",
        "math",
        "os",
        "pathlib",
        "pytest_helmbench.core.light_dataclass",
        "pytest_helmbench.core.granted",
        "typing",
    },
    "options/declarations": {
        "__future__",
        "collections",
        "math",
        "pathlib",
        "pytest_helmbench.options.option",
        "pytest_helmbench.core.light_dataclass",
        "pytest_helmbench.core.granted",
        "typing",
    },
    "speed/interpreter": {"__future__", "gc", "importlib", "sys", "typing"},
    "plugin": {
        "__future__",
        "os",
        "pathlib",
        "pytest",
        "pytest_helmbench.options.option",
        "pytest_helmbench.options.declarations",
        "pytest_helmbench.speed.interpreter",
        "sys",
        "types",
        "typing",
    },
}
"""All that the modules may import that pytest imports whenever it starts."""
_COMMAND_LINE = {"cli"}  # they may import all but the pytest modules
_LATE = {
    # Few answers are number words or dates; sessions without packs state none.
    ("judge", "pytest_helmbench.judging.comparisons.stated"),
    ("amounts", "text_to_num"),
    ("amounts", "dateutil"),
    # A session that does not ask pays for nothing.
    ("plugin", "pytest_helmbench.pytest_side.composition"),
    ("plugin", "pytest_helmbench.benchmarks.python_tests.hooks"),
    ("plugin", "pytest_helmbench.pytest_side.collect.command_line"),
    ("plugin", "pytest_helmbench.benchmarks.places"),
    ("plugin", "pytest_helmbench.benchmarks.registry"),
    ("plugin", "pytest_helmbench.benchmarks.python_tests.clients"),
    # Few sessions have what these are for: workers, reports, a session that goes on, recorded replies, baselines,
    # Python tests, a folder that was meant as a benchmark, an ini file in TOML.
    ("composition", "pytest_helmbench.pytest_side.workers.xdist_worker"),
    ("composition", "pytest_helmbench.pytest_side.workers.xdist_controller"),
    ("composition", "pytest_helmbench.pytest_side.workers.xdist_worker"),
    ("composition", "pytest_helmbench.run.resume"),
    ("session_runs", "pytest_helmbench.run.resume"),
    (
        "database_file",
        "pytest_helmbench.store.schema",
    ),  # only files of older versions go through its migrations
    ("settings", "pytest_helmbench.options.shard_variables"),
    ("coordinator", "pytest_helmbench.run.coordinator"),
    ("coordinator", "pytest_helmbench.results.baselines"),
    ("composition", "pytest_helmbench.results.baselines"),
    ("project", "pytest_helmbench.run.library"),
    ("trust", "tomllib"),
    ("session_end", "pytest_helmbench.pytest_side.say.report_files"),
    ("announcement", "pytest_helmbench.pytest_side.say.report_files"),
    ("composition", "pytest_helmbench.pytest_side.job_end"),
    ("session_plugin", "pytest_helmbench.benchmarks.python_tests.hooks"),
    ("clients", "openai"),
    ("batch_wire", "openai"),
    ("query_command", "sqlite_utils"),  # `helmbench --help` imports every command
    ("open_files", "resource"),  # not on Windows
    ("readers", "pytest_helmbench.imports.inspect_logs"),
    ("formats", "inspect_ai.log"),  # extras that need not be installed
    ("formats", "pytest_helmbench.reports.inspect_log"),
    ("formats", "pytest_helmbench.reports.page.document"),  # jinja2 comes with the first page
    ("formats", "pytest_helmbench.reports.page.parts"),
    # A seventh of the CPU of a short session; a sixth; a thirtieth.
    ("gateway", "pytest_helmbench.gateway.client"),  # not for embedded models, replays and dry runs
    ("targets", "pytest_helmbench.gateway.client"),
    ("prices", "genai_prices"),  # for hosted models only
    ("local_answers", "pytest_helmbench.gateway.baselines.baseline"),  # for embedded models only
    ("spread_command", "pytest_helmbench.run.spread"),  # Dask, for a session over several machines
    ("spread_command", "pytest_helmbench.run.spread_session"),
    ("foreign_patterns", "regex"),  # where a benchmark brings a regular expression
    # Only where foreign code runs, or a manifest stands.
    ("relay", "pytest_helmbench.gateway.relay.server"),
    ("verifiers", "pytest_helmbench.gateway.relay.verifier_client"),
    ("verifiers", "pytest_helmbench.gateway.relay.verifier_proxy"),
    ("images", "fcntl"),  # not on Windows
    ("places", "pytest_helmbench.benchmarks.packs.places"),
}


def _room(parts: Sequence[str]) -> str:
    """Return the room of a module, or the module's own name at the top; every kind of benchmark is a room."""
    if parts[0] == "benchmarks" and len(parts) > 1 and (PACKAGE / "benchmarks" / parts[1]).is_dir():
        return f"benchmarks/{parts[1]}"
    return parts[0]


def _place(path: Path) -> str:
    return _room(path.relative_to(PACKAGE).with_suffix("").parts)


def _imports(file: Source) -> Iterator[tuple[ast.stmt, str]]:
    for node in file.nodes:
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            if module == "pytest_helmbench":
                yield from ((node, f"pytest_helmbench.{alias.name}") for alias in node.names)
            else:
                yield node, module


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_every_module_keeps_to_its_layer(path: Path) -> None:
    file = source(path)
    place = _place(path)
    apart = typing_only(file)
    for node, name in _imports(file):
        where = f"{path.name}:{node.lineno}: {name}"
        assert not name.startswith((".", "_pytest")), where
        top = name.split(".")[0]
        if top in _SOLE_USERS:
            assert place in _SOLE_USERS[top], where
        if top in ("pytest", "xdist", "pluggy") and node not in apart:
            assert place in _PYTEST_MODULES | {"plugin", "speed"}, where
        if top == "pytest_helmbench" and place in _ROOMS:
            assert _room(name.split(".")[1:]) in _ROOMS[place] | {place}, where
        if place in _COMMAND_LINE and top == "pytest_helmbench":
            assert name.split(".")[1] not in _PYTEST_MODULES, where


def test_every_room_has_its_row_in_the_table() -> None:
    inits = [*PACKAGE.glob("*/__init__.py"), *PACKAGE.glob("benchmarks/*/__init__.py")]
    rooms = {path.parent.relative_to(PACKAGE).as_posix() for path in inits}
    assert rooms == set(_ROOMS)


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_imports_stand_at_the_top(path: Path) -> None:
    file = source(path)
    apart = typing_only(file)
    late = {(path.stem, name) for node, name in _imports(file) if node.col_offset > 0 and node not in apart}
    assert late <= _LATE  # without need, nothing is imported


@pytest.mark.parametrize("module", _AT_EVERY_START)
def test_a_start_of_pytest_imports_no_more_than_this(module: str) -> None:
    file = source(PACKAGE / f"{module}.py")
    apart = typing_only(file)
    for node, name in _imports(file):
        if node.col_offset == 0 and node not in apart:
            known = _AT_EVERY_START[module]
            assert name in known or name.split(".")[0] in known, name


def test_dataclasses_are_made_by_one_decorator() -> None:
    found = [
        path.relative_to(PACKAGE).as_posix()
        for path in paths()
        for node, name in _imports(source(path))
        if name == "dataclasses" and "inside" not in path.parts and "dataclass" in _named(node)
    ]

    assert found == ["core/light_dataclass.py"], "see decision 8 of docs/design.md"


def _named(node: ast.stmt) -> list[str]:
    return [alias.name for alias in node.names] if isinstance(node, ast.ImportFrom) else []
