"""Names of the tests in a file that cannot be imported, from its text."""

from __future__ import annotations

import ast

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["names_of_tests"]


def names_of_tests(path: str, separator: str) -> list[str]:
    """Return functions and methods whose names start with `test`; empty for what is no Python.

    Args:
        path: Of the file.
        separator: Between a class and its method.
    """
    try:
        with open(path, "rb") as file:
            tree = ast.parse(file.read())
    except (OSError, SyntaxError, ValueError, RecursionError):
        return []
    return list(_names(tree, separator))


def _names(tree: ast.Module, separator: str) -> Iterator[str]:
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            if node.name.startswith("test") and separator == "::":
                yield node.name
        elif isinstance(node, ast.ClassDef):
            bases = [getattr(base, "attr", getattr(base, "id", "")) for base in node.bases]
            if any("TestCase" in base for base in bases) or (
                node.name.startswith("Test") and separator == "::"
            ):
                for inner in node.body:
                    if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef)) and inner.name.startswith(
                        "test"
                    ):
                        yield node.name + separator + inner.name
