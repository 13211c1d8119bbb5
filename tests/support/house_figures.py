"""The figures of the house, which `tests/fast/test_house.py` holds.

`python tests/support/house_figures.py [ROOM]` prints them, with the places that count.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["PACKAGE", "Figure", "Source", "figures", "import_cycles", "paths", "source", "typing_only"]

PACKAGE = Path(__file__).resolve().parents[2] / "pytest_helmbench"
_NAME = "pytest_helmbench"
_MOST_FUNCTION_LINES = 50
_MOST_PARAMETERS = 7
_MOST_FILE_LINES = 600
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_NOQA = re.compile(r"# noqa\b")
_PARTS = {
    "": {"__init__", "registry", "work"},
    "benchmarks": {"authoring", "jobs", "kind", "loading", "manifest", "places"},
    "benchmarks/packs": {"self_check"},
    "benchmarks/packs/families": {"check", "evaluation", "family"},
}
"""Files that are the same part of one protocol wherever they stand below a folder: `kind.py` of a kind, `family.py`
of a family. `registry.py` is what there is of a protocol, by name; `work.py` the `Work` of the engine and of a kind."""


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


@dataclass(frozen=True, slots=True)
class Source:
    """A Python file of the package, read once.

    Args:
        name: Dotted.
        path: Of the file.
        text: As it stands there.
        nodes: Its syntax tree, every node once, the module first.
    """

    name: str
    path: Path
    text: str
    nodes: Sequence[ast.AST]

    @property
    def short(self) -> str:
        """The path below the package."""
        return self.path.relative_to(PACKAGE).as_posix()

    def at(self, node: ast.stmt | ast.expr) -> str:
        """Return where a node stands."""
        return f"{self.short}:{node.lineno}"


def paths() -> list[Path]:
    """Return the Python files of the package."""
    return sorted(PACKAGE.rglob("*.py"))


@cache
def source(path: Path) -> Source:
    """Read a Python file of the package."""
    parts = (_NAME, *path.relative_to(PACKAGE).with_suffix("").parts)
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Source(name, path, text, tuple(ast.walk(ast.parse(text))))


def figures(room: str = "") -> tuple[Figure, ...]:
    """Return the figures of the package, or of what stands below one of its folders."""
    wanted = [source(path) for path in paths() if path.is_relative_to(PACKAGE / room)]
    lines = sum(file.text.count("\n") for file in wanted)
    functions = [
        (f"{file.at(node)} {node.name}", node)
        for file in wanted
        for node in file.nodes
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    anys = [
        file.at(node)
        for file in wanted
        for node in file.nodes
        if isinstance(node, ast.Name) and node.id == "Any"
    ]
    noqas = [
        f"{file.short}:{number} {line.strip()}"
        for file in wanted
        for number, line in enumerate(file.text.splitlines(), 1)
        if _NOQA.search(line)
    ]
    long = [where for where, node in functions if _length(node) > _MOST_FUNCTION_LINES]
    wide = [where for where, node in functions if _parameters(node) > _MOST_PARAMETERS]
    large = [file.short for file in wanted if file.text.count("\n") > _MOST_FILE_LINES]
    top = [path.name for path in sorted(PACKAGE.glob("*.py"))] if not room else []
    cycles = [" > ".join(group) for group in import_cycles(wanted)]
    late = {file.short: count for file in wanted if (count := _late_constants(file))}
    defining = sum(any(isinstance(node, _DEFINITIONS) for node in _module(file).body) for file in wanted)
    return (
        _counted("modules at the top", top, 4),
        _counted("functions over 50 lines", long, 0),
        _counted("functions with over 7 parameters", wide, 0),
        Figure("uses of Any per 1,000 lines", round(1000 * len(anys) / max(lines, 1), 1), 8, anys),
        _counted("noqa", noqas, 39),
        _counted("files over 600 lines", large, 0),
        _counted("import cycles", cycles, 0),
        _counted("file names used twice", _used_twice(wanted), 0),
        _counted("attributes set from outside", _set_from_outside(wanted), 0),
        _counted("exceptions with another base than Exception", _odd_exceptions(wanted), 0),
        Figure(
            "% of modules with constants below a definition",
            round(100 * len(late) / max(defining, 1)),
            27,
            [*late],
        ),
        _counted("modules with three groups of them", [file for file, count in late.items() if count > 2], 0),
        _counted("names of ids for other values", _wrong_ids(wanted), 0),
        _counted("type aliases with two meanings", _ambiguous_aliases(wanted), 0),
    )


def _counted(name: str, places: Sequence[str], goal: int) -> Figure:
    return Figure(name, len(places), goal, places)


def import_cycles(wanted: Sequence[Source]) -> list[list[str]]:
    """Return the groups of modules that import each other, late imports included; for type checkers alone apart."""
    known = {file.name for file in wanted}
    edges = {file.name: set(_imported(file, known)) - {file.name} for file in wanted}
    return sorted(group for group in _components(edges) if len(group) > 1)


def typing_only(file: Source) -> set[ast.stmt]:
    """Return the imports that stand under `if TYPE_CHECKING:`."""
    return {
        inner
        for node in file.nodes
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
        for inner in ast.walk(node)
        if isinstance(inner, ast.Import | ast.ImportFrom)
    }


def _imported(file: Source, known: set[str]) -> Iterator[str]:
    apart = typing_only(file)
    for node in file.nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node not in apart:
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

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return found


def _used_twice(wanted: Sequence[Source]) -> list[str]:
    by_name: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for file in wanted:
        if "starter" not in file.path.parts:
            by_name[file.path.stem][_part(file)].append(file.short)
    return [
        " = ".join(path for paths in places.values() for path in paths)
        for places in by_name.values()
        if len(places) > 1
    ]


def _part(file: Source) -> str:
    """Return the protocol that a file is a part of, by its folder; the file itself where it is none."""
    folders = [folder for folder, names in _PARTS.items() if file.path.stem in names]
    return next((folder for folder in folders if file.path.is_relative_to(PACKAGE / folder)), file.short)


def _set_from_outside(wanted: Sequence[Source]) -> list[str]:
    """Return assignments to an attribute that a class of another module of ours declares, through any object."""
    own = {file.name: set(_declared(file)) for file in wanted}
    declarers = Counter(attribute for declared in own.values() for attribute in declared)
    return sorted(
        f"{file.at(target)} {ast.unparse(target)}"
        for file in wanted
        for target in _assigned(file.nodes)
        if declarers[target.attr]
        and target.attr not in own[file.name]
        and not (isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"))
        and target not in _set_on_pytest(file)
    )


def _set_on_pytest(file: Source) -> set[ast.Attribute]:
    """Return the assignments to parameters of pytest's own types: its hooks change reports in place."""
    found: set[ast.Attribute] = set()
    for node in file.nodes:
        if isinstance(node, ast.FunctionDef):
            arguments = (*node.args.args, *node.args.kwonlyargs)
            theirs = {
                one.arg for one in arguments if ast.unparse(one.annotation or one).startswith("pytest.")
            }
            assigned = _assigned(ast.walk(node))
            found |= {one for one in assigned if isinstance(one.value, ast.Name) and one.value.id in theirs}
    return found


