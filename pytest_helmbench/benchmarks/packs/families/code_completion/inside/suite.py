"""Static analysis of a row's test code: names taken from the candidate, and what of it has to be called."""

from __future__ import annotations

import builtins
import sys
from _ast import (
    AST,
    AnnAssign,
    Assert,
    Assign,
    AsyncFunctionDef,
    AsyncWith,
    Attribute,
    Call,
    ClassDef,
    Constant,
    Expr,
    FunctionDef,
    Import,
    ImportFrom,
    Module,
    Name,
    Pass,
    Raise,
    With,
)

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.syntax import (
    completed,
    declared_names,
    import_lines,
    last_line_of,
    nodes,
    source_of,
    top_statements,
    tree_of,
    used_names,
)

__all__ = ["Suite", "is_open"]

_OF_SITE = frozenset(("exit", "quit", "copyright", "credits", "license", "help"))
"""Built-in names that come with `site`, which is not imported here."""

_RUNNERS = frozenset(("main", "TextTestRunner", "TestSuite", "TestLoader", "defaultTestLoader"))
_TESTED = frozenset(
    (
        *("solution", "candidate", "main", "submission", "answer", "module", "code", "student", "impl"),
        *("implementation", "my_module", "your_module", "mymodule", "yourmodule", "program", "task", "app"),
    )
)
_FILES = "the tests use files, which the candidate does not share"
_PATCHES = "the tests patch what the candidate uses"
_LOOKS = "the tests look into the candidate's code"
_ACROSS = {
    **dict.fromkeys(("open", "tempfile.NamedTemporaryFile", "tempfile.TemporaryDirectory"), _FILES),
    **dict.fromkeys(("tempfile.mkdtemp", "tempfile.mkstemp"), _FILES),
    **dict.fromkeys(("mock.patch", "builtins.input", "sys.stdin"), _PATCHES),
    **dict.fromkeys(("inspect.getsource", "inspect.signature", "inspect.getfullargspec"), _LOOKS),
    **dict.fromkeys(("dataclasses.asdict", "dataclasses.astuple", "dataclasses.fields"), _LOOKS),
    **dict.fromkeys(
        ("dataclasses.is_dataclass", "typing.get_type_hints", "inspect.iscoroutinefunction"), _LOOKS
    ),
}
_MADE = (FunctionDef, AsyncFunctionDef, ClassDef)


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
        self.given = _given(whole, starting) if starting is not None else ""
        """What the tests take from the starter itself: imports, and helpers that it leaves nothing to write of."""
        self.used = used_names(self.tree) if self.tree is not None else frozenset()
        self.tested, self.imported = self._tested()
        """Modules by which the tests call the candidate, and what they import from them."""
        self.reached = _reached(self.tree) if self.tree is not None else frozenset()
        """Names that running the tests makes use of, in functions that get called too."""

    def _tested(self) -> tuple[frozenset[str], frozenset[str]]:
        modules: set[str] = set()
        names: set[str] = set()
        for node in nodes(self.tree) if self.tree is not None else ():
            if isinstance(node, Import):
                modules |= {alias.name for alias in node.names}
            elif isinstance(node, ImportFrom) and node.module and not node.level:
                modules.add(node.module)
                if node.module in _TESTED or node.module in self.declared:
                    names |= {alias.name for alias in node.names}
        return frozenset(name for name in modules if name in _TESTED or name in self.declared), frozenset(
            names
        )

    def wanted(self) -> list[str]:
        """Return the names to ask the candidate for; Python's own only where the starter declares them."""
        names = {name for name in self.used if not _is_pythons(name)} - set(self.modules())
        names |= set(self.declared) | self.imported
        return sorted(name for name in names if not name.startswith("__"))

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
        called = (
            {_callee(node) for node in nodes(self.tree) if isinstance(node, Call)} if self.tree else set()
        )
        return sorted(self.used & set(standard) - set(self.declared) - called)

    def obstacle(self) -> str | None:
        """Return why these tests cannot be run from another process; None when they can."""
        if self.tree is None:
            return None
        imported: dict[str, str] = {}
        for node in nodes(self.tree):
            if isinstance(node, ImportFrom):
                imported.update(
                    (alias.asname or alias.name, f"{node.module}.{alias.name}") for alias in node.names
                )
        used = {imported.get(name, name) for name in self.used}
        used |= {
            f"{imported.get(node.value.id, node.value.id)}.{node.attr}"
            for node in nodes(self.tree)
            if isinstance(node, Attribute) and isinstance(node.value, Name)
        }
        for name, what in _ACROSS.items():
            if name in used or any(each.endswith("." + name) for each in used if "." in name):
                return what
        return None

    def ends_block(self, line: int) -> bool:
        """Return whether a line of a `with` block can be left without a check being passed over.

        It can if it raises by itself, uses nothing that came from the candidate, or is the last and no check.
        """
        top = nodes(self.tree) if self.tree is not None else ()
        blocks = [node.body for node in top if isinstance(node, (With, AsyncWith))]
        inner = [body for body in blocks if body[0].lineno <= line <= last_line_of(body[-1])]
        if not inner:
            return False
        body = max(inner, key=lambda body: body[0].lineno)
        statement = next(node for node in body if node.lineno <= line <= last_line_of(node))
        if isinstance(statement, Raise):
            return True
        names = {node.id for node in nodes(statement) if isinstance(node, Name)}
        if names <= set(dir(builtins)) and not names & set(self.declared):
            return not isinstance(statement, Assert)
        if self.tree is not None and names & _functions(self.tree):
            return False  # a function of the tests may be a check
        checks = [
            node for node in nodes(statement) if isinstance(node, Attribute) and "assert" in node.attr.lower()
        ]
        return statement is body[-1] and isinstance(statement, (Expr, Assign)) and not checks

    def exits_at(self, line: int) -> bool:
        """Return whether a line of the tests ends them itself, in words of its own."""
        top = nodes(self.tree) if self.tree is not None else ()
        names = {
            name
            for node in top
            if getattr(node, "lineno", 0) <= line <= (getattr(node, "end_lineno", 0) or 0)
            for name in (getattr(node, "id", ""), getattr(node, "attr", ""))
            if isinstance(node, (Name, Attribute))
        }
        return bool(names & {"exit", "_exit", "quit", "SystemExit"})

    def runs_cases(self) -> bool:
        """Return whether the tests run their test cases themselves."""
        return bool(self.reached & _RUNNERS)

    def entry(self) -> str | None:
        """Return the function that the starter declares last."""
        functions = [name for name, what in self.declared.items() if what == "function"]
        return functions[-1] if functions else None


