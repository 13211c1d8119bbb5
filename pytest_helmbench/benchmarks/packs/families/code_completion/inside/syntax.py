"""What Python text says about itself, read from its syntax tree without running it.

The tree is asked for through `compile`: the `ast` module costs as much as a start of Python.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

__all__ = [
    "completed",
    "declared_names",
    "defined_names",
    "import_lines",
    "is_valid",
    "kind",
    "nodes",
    "source_of",
    "top_statements",
    "tree_of",
    "used_names",
]

_ONLY_TREE = 0x400  # ast.PyCF_ONLY_AST
_TOO_MUCH = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)


def tree_of(text: str) -> Any | None:
    """Return the module's syntax tree; None when the text is no Python."""
    try:
        return compile(text, "text", "exec", _ONLY_TREE, dont_inherit=True)
    except _TOO_MUCH:
        return None


def completed(starter: str) -> str:
    """Return a starter with a body where its last function lacks one; as it is when that makes no Python either."""
    for end in ("", "\n    pass\n", "\n        pass\n"):
        if is_valid(starter.rstrip() + end):
            return starter.rstrip() + end
    return starter


def is_valid(text: str) -> bool:
    """Return whether the text can be run: syntax, and what only the compiler refuses, such as a stray `return`."""
    try:
        compile(text, "text", "exec", dont_inherit=True)
    except _TOO_MUCH:
        return False
    return True


def kind(node: Any) -> str:
    """Return the name of a node's class."""
    return type(node).__name__


def nodes(top: Any) -> Iterator[Any]:
    """Yield a node and all below it, in no order."""
    todo = [top]
    while todo:
        node = todo.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                todo += [item for item in value if hasattr(item, "_fields")]
            elif hasattr(value, "_fields"):
                todo.append(value)


def top_statements(tree: Any) -> Iterator[Any]:
    """Yield the statements of a module, those in `if` and `try` too."""
    todo = list(reversed(tree.body))
    while todo:
        node = todo.pop()
        yield node
        if kind(node) in ("If", "Try", "TryStar", "With"):
            for field in ("finalbody", "orelse", "body"):
                todo += reversed(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                todo += reversed(handler.body)


def declared_names(tree: Any) -> dict[str, str]:
    """Return what a module defines by `def`, `class` and assignment, with the kind of it."""
    found: dict[str, str] = {}
    for node in top_statements(tree):
        if kind(node) in ("FunctionDef", "AsyncFunctionDef"):
            found[node.name] = "function"
        elif kind(node) == "ClassDef":
            found[node.name] = "class"
        elif kind(node) in ("Assign", "AnnAssign"):
            targets = node.targets if kind(node) == "Assign" else [node.target]
            for target in targets:
                found.update((name.id, "value") for name in nodes(target) if kind(name) == "Name")
    return found


def defined_names(tree: Any) -> frozenset[str]:
    """Return every name that a module has when it has run, imported ones included."""
    found = set(declared_names(tree))
    for node in top_statements(tree):
        if kind(node) in ("Import", "ImportFrom"):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    return frozenset(found)


def import_lines(text: str, tree: Any) -> list[str]:
    """Return the import statements at the top of a module, as they are written."""
    return [source_of(text, node) for node in tree.body if kind(node) in ("Import", "ImportFrom")]


def source_of(text: str, node: Any) -> str:
    """Return the text of a statement."""
    lines = text.encode("utf-8", "surrogatepass").splitlines()[node.lineno - 1 : node.end_lineno]
    lines[-1] = lines[-1][: node.end_col_offset]
    lines[0] = lines[0][node.col_offset :]
    return b"\n".join(lines).decode("utf-8", "surrogatepass")


def used_names(tree: Any) -> frozenset[str]:
    """Return every name that is read anywhere."""
    return frozenset(node.id for node in nodes(tree) if kind(node) == "Name" and kind(node.ctx) == "Load")
