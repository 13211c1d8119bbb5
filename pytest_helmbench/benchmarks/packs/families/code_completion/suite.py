"""A row's tests, starter and reference, read before any reply: what they take from it, and whether data is enough.

Candidate and tests talk in plain data, from two boxes. Where a starter declares a class, or tests hand over, compare or
look into objects, that cannot be said in data: they share one box, and the verdict carries the mark `in_process`. The
pack's own words alone decide; where they leave it open, two boxes are taken.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.reply import (
    names_of,
    top_statements,
    tree_of,
)

if TYPE_CHECKING:
    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import ReplyJob, SuiteJob


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OF_SITE = _words("exit quit copyright credits license help")
"""Built-in names that come with `site`, which is not imported in the sandbox."""

_BUILTINS = frozenset(dir(builtins)) | _OF_SITE
_EXITS = frozenset(("exit", "_exit", "quit", "SystemExit"))
_RUNNERS = frozenset(("main", "TextTestRunner", "TestSuite", "TestLoader", "defaultTestLoader"))
_TESTED = _words(
    "solution candidate main submission answer module code student impl implementation my_module your_module "
    "mymodule yourmodule program task app"
)
"""Modules by which tests may call the candidate."""

_BESIDE = _words(
    "inspect types dataclasses typing abc mock patch tempfile open stdin input builtins asyncio namedtuple globals "
    "memoryview id getattr setattr delattr hasattr vars gc weakref threading concurrent subprocess os shutil "
    "importlib runpy signal socket contextvars"
)
"""Names in tests that need the candidate's objects, files or machinery at hand."""

_MAKERS = _words("iter map filter zip enumerate reversed object open")
_MODULES_OF_OBJECTS = _words("itertools functools operator re")
_CONSTANTS = _words(
    "pi e inf nan tau maxsize utc min max ascii_lowercase ascii_uppercase ascii_letters digits hexdigits punctuation "
    "whitespace printable"
)
_PLAIN_TYPES = (
    *(str, int, float, complex, bytes, bytearray, list, tuple, dict, set, frozenset, range, slice, deque),
    *(Counter, OrderedDict, defaultdict, Decimal, Fraction, date, datetime, timedelta, Exception, OSError),
)
_PLAIN_ATTRIBUTES = frozenset(
    name for cls in _PLAIN_TYPES for name in dir(cls) if not name.startswith("__")
) | _words("exception getvalue maxlen randint randrange random choice sample shuffle uniform seed")
"""Attributes that plain data has, and what tests use to catch exceptions and output, and to throw dice."""

