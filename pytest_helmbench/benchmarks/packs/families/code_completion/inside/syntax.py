"""Static analysis of Python text: names, imports and statements from its syntax tree, without running it.

The tree is asked for through `compile`: the `ast` module costs as much as a start of Python, and `typing` more.
"""

from __future__ import annotations

import _ast
from _ast import (
    AST,
    AnnAssign,
    Assign,
    AsyncFunctionDef,
    ClassDef,
    FunctionDef,
    Import,
    ImportFrom,
    Load,
    Module,
    Name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "completed",
    "declared_names",
    "defined_names",
    "import_lines",
    "is_valid",
    "last_line_of",
    "nodes",
    "source_of",
    "top_statements",
    "tree_of",
    "used_names",
]

_ONLY_TREE = 0x400  # ast.PyCF_ONLY_AST
_TOO_MUCH = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_AROUND = (_ast.If, _ast.Try, getattr(_ast, "TryStar", _ast.Try), _ast.With)
"""Statements that others stand in, which run with the module."""


def tree_of(text: str) -> Module | None:
    """Return the module's syntax tree; None when the text is no Python."""
    try:
        tree: Module = compile(text, "text", "exec", _ONLY_TREE, dont_inherit=True)
    except _TOO_MUCH:
        return None
    return tree


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


def nodes(top: AST) -> Iterator[AST]:
    """Yield a node and all below it, in no order."""
    todo = [top]
    while todo:
        node = todo.pop()
        yield node
        for field in node._fields:
            value = getattr(node, field, None)
            if isinstance(value, list):
                todo += [item for item in value if isinstance(item, AST)]
            elif isinstance(value, AST):
                todo.append(value)


def top_statements(tree: Module) -> Iterator[_ast.stmt]:
    """Yield the statements of a module, those in `if` and `try` too."""
    todo = list(reversed(tree.body))
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, _AROUND):
            for field in ("finalbody", "orelse", "body"):
                todo += reversed(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                todo += reversed(handler.body)


def declared_names(tree: Module) -> dict[str, str]:
    """Return what a module defines by `def`, `class` and assignment, with the kind of it."""
    found: dict[str, str] = {}
    for node in top_statements(tree):
        if isinstance(node, (FunctionDef, AsyncFunctionDef)):
            found[node.name] = "function"
        elif isinstance(node, ClassDef):
            found[node.name] = "class"
        elif isinstance(node, (Assign, AnnAssign)):
            for target in node.targets if isinstance(node, Assign) else [node.target]:
                found.update((name.id, "value") for name in nodes(target) if isinstance(name, Name))
    return found


def defined_names(tree: Module) -> frozenset[str]:
    """Return every name that a module has when it has run, imported ones included."""
    found = set(declared_names(tree))
    for node in top_statements(tree):
        if isinstance(node, (Import, ImportFrom)):
            found.update(alias.asname or alias.name.partition(".")[0] for alias in node.names)
    return frozenset(found)


def import_lines(text: str, tree: Module) -> list[str]:
    """Return the import statements at the top of a module, as they are written."""
    return [source_of(text, node) for node in tree.body if isinstance(node, (Import, ImportFrom))]


def source_of(text: str, node: _ast.stmt) -> str:
    """Return the text of a statement."""
    lines = text.encode("utf-8", "surrogatepass").splitlines()[node.lineno - 1 : node.end_lineno]
    lines[-1] = lines[-1][: node.end_col_offset]
    lines[0] = lines[0][node.col_offset :]
    return b"\n".join(lines).decode("utf-8", "surrogatepass")


def last_line_of(node: _ast.stmt) -> int:
    """Return the last line of a statement."""
    return node.end_lineno or node.lineno


def used_names(tree: Module) -> frozenset[str]:
    """Return every name that is read anywhere."""
    return frozenset(node.id for node in nodes(tree) if isinstance(node, Name) and isinstance(node.ctx, Load))
