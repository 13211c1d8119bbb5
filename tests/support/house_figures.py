"""The figures of the house: what `docs/design.md` shows and `tests/fast/test_house.py` holds.

`python tests/support/house_figures.py [ROOM]` prints them, with the places that count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PACKAGE", "Figure", "figures", "import_cycles", "modules"]

PACKAGE = Path(__file__).resolve().parents[2] / "pytest_helmbench"
_NAME = "pytest_helmbench"
_MOST_FUNCTION_LINES = 50
_MOST_PARAMETERS = 7
_MOST_FILE_LINES = 400
_NOQA = re.compile(r"# noqa\b")
# Parts of one protocol: the same file in every kind of benchmark, every family, every room.
_PARTS = frozenset(
    {
        "__init__",
        "authoring",
        "kind",
        "jobs",
        "work",
        "settings",
        "places",
        "manifest",
        "self_check",
        "family",
    }
)


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the house.

    Args:
        name: What is counted.
        value: How many.
        goal: The most that there may be.
        places: Where they are, as `path:line name`.
    """

    name: str
    value: float
    goal: float
    places: Sequence[str]

    @property
    def holds(self) -> bool:
        """Whether the goal is kept."""
        return self.value <= self.goal


def modules(root: Path = PACKAGE) -> Mapping[str, Path]:
    """Return the Python files of the package by dotted name."""
    found = {}
    for path in sorted(root.rglob("*.py")):
        parts = (_NAME, *path.relative_to(root).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def figures(room: str = "") -> tuple[Figure, ...]:
    """Return the figures of the package, or of what stands below one of its folders."""
    wanted = {name: path for name, path in modules().items() if path.is_relative_to(PACKAGE / room)}
    trees = {name: ast.parse(path.read_text(encoding="utf-8")) for name, path in wanted.items()}
    texts = {name: path.read_text(encoding="utf-8") for name, path in wanted.items()}
    lines = sum(text.count("\n") for text in texts.values())
    functions = [
        (f"{_short(wanted[name])}:{node.lineno} {node.name}", node)
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    anys = [
        f"{_short(wanted[name])}:{node.lineno}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and node.id == "Any"
    ]
    noqas = [
        f"{_short(wanted[name])}:{number} {line.strip()}"
        for name, text in texts.items()
        for number, line in enumerate(text.splitlines(), 1)
        if _NOQA.search(line)
    ]
    long = [where for where, node in functions if _length(node) > _MOST_FUNCTION_LINES]
    wide = [where for where, node in functions if _parameters(node) > _MOST_PARAMETERS]
    large = [_short(path) for name, path in wanted.items() if texts[name].count("\n") > _MOST_FILE_LINES]
    top = [path.name for path in sorted(PACKAGE.glob("*.py"))] if not room else []
    return (
        Figure("modules at the top", len(top), 4, top),
        Figure("functions over 50 lines", len(long), 0, long),
        Figure("functions with over 7 parameters", len(wide), 0, wide),
        Figure("uses of Any per 1,000 lines", round(1000 * len(anys) / max(lines, 1), 1), 8, anys),
        Figure("noqa", len(noqas), 39, noqas),
        Figure("files over 400 lines", len(large), 0, large),
        Figure("import cycles", len(cycles := import_cycles(wanted)), 0, [" > ".join(one) for one in cycles]),
        Figure("file names used twice", len(twice := _used_twice(wanted)), 0, twice),
        Figure("attributes set from outside", len(outside := _set_from_outside(trees, wanted)), 0, outside),
        Figure(
            "bases of exceptions that are no Exception", len(odd := _odd_exceptions(trees, wanted)), 0, odd
        ),
    )


def import_cycles(wanted: Mapping[str, Path]) -> list[list[str]]:
    """Return the groups of modules that import each other, late imports included; for type checkers alone apart."""
    known = set(wanted)
    edges: dict[str, set[str]] = {}
    for name, path in wanted.items():
        edges[name] = {target for target in _imported(path, known) if target != name}
    return sorted(group for group in _components(edges) if len(group) > 1)


def _imported(path: Path, known: set[str]) -> Iterator[str]:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    typing_only = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node not in typing_only:
            if node.module in known:
                yield node.module
            yield from (
                f"{node.module}.{alias.name}"
                for alias in node.names
                if f"{node.module}.{alias.name}" in known
            )


def _components(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Return the strongly connected components (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(edges.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            group = []
            while True:
                group.append(stack.pop())
                if group[-1] == node:
                    break
            found.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def _used_twice(wanted: Mapping[str, Path]) -> list[str]:
    by_name: dict[str, list[str]] = defaultdict(list)
    for path in wanted.values():
        if path.stem not in _PARTS and "starter" not in path.parts:
            by_name[path.stem].append(_short(path))
    return [" = ".join(paths) for paths in by_name.values() if len(paths) > 1]


def _set_from_outside(trees: Mapping[str, ast.Module], wanted: Mapping[str, Path]) -> list[str]:
    """Return assignments to an attribute that a class of another module of ours declares, through any object."""
    own = {name: set(_declared(tree)) for name, tree in trees.items()}
    found = []
    for name, tree in trees.items():
        elsewhere = (
            set[str]().union(*(declared for other, declared in own.items() if other != name)) - own[name]
        )
        found += [
            f"{_short(wanted[name])}:{target.lineno} {ast.unparse(target)}"
            for target in _assigned(tree)
            if target.attr in elsewhere
            and not (isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"))
        ]
    return sorted(found)


def _assigned(tree: ast.AST) -> Iterator[ast.Attribute]:
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        yield from (target for target in targets if isinstance(target, ast.Attribute))


def _declared(tree: ast.AST) -> Iterator[str]:
    """Yield the attributes that the classes of a module give to their own instances."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        for inner in node.body:
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                yield inner.target.id
        for target in _assigned(node):
            if isinstance(target.value, ast.Name) and target.value.id == "self":
                yield target.attr


def _odd_exceptions(trees: Mapping[str, ast.Module], wanted: Mapping[str, Path]) -> list[str]:
    odd = {"ValueError", "BaseException", "RuntimeError", "TypeError", "KeyError", "OSError"}
    published = {"ConfigError", "MaterializationError"}  # the format of packs wants a `ValueError`
    return [
        f"{_short(wanted[name])}:{node.lineno} {node.name}"
        for name, tree in trees.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and node.name not in published
        and any(isinstance(base, ast.Name) and base.id in odd for base in node.bases)
    ]


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def _short(path: Path) -> str:
    return path.relative_to(PACKAGE).as_posix()


def _print(room: str, *, places: bool) -> None:
    for figure in figures(room):
        sys.stdout.write(
            f"{'ok ' if figure.holds else 'NOT'} {figure.name}: {figure.value} (goal {figure.goal})\n"
        )
        if places and not figure.holds:
            sys.stdout.writelines(f"      {place}\n" for place in figure.places)


if __name__ == "__main__":
    _print(sys.argv[1] if len(sys.argv) > 1 else "", places=True)