def _assigned(nodes: Iterable[ast.AST]) -> Iterator[ast.Attribute]:
    for node in nodes:
        targets = node.targets if isinstance(node, ast.Assign) else []
        targets = [node.target] if isinstance(node, ast.AugAssign | ast.AnnAssign) else targets
        yield from (target for target in targets if isinstance(target, ast.Attribute))


def _declared(file: Source) -> Iterator[str]:
    """Yield the attributes that the classes of a module give to their own instances."""
    for node in file.nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        for inner in node.body:
            if isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name):
                yield inner.target.id
        for target in _assigned(ast.walk(node)):
            if isinstance(target.value, ast.Name) and target.value.id == "self":
                yield target.attr


def _odd_exceptions(wanted: Sequence[Source]) -> list[str]:
    odd = {"ValueError", "BaseException", "RuntimeError", "TypeError", "KeyError", "OSError"}
    published = {"ConfigError", "MaterializationError"}  # the format of packs wants a `ValueError`
    return [
        f"{file.at(node)} {node.name}"
        for file in wanted
        for node in file.nodes
        if isinstance(node, ast.ClassDef)
        and node.name not in published
        and any(isinstance(base, ast.Name) and base.id in odd for base in node.bases)
    ]


def _late_constants(file: Source) -> int:
    """Return how often a module begins to define constants again, behind its first function or class."""
    count, defines, in_group = 0, False, False
    for node in _module(file).body:
        if isinstance(node, _DEFINITIONS):
            defines, in_group = True, False
        elif isinstance(node, ast.Assign | ast.AnnAssign) and defines:
            target = node.targets[0] if isinstance(node, ast.Assign) else node.target
            if isinstance(target, ast.Name) and target.id.strip("_").isupper():
                count, in_group = count + (not in_group), True
    return count


def _wrong_ids(wanted: Sequence[Source]) -> list[str]:
    """Return parameters and attributes that are called ids, and hold objects of our classes."""
    classes = {node.name for file in wanted for node in file.nodes if isinstance(node, ast.ClassDef)}
    found = []
    for file in wanted:
        for node in file.nodes:
            if isinstance(node, ast.arg) or (
                isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
            ):
                name = node.arg if isinstance(node, ast.arg) else ast.unparse(node.target)
                types = {one.id for one in ast.walk(node.annotation or node) if isinstance(one, ast.Name)}
                if name.endswith(("_id", "_ids")) and not classes.isdisjoint(types):
                    found.append(f"{file.short}:{node.lineno} {name}")
    return found


def _ambiguous_aliases(wanted: Sequence[Source]) -> list[str]:
    """Return the names that two modules give to different types."""
    meanings: dict[str, dict[str, str]] = defaultdict(dict)
    for file in wanted:
        for node in _module(file).body:
            match node:
                case ast.Assign(
                    targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp() | ast.Constant()
                ):
                    if name.strip("_")[:1].isupper() and not name.isupper():
                        meanings[name][ast.unparse(node.value)] = file.short
    return [f"{name}: {', '.join(where.values())}" for name, where in meanings.items() if len(where) > 1]


def _module(file: Source) -> ast.Module:
    assert isinstance(file.nodes[0], ast.Module)
    return file.nodes[0]


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def _parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    arguments = node.args
    names = [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def _print(room: str, *, places: bool) -> None:
    for figure in figures(room):
        sys.stdout.write(
            f"{'ok ' if figure.holds else 'NOT'} {figure.name}: {figure.value} (goal {figure.goal})\n"
        )
        if places and not figure.holds:
            sys.stdout.writelines(f"      {place}\n" for place in figure.places)


if __name__ == "__main__":
    _print(sys.argv[1] if len(sys.argv) > 1 else "", places=True)
