"""The parts of its starter that a reply leaves unwritten, in words: for failures whose cause they may be."""

from __future__ import annotations

from _ast import AsyncFunctionDef, ClassDef, FunctionDef

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.compose import compose
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.suite import is_open
from pytest_helmbench.benchmarks.packs.families.code_completion.inside.syntax import (
    completed,
    declared_names,
    defined_names,
    top_statements,
    tree_of,
)

__all__ = ["unwritten"]

_MOST_NAMED = 3
_LONGEST = 80
_FUNCTIONS = (FunctionDef, AsyncFunctionDef)


def unwritten(blocks: list[str], reply: str, starter: str) -> str:
    """Return that the starter's functions and classes stand as they were, in a sentence; empty where they do not.

    Args:
        blocks: The reply's fenced blocks, in order.
        reply: All of it, for a reply without any.
        starter: Where the row's code starts; may be empty.
    """
    starting = tree_of(completed(starter))
    own = tree_of(compose(blocks, reply, starter)[-1][1])
    if starting is None or own is None:
        return ""
    made = defined_names(own)
    declared = [node for node in top_statements(starting) if isinstance(node, (*_FUNCTIONS, ClassDef))]
    missing = [node for node in declared if node.name not in made]
    left = [node.name for node in missing if _is_open(node)]
    if not left and len(missing) == len(declared):
        left = [node.name for node in missing]
    if not left:
        return ""
    others = [name for name, kind in declared_names(own).items() if kind != "value"]
    defines = f"; it defines {_named(others)}" if others else ""
    return f"the reply does not define {_named(left)}, which the starter declares{defines}"


def _is_open(node: FunctionDef | AsyncFunctionDef | ClassDef) -> bool:
    if not isinstance(node, ClassDef):
        return is_open(node)
    methods = [each for each in node.body if isinstance(each, _FUNCTIONS)]
    return any(map(is_open, methods)) if methods else is_open(node)


def _named(names: list[str]) -> str:
    return ", ".join(repr(name[:_LONGEST]) for name in dict.fromkeys(names[:_MOST_NAMED]))
