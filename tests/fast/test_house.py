"""The figures of the house, kinds of benchmark in `benchmarks` alone, and no module that begins with a riddle."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest
from house_figures import PACKAGE, Figure, Source, figures, paths, source

from pytest_helmbench.benchmarks.registry import all_places

_FIGURES = (
    "modules at the top",
    "functions over 50 lines",
    "functions with over 7 parameters",
    "uses of Any per 1,000 lines",
    "noqa",
    "files over 600 lines",
    "import cycles",
    "file names used twice",
    "attributes set from outside",
    "exceptions with another base than Exception",
    "% of modules with constants below a definition",
    "modules with three groups of them",
    "names of ids for other values",
    "type aliases with two meanings",
)

_KINDS = [path.parent for path in PACKAGE.glob("benchmarks/*/places.py")]
_IMPORT_A_KIND = {
    "plugin.py": "fixtures of hand-written tests, and whether a manifest is a pack's: asked before any session",
    "pytest_side/session_plugin.py": "hand-written tests are items of pytest",
}
"""Who may import a module of a kind, and why; everybody else asks the registry."""

_QUESTION_WORDS = ("How", "What", "When", "Where", "Whether", "Which", "Who", "Whose", "Why")
"""No module begins with one: its first line says what it is for in words that a reader would search for."""


@pytest.fixture(scope="module")
def house() -> dict[str, Figure]:
    return {figure.name: figure for figure in figures()}


@pytest.mark.parametrize("name", _FIGURES)
def test_a_figure_keeps_to_its_goal(house: dict[str, Figure], name: str) -> None:
    figure = house[name]
    assert figure.holds, "\n".join(figure.places)


def test_no_figure_is_forgotten(house: dict[str, Figure]) -> None:
    assert set(house) == set(_FIGURES)


def test_only_composition_roots_import_a_kind() -> None:
    importing = {file.short for file in _outside() if any(_kinds_imported(file))}
    assert importing == _IMPORT_A_KIND.keys()


def test_no_kind_is_told_by_its_name_or_class() -> None:
    names = {*(places.name for places in all_places()), *(folder.name for folder in _KINDS)}
    inside = [source(path) for folder in _KINDS for path in folder.rglob("*.py")]
    classes = set[str]().union(*map(_classes, inside))
    for file in _outside():
        words = names | classes - _classes(file)
        told = [ast.unparse(node) for node in file.nodes if not words.isdisjoint(_told_apart_by(node))]
        assert told == [], file.short


def test_no_module_begins_with_a_riddle() -> None:
    riddles = tuple(f'"""{word} ' for word in _QUESTION_WORDS)
    assert [file.short for file in map(source, paths()) if file.text.startswith(riddles)] == []


def _outside() -> list[Source]:
    return [source(path) for path in paths() if not path.is_relative_to(PACKAGE / "benchmarks")]


def _kinds_imported(file: Source) -> Iterator[str]:
    kinds = tuple(f"pytest_helmbench.benchmarks.{folder.name}." for folder in _KINDS)
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
            yield from (name for name in names if name.startswith(kinds) or f"{name}.".startswith(kinds))


def _classes(file: Source) -> set[str]:
    return {node.name for node in file.nodes if isinstance(node, ast.ClassDef)}


def _told_apart_by(node: ast.AST) -> Iterator[str]:
    """Yield the texts and classes that a value is compared with."""
    against: list[ast.expr] = []
    match node:
        case ast.Compare():
            against = [node.left, *node.comparators]
        case ast.MatchValue():
            against = [node.value]
        case ast.MatchClass():
            against = [node.cls]
        case ast.Call(func=ast.Name(id="isinstance" | "issubclass"), args=[_, given]):
            against = [given]
    for inner in (inner for one in against for inner in ast.walk(one)):
        match inner:
            case ast.Constant(value=str() as text):
                yield text
            case ast.Name(id=word) | ast.Attribute(attr=word) if not isinstance(node, ast.Compare):
                yield word
