"""What a row's test code is: which names it takes from the candidate, and what of it has to be called."""

from __future__ import annotations

import builtins
import sys
from typing import Any

from pytest_helmbench.evaluate.code.inside.syntax import (
    completed,
    declared_names,
    import_lines,
    kind,
    nodes,
    top_statements,
    tree_of,
    used_names,
)

__all__ = ["Suite"]

_RUNNERS = frozenset(("main", "TextTestRunner", "TestSuite", "TestLoader", "defaultTestLoader"))
_TESTED = frozenset(
    (
        *("solution", "candidate", "main", "submission", "answer", "module", "code", "student", "impl"),
        *("implementation", "my_module", "your_module", "mymodule", "yourmodule", "program", "task", "app"),
    )
)
_MADE = ("FunctionDef", "AsyncFunctionDef", "ClassDef")


class Suite:
    """Tests and starter, read without running them.

    Args:
        tests: The row's test code.
        starter: Where the row's code starts; may be empty.
    """

    def __init__(self, tests: str, starter: str) -> None:
        self.tree = tree_of(tests)
        whole = completed(starter)
        starting = tree_of(whole)
        self.declared = declared_names(starting) if starting is not None else {}
        self.imports = "\n".join(import_lines(whole, starting)) if starting is not None else ""
        self.used = used_names(self.tree) if self.tree is not None else frozenset()
        self.tested, self.imported = self._tested()
        """Modules by which the tests call the candidate, and what they import from them."""
        self.reached = _reached(self.tree) if self.tree is not None else frozenset()
        """Names that running the tests makes use of, in functions that get called too."""

    def _tested(self) -> tuple[frozenset[str], frozenset[str]]:
        modules: set[str] = set()
        names: set[str] = set()
        for node in nodes(self.tree) if self.tree is not None else ():
            if kind(node) == "Import":
                modules |= {alias.name for alias in node.names}
            elif kind(node) == "ImportFrom" and node.module and not node.level:
                modules.add(node.module)
                if node.module in _TESTED or node.module in self.declared:
                    names |= {alias.name for alias in node.names}
        return frozenset(name for name in modules if name in _TESTED or name in self.declared), frozenset(names)

    def wanted(self) -> list[str]:
        """Return the names to ask the candidate for; Python's own only where the starter declares them."""
        names = {name for name in self.used if not hasattr(builtins, name)} | set(self.declared)
        names |= self.imported
        return sorted(name for name in names if not name.startswith("__"))

    def shadowed(self) -> list[str]:
        """Return Python's own names that the tests use, for a row without starter whose function is called so."""
        return sorted(name for name in self.used if hasattr(builtins, name)) if not self.declared else []

    def known_classes(self) -> list[str]:
        """Return the names that starter or tests show to be classes of the candidate."""
        classes = {name for name, what in self.declared.items() if what == "class"}
        if self.tree is not None:
            classes |= {name for name in _instantiated(self.tree) if name not in self.declared}
        return sorted(classes)

    def modules(self) -> list[str]:
        """Return the modules that the tests use without importing them; they are ours to import."""
        standard = getattr(
            sys, "stdlib_module_names", frozenset(("math", "re", "json", "itertools", "collections"))
        )
        return sorted(name for name in self.used if name in standard and name not in self.declared)

    def runs_cases(self) -> bool:
        """Return whether the tests run their test cases themselves."""
        return bool(self.reached & _RUNNERS)

    def entry(self) -> str | None:
        """Return the function that the starter declares last."""
        functions = [name for name, what in self.declared.items() if what == "function"]
        return functions[-1] if functions else None


def _instantiated(tree: Any) -> set[str]:
    """Return capitalised names that are called, and of whose result an attribute is used."""
    called: set[str] = set()
    holders: dict[str, str] = {}
    for node in nodes(tree):
        if kind(node) == "Attribute" and kind(node.value) == "Call":
            called.add(_callee(node.value))
        elif kind(node) == "Assign" and kind(node.value) == "Call":
            holders.update((name.id, _callee(node.value)) for name in node.targets if kind(name) == "Name")
        elif kind(node) == "With":
            for item in node.items:
                if kind(item.context_expr) == "Call":
                    called.add(_callee(item.context_expr))
    for node in nodes(tree):
        if kind(node) == "Attribute" and kind(node.value) == "Name" and node.value.id in holders:
            called.add(holders[node.value.id])
    return {name for name in called if name[:1].isupper() and name != name.upper()}


def _callee(call: Any) -> str:
    return call.func.id if kind(call.func) == "Name" else ""


def _reached(tree: Any) -> frozenset[str]:
    """Return every name and attribute that is read by what runs with the module, calls of its own functions included."""
    made = {node.name: node for node in top_statements(tree) if kind(node) in _MADE}
    todo = [node for node in tree.body if kind(node) not in _MADE]
    found: set[str] = set()
    while todo:
        for node in nodes(todo.pop()):
            name = node.id if kind(node) == "Name" else node.attr if kind(node) == "Attribute" else None
            if name is not None and name not in found:
                found.add(name)
                if name in made:
                    todo.append(made[name])
    return frozenset(found)