def _instantiated(tree: Module) -> set[str]:
    """Return capitalised names that are called, and of whose result an attribute is used."""
    called: set[str] = set()
    holders: dict[str, str] = {}
    for node in nodes(tree):
        if isinstance(node, Attribute) and isinstance(node.value, Call):
            called.add(_callee(node.value))
        elif isinstance(node, Assign) and isinstance(node.value, Call):
            callee = _callee(node.value)
            holders.update((name.id, callee) for name in node.targets if isinstance(name, Name))
        elif isinstance(node, With):
            for item in node.items:
                if isinstance(item.context_expr, Call):
                    called.add(_callee(item.context_expr))
    for node in nodes(tree):
        if isinstance(node, Attribute) and isinstance(node.value, Name) and node.value.id in holders:
            called.add(holders[node.value.id])
    return {name for name in called if name[:1].isupper() and name != name.upper()}


def _functions(tree: Module) -> set[str]:
    """Return the names of the functions and classes that a module defines."""
    return {node.name for node in top_statements(tree) if isinstance(node, _MADE)}


def _is_pythons(name: str) -> bool:
    return hasattr(builtins, name) or name in _OF_SITE


def _callee(call: Call) -> str:
    return call.func.id if isinstance(call.func, Name) else ""


def _reached(tree: Module) -> frozenset[str]:
    """Return every name and attribute that is read by what runs with the module, calls included."""
    made: dict[str, AST] = {node.name: node for node in top_statements(tree) if isinstance(node, _MADE)}
    todo: list[AST] = [node for node in tree.body if not isinstance(node, _MADE)]
    found: set[str] = set()
    while todo:
        for node in nodes(todo.pop()):
            name = node.id if isinstance(node, Name) else node.attr if isinstance(node, Attribute) else None
            if name is not None and name not in found:
                found.add(name)
                if name in made:
                    todo.append(made[name])
    return frozenset(found)


def _given(starter: str, tree: Module) -> str:
    """Return the imports of a starter and, where it marks what there is to write, what it has written itself."""
    functions = [node for node in tree.body if isinstance(node, (FunctionDef, AsyncFunctionDef))]
    lines = import_lines(starter, tree)
    if any(map(is_open, functions)) and tree.body:
        kept = [
            node
            for node in tree.body
            if isinstance(node, (Assign, AnnAssign)) or (node in functions and not is_open(node))
        ]
        lines += [source_of(starter, node) for node in kept if not getattr(node, "decorator_list", ())]
    return "\n".join(lines)


def is_open(function: FunctionDef | AsyncFunctionDef | ClassDef) -> bool:
    """Return whether a function or class is left to be written: it has nothing but words, `pass`, `...` or an error."""
    for node in function.body:
        is_words = isinstance(node, Expr) and isinstance(node.value, Constant)
        is_error = isinstance(node, Raise) and any(
            isinstance(each, Name) and each.id == "NotImplementedError" for each in nodes(node)
        )
        if not (is_words or is_error or isinstance(node, Pass)):
            return False
    return True
