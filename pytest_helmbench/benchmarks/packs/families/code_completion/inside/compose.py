"""The program that a reply stands for: which of its blocks, and how much of the starter goes before them."""

from __future__ import annotations

from pytest_helmbench.benchmarks.packs.families.code_completion.inside.syntax import (
    completed,
    declared_names,
    defined_names,
    import_lines,
    is_valid,
    tree_of,
    used_names,
)

__all__ = ["REPLY", "STARTER", "compose"]

STARTER, REPLY = "starter.py", "reply.py"
"""Names of the parts, as tracebacks have them."""

_PLACEHOLDERS = ("pass", "...", "raise NotImplementedError", "return NotImplemented", "# ", "#TODO")
_INDENT = "    "


def compose(blocks: list[str], reply: str, starter: str) -> list[tuple[str, str]]:
    """Return the parts of the program in the order in which they run, each with its name.

    Args:
        blocks: The reply's fenced blocks, in order.
        reply: All of it, for a reply without any.
        starter: Where the row's code starts; may be empty.
    """
    whole = completed(starter)
    tree = tree_of(whole)
    declared = declared_names(tree) if tree is not None else _declared_by_look(starter)
    code = _chosen(blocks, declared) if blocks else reply
    if not starter.strip():
        return [(REPLY, code)]
    own = tree_of(code)
    if own is not None and declared and set(declared) <= defined_names(own):
        imports = "\n".join(import_lines(whole, tree)) if tree is not None else ""
        return [(STARTER, imports), (REPLY, code)]
    if is_valid(whole) and is_valid(code):
        return [(STARTER, whole), (REPLY, code)]
    return [(REPLY, _as_body(code, starter, set(declared)))]


def _chosen(blocks: list[str], declared: dict[str, str]) -> str:
    """Return the last block that defines what the starter declares, with the blocks it builds on; else all."""
    wanted = [name for name, kind in declared.items() if kind != "value"]
    trees = [tree_of(block) for block in blocks]
    defines = [defined_names(tree) if tree is not None else frozenset() for tree in trees]
    uses = [used_names(tree) if tree is not None else frozenset() for tree in trees]
    places = {name: place for place, names in enumerate(defines) for name in names}
    picked = {places[name] for name in wanted if name in places}
    if not picked:
        joined = "\n\n".join(blocks)
        # What is no Python (a shell command, some output) does not spoil the blocks that are.
        sound = [block for block in blocks if is_valid(block)]
        return joined if is_valid(joined) or not sound else "\n\n".join(sound)
    while True:
        have = {name for place in picked for name in defines[place]}
        needs = {name for place in picked for name in uses[place]} - have
        more = {places[name] for name in needs if name in places and places[name] < max(picked)}
        if not more:
            return "\n\n".join(blocks[place] for place in sorted(picked))
        picked |= more


def _as_body(code: str, starter: str, declared: set[str]) -> str:
    """Return starter and code as one text, the code as the body that the starter lacks, if that makes a program."""
    lines = code.strip("\n").splitlines()
    bodies = [code.strip("\n"), "\n".join(_INDENT + line for line in lines)]
    if len(lines) > 1:  # a reply whose blanks were stripped at the start
        bodies.append(_INDENT + "\n".join(lines))
    starters = (_without_placeholder(starter), starter)
    for body in bodies:
        for start in starters:
            text = start.rstrip() + "\n" + body + "\n"
            tree = tree_of(text)
            if tree is not None and is_valid(text) and declared <= defined_names(tree):
                return text
    return code


def _without_placeholder(starter: str) -> str:
    lines = starter.rstrip().splitlines()
    while lines and (not lines[-1].strip() or lines[-1].strip().startswith(_PLACEHOLDERS)):
        lines.pop()
    return "\n".join(lines)


def _declared_by_look(starter: str) -> dict[str, str]:
    """Return what a starter declares that is no Python yet, such as a function without a body."""
    found = {}
    for line in starter.splitlines():
        words = line.replace("(", " ").replace(":", " ").split()
        if words[:1] == ["async"]:
            words = words[1:]
        if len(words) > 1 and words[0] in ("def", "class") and not line.startswith((" ", "\t")):
            found[words[1]] = "class" if words[0] == "class" else "function"
    return found
