"""The program that a reply represents: which of its blocks, and how much of the starter goes before them.

Syntax trees are asked for through `compile`: the `ast` module costs half a start of Python, and `typing` more.
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
    Name,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import CodeType, ModuleType

    from pytest_helmbench.benchmarks.packs.families.code_completion.inside.frames import ReplyJob

REPLY, STARTER = "reply.py", "starter.py"
"""Names of the parts, as tracebacks have them."""

_ONLY_TREE = 0x400  # ast.PyCF_ONLY_AST
_TOO_MUCH = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_AROUND = (_ast.If, _ast.Try, getattr(_ast, "TryStar", _ast.Try), _ast.With)
"""Statements that others stand in, which run with the module."""

_PLACEHOLDERS = ("pass", "...", "raise NotImplementedError", "return NotImplemented", "# ", "#TODO")
_INDENT = "    "


def load(job: ReplyJob, module: ModuleType) -> None:
    """Run a reply's program in a module."""
    flags = 0
    for name, text in composed(job):
        code = compile(text, name, "exec", flags, dont_inherit=True)
        if name != REPLY and "__future__" in text:
            flags = code.co_flags & __import__("__future__").annotations.compiler_flag
        exec(code, vars(module))


def composed(job: ReplyJob) -> list[tuple[str, str]]:
    """Return the parts of a program in the order in which they run, each with its name."""
    declared = job["declared"]
    code = _chosen(job["blocks"], declared) if job["blocks"] else job["reply"]
    if not job["starter"].strip():
        return [(REPLY, code)]
    if declared and tree_of(code) is not None and set(declared) <= set(_names(code)):
        return [(STARTER, job["imports"]), (REPLY, code)]
    if _is_valid(job["whole"]) and _is_valid(code):
        return [(STARTER, job["whole"]), (REPLY, code)]
    return [(REPLY, _as_body(code, job["starter"], set(declared)))]


def trace_of(error: BaseException) -> list[tuple[str, int]]:
    """Return the files and lines that an exception has come through, the one where it was raised last."""
    found = []
    trace = error.__traceback__
    while trace is not None:
        found.append((trace.tb_frame.f_code.co_filename, trace.tb_lineno))
        trace = trace.tb_next
    if isinstance(error, SyntaxError) and error.filename == REPLY:
        found.append((REPLY, error.lineno or 0))
    return found


def builtin_name(error: BaseException) -> str:
    """Return Python's own name for an exception: that of the nearest class which it derives from."""
    every = vars(__import__("builtins"))
    return next(str(cls.__name__) for cls in type(error).__mro__ if every.get(cls.__name__) is cls)


def tree_of(text: str) -> _ast.Module | None:
    """Return the module's syntax tree; None when the text is not Python."""
    try:
        tree: _ast.Module = compile(text, "text", "exec", _ONLY_TREE, dont_inherit=True)
    except _TOO_MUCH:
        return None
    return tree


def _compiled(text: str) -> CodeType | None:
    """Return what the text is run as; None where it cannot be, as with what only the compiler refuses."""
    try:
        return compile(text, "text", "exec", dont_inherit=True)
    except _TOO_MUCH:
        return None


def _is_valid(text: str) -> bool:
    return _compiled(text) is not None


def _nodes(top: AST) -> Iterator[AST]:
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


def top_statements(tree: _ast.Module | None) -> Iterator[_ast.stmt]:
    """Yield the statements of a module in order, those in `if`, `try` and `with` too; none for no module."""
    todo = list(reversed(tree.body)) if tree is not None else []
    while todo:
        node = todo.pop()
        yield node
        if isinstance(node, _AROUND):
            for field in ("finalbody", "orelse", "body"):
                todo += reversed(getattr(node, field, []))
            for handler in getattr(node, "handlers", []):
                todo += reversed(handler.body)


def names_of(tree: _ast.Module | None) -> dict[str, str]:
    """Return every name that a module has when it has run, with the kind of it; none for no module."""
    found: dict[str, str] = {}
    for node in top_statements(tree):
        if isinstance(node, (FunctionDef, AsyncFunctionDef)):
            found[node.name] = "function"
        elif isinstance(node, ClassDef):
            found[node.name] = "class"
        elif isinstance(node, (Assign, AnnAssign)):
            for target in node.targets if isinstance(node, Assign) else [node.target]:
                found.update((name.id, "value") for name in _nodes(target) if isinstance(name, Name))
        elif isinstance(node, (Import, ImportFrom)):
            found.update((alias.asname or alias.name.partition(".")[0], "import") for alias in node.names)
    return found


def _names(text: str) -> dict[str, str]:
    return names_of(tree_of(text))


def _used(text: str) -> tuple[set[str], set[str]]:
    """Return the names that a text takes from around it when it is loaded, and those that any of it ever takes."""
    code = _compiled(text)
    todo, every = [code] if code is not None else [], set[str]()
    while todo:
        inner = todo.pop()
        every |= set(inner.co_names)
        todo += [part for part in inner.co_consts if isinstance(part, type(inner))]
    return set(code.co_names) if code is not None else set(), every


def _chosen(blocks: list[str], declared: dict[str, str]) -> str:
    """Return the last block that defines what the starter declares, with the blocks it builds on; else all.

    A block that imports such a name is an example, and so is one that uses it before it is there.
    """
    wanted = [name for name, kind in declared.items() if kind != "value"]
    found = list(map(_names, blocks))
    defines = [{name for name, kind in names.items() if kind != "import"} for names in found]
    places = {name: place for names in (found, defines) for place, each in enumerate(names) for name in each}
    picked = {places[name] for name in wanted if name in places}
    if not picked:
        made = {name for names in found for name, kind in names.items() if kind in ("function", "class")}
        own = [block for block, names, kept in zip(blocks, found, defines) if not made & (set(names) - kept)]
        joined = "\n\n".join(own or blocks)
        # A block that is not Python (a shell command, some output) does not spoil those that are.
        sound = [block for block in own or blocks if _is_valid(block)]
        return joined if _is_valid(joined) or not sound else "\n\n".join(sound)
    uses = list(map(_used, blocks))
    early = [
        {name for name in at_once if name in wanted and places.get(name, place) >= place} - defines[place]
        for place, (at_once, _) in enumerate(uses)
    ]
    while True:
        have = {name for place in picked for name in found[place]}
        needs = {name for place in picked for name in uses[place][1]} - have
        more = {places[name] for name in needs if name in places and places[name] < max(picked)}
        more = {place for place in more - picked if not early[place]}
        if not more:
            return "\n\n".join(blocks[place] for place in sorted(picked))
        picked |= more


def _as_body(code: str, starter: str, declared: set[str]) -> str:
    """Return starter and code as one text, the code as the body that the starter lacks, if that makes a program."""
    lines = code.strip("\n").splitlines()
    bodies = [code.strip("\n"), "\n".join(_INDENT + line for line in lines)]
    if len(lines) > 1:  # a reply whose blanks were stripped at the start
        bodies.append(_INDENT + "\n".join(lines))
    for body in bodies:
        for start in (_without_placeholder(starter), starter):
            text = start.rstrip() + "\n" + body + "\n"
            if _is_valid(text) and declared <= set(_names(text)):
                return text
    return code


def _without_placeholder(starter: str) -> str:
    lines = starter.rstrip().splitlines()
    while lines and (not lines[-1].strip() or lines[-1].strip().startswith(_PLACEHOLDERS)):
        lines.pop()
    return "\n".join(lines)