_MADE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Suite:
    """Tests and starter, read without running them."""

    def __init__(self, tests: str, starter: str, references: tuple[str, ...] = ()) -> None:
        self._tests = tests
        self._starter = starter
        self._references = references
        endings = ("", "\n    pass\n", "\n        pass\n")
        texts = (starter.rstrip() + end for end in endings)
        self._whole = next((text for text in texts if tree_of(text) is not None), starter)
        self._tops = list(top_statements(tree_of(self._whole)))
        self._tree = tree_of(tests)
        declared = _declared(tree_of(self._whole), starter)
        self._facts = _Facts(self._tree or ast.Module([], []), declared)

    def job(self, token: str, blocks: list[str], reply: str, *, is_code: bool) -> SuiteJob:
        """Return what the sandboxes are sent about a reply."""
        facts, tops = self._facts, self._tops
        functions = [name for name, kind in facts.declared.items() if kind == "function"]
        own = "" if is_code else self._starter
        imports = [node for node in tops if isinstance(node, (ast.Import, ast.ImportFrom))]
        reply_job: ReplyJob = {
            "blocks": blocks,
            "reply": reply,
            "starter": own,
            "whole": self._whole,
            "imports": self._source(imports),
            "declared": facts.declared if own else {},
        }
        return {
            "token": token,
            "in_process": self._needs_objects(),
            "tests": self._tests,
            "given": self._source([*imports, *self._given()]),
            "wanted": facts.wanted(),
            "modules": sorted(facts.modules),
            "needs": facts.needs,
            "tested": sorted(facts.tested),
            "entry": functions[-1] if functions else "",
            "uncalled": facts.uncalled(),
            "runs_cases": bool(facts.reached & _RUNNERS),
            "exits": facts.exits(),
            "reply": reply_job,
        }

    def is_vacuous(self) -> bool:
        """Return whether the tests use nothing that a candidate could define."""
        facts = self._facts
        uses = facts.used & (set(facts.declared) | facts.free)
        has_entry = "function" in facts.declared.values() and "check" in facts.made
        return self._tree is not None and not (uses or facts.tested or facts.imported or has_entry)

    def _needs_objects(self) -> bool:
        facts = self._facts
        is_class = "class" in facts.declared.values()
        if is_class or any(isinstance(node, ast.AsyncFunctionDef) for node in self._tops):
            return True
        return facts.need_objects() or any(_gives_objects(text, facts.used) for text in self._references)

    def _given(self) -> list[ast.stmt]:
        """Return what a starter has written itself, where it marks what there is to write."""
        functions = [node for node in self._tops if isinstance(node, _FUNCTIONS)]
        if not any(map(_is_open, functions)):
            return []
        values = [node for node in self._tops if isinstance(node, (ast.Assign, ast.AnnAssign))]
        return [*values, *(node for node in functions if not _is_open(node) and not node.decorator_list)]

    def _source(self, statements: Sequence[ast.stmt]) -> str:
        return "\n".join(ast.get_source_segment(self._whole, node) or "" for node in statements)


class _Facts:
    """The facts in the tests' syntax tree."""

    def __init__(self, tree: ast.Module, declared: dict[str, str]) -> None:
        self.tree = tree
        self.declared = declared
        self.nodes = list(ast.walk(tree))
        self.used = {node.id for node in self.nodes if isinstance(node, ast.Name)}
        self.made = {node.name for node in self.nodes if isinstance(node, _MADE)}
        self.tested: set[str] = set()
        self.imported: set[str] = set()
        """Names that the tests import from the candidate."""
        self.modules_of: dict[str, str] = {}
        """Names that the tests import, with the module that they are from."""
        self.needs: list[str] = []
        self._read_imports()
        bound = {
            node.id for node in self.nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        bound |= {node.arg for node in self.nodes if isinstance(node, ast.arg)}
        bound |= {node.name for node in self.nodes if isinstance(node, ast.ExceptHandler) and node.name}
        self.builtins = _BUILTINS - bound
        calls = {
            node.func.id
            for node in self.nodes
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        }
        self.modules = self.used & sys.stdlib_module_names - set(declared) - calls - {"__main__"}
        """Modules that the tests use without importing them; they are ours to import."""
        self.free = self.used - bound - self.made - set(self.modules_of) - _BUILTINS - self.modules
        self.candidates = self.free | set(declared) | self.tested | self.imported | {"candidate"}
        self.reached = self._reached()

    def _read_imports(self) -> None:
        for node in self.nodes:
            if isinstance(node, ast.Import):
                for alias in node.names:
                    is_tested = alias.name in _TESTED or alias.name in self.declared
                    name = alias.asname or alias.name.partition(".")[0]
                    if is_tested:
                        self.tested |= {alias.name, name}
                    else:
                        self.modules_of[name] = alias.name
                        self.needs.append(f"import {alias.name}")
            elif isinstance(node, ast.ImportFrom):
                module = node.module or ""
                is_tested = not node.level and (module in _TESTED or module in self.declared)
                self.tested |= {module} if is_tested else set()
                names = {alias.asname or alias.name for alias in node.names}
                if is_tested:
                    self.imported |= names | {alias.name for alias in node.names}
                else:
                    self.modules_of.update(dict.fromkeys(names, module))
                    self.needs += [f"from {module} import {alias.name}" for alias in node.names if module]

    def wanted(self) -> list[str]:
        """Return the names to ask the candidate for; Python's own only where the starter declares them."""
        names = self.used - _BUILTINS - self.modules | set(self.declared) | self.imported
        return sorted(name for name in names if not name.startswith("__"))

    def uncalled(self) -> list[str]:
        """Return the functions and classes that the tests only define, in order."""
        tops = (node.name for node in top_statements(self.tree) if isinstance(node, _MADE))
        return [name for name in dict.fromkeys(tops) if name not in self.reached]

    def exits(self) -> list[int]:
        """Return the lines at which the tests may end by their own words."""
        return [node.lineno for node in self.nodes if _word(node) in _EXITS and isinstance(node, ast.expr)]

    def _reached(self) -> set[str]:
        """Return every name and attribute that is read by what runs with the module, calls included."""
        made: dict[str, ast.AST] = {
            node.name: node for node in top_statements(self.tree) if isinstance(node, _MADE)
        }
        todo: list[ast.AST] = [node for node in self.tree.body if not isinstance(node, _MADE)]
        found: set[str] = set()
        while todo:
            for word in {_word(node) for node in ast.walk(todo.pop())} - found:
                found.add(word)
                if word in made:
                    todo.append(made[word])
        return found

    def need_objects(self) -> bool:
        """Return whether the tests need of the candidate, or hand to it, what is not plain data."""
        words = {_word(node) for node in self.nodes} | set(self.modules_of) | set(self.modules_of.values())
        classes = {name for name in self.free | self.imported if name[:1].isupper() and not name.isupper()}
        if words & _BESIDE or classes - set(self.declared):
            return True
        if words & {"StringIO", "BytesIO"} and not words & {"redirect_stdout", "redirect_stderr"}:
            return True
        return any(
            self._looks_in(node) or self._wants_object(node) or self._hands_over(node) for node in self.nodes
        )

    def _looks_in(self, node: ast.AST) -> bool:
        """Return whether an attribute is one that plain data does not have."""
        if not isinstance(node, ast.Attribute) or node.attr in _PLAIN_ATTRIBUTES:
            return False
        if isinstance(node.value, ast.Name) and node.value.id in self.tested:
            return False
        root = _root(node)
        return not (root in ("self", "cls", "super") or root in self.modules_of or root in self.modules)

    def _wants_object(self, node: ast.AST) -> bool:
        """Return whether a statement or comparison takes more than data from the candidate."""
        parts: list[ast.expr] = []
        if isinstance(node, (ast.AsyncFunctionDef, ast.Await)):
            return True
        if isinstance(node, ast.ClassDef):
            if not _is_test_class(node):
                return True
            parts = node.bases
        elif isinstance(node, ast.FunctionDef):
            parts = node.decorator_list
        elif isinstance(node, ast.With):
            parts = [item.context_expr for item in node.items]
        elif isinstance(node, ast.Raise) and node.exc is not None:
            parts = [node.exc]
        elif isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            return not any(map(_is_constant, (node.left, *node.comparators)))
        elif isinstance(node, ast.Call) and _word(node.func) in ("assertIs", "assertIsNot"):
            return not any(map(_is_constant, node.args))
        return any(_root(part) in self.candidates or self._has_call(part) for part in parts)

    def _has_call(self, node: ast.expr) -> bool:
        return any(
            isinstance(each, ast.Call) and _root(each.func) in self.candidates for each in ast.walk(node)
        )

    def _hands_over(self, node: ast.AST) -> bool:
        """Return whether a call of the candidate, or of a function of the tests, is given an object, or a name is."""
        given: list[ast.expr] = []
        if isinstance(node, ast.Call) and not self._consumes(node.func):
            given = [*node.args, *(keyword.value for keyword in node.keywords)]
        elif isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            given = [node.value]
        elif isinstance(node, (ast.For, ast.comprehension)) and isinstance(node.iter, (ast.List, ast.Tuple)):
            given = [node.iter]
        return any(map(self._is_object, given))

    def _consumes(self, callee: ast.expr) -> bool:
        """Return whether a call is one of Python's own, or of a library, which gives data for what it is handed."""
        root = _root(callee)
        if isinstance(callee, ast.Name):
            return callee.id in _BUILTINS or self.modules_of.get(callee.id) is not None
        return root not in self.candidates

    def _is_object(self, node: ast.expr) -> bool:
        """Return whether an expression is, or holds, what is not plain data."""
        if isinstance(node, (ast.Lambda, ast.GeneratorExp)):
            return True
        if isinstance(node, ast.Name):
            is_own = node.id in self.made or node.id in self.builtins
            return is_own or self.modules_of.get(node.id) in _MODULES_OF_OBJECTS
        if isinstance(node, ast.Attribute):
            if _root(node) == "self":
                return node.attr in self.made
            is_module = _root(node) in self.modules_of or _root(node) in self.modules
            return _root(node) in _BUILTINS or (is_module and node.attr not in _CONSTANTS)
        if isinstance(node, ast.Call):
            root = _root(node.func)
            source = self.modules_of.get(root, root if root in self.modules else "")
            return root in _MAKERS or source in _MODULES_OF_OBJECTS
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return any(self._is_object(part) for part in parts)


def _word(node: ast.AST) -> str:
    """Return a name or attribute; empty for anything else."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _root(node: ast.AST) -> str:
    """Return the name that a chain of attributes, calls and subscripts begins with; empty for none."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _is_constant(node: ast.expr) -> bool:
    """Return whether a value is the same object in every process, as `None` and classes of Python's own are."""
    is_builtin = isinstance(node, ast.Name) and node.id in _BUILTINS
    return is_builtin or isinstance(node, ast.Constant) or _root(node) == "type"


def _is_test_class(node: ast.ClassDef) -> bool:
    """Return whether a class of the tests is a test case or an exception, none whose objects are handed over."""
    bases = [_word(base) for base in node.bases]
    return node.name.startswith("Test") or any(
        base.endswith(("TestCase", "Error", "Exception")) for base in bases
    )


def _gives_objects(reference: str, used: set[str]) -> bool:
    """Return whether a solution has a class, or coroutine, that the tests name, or returns objects of its classes."""
    tree = tree_of(reference)
    tops = list(top_statements(tree))
    classes = {node.name for node in tops if isinstance(node, ast.ClassDef)}
    named = classes | {node.name for node in tops if isinstance(node, ast.AsyncFunctionDef)}
    returned = [node.value for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, ast.Return)]
    return bool(named & used) or any(
        isinstance(value, ast.Call) and _root(value.func) in classes for value in returned
    )


def _declared(tree: ast.Module | None, starter: str) -> dict[str, str]:
    """Return what a starter defines, with the kind of it; by look where it is not Python yet."""
    if tree is not None:
        return {name: kind for name, kind in names_of(tree).items() if kind != "import"}
    found = {}
    for line in starter.splitlines():
        words = line.removeprefix("async ").replace("(", " ").replace(":", " ").split()
        if len(words) > 1 and words[0] in ("def", "class") and not line.startswith((" ", "\t")):
            found[words[1]] = "class" if words[0] == "class" else "function"
    return found


def _is_open(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Return whether a function or class is left to be written: nothing but words, `pass`, `...` or an error."""
    methods = [each for each in node.body if isinstance(each, _FUNCTIONS)]
    if isinstance(node, ast.ClassDef) and methods:
        return any(map(_is_open, methods))
    return all(map(_says_nothing, node.body))


def _says_nothing(node: ast.stmt) -> bool:
    if isinstance(node, ast.Raise):
        return any(_word(each) == "NotImplementedError" for each in ast.walk(node))
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
