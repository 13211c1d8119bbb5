"""The code in a reply: its fenced blocks."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_helmbench.core.light_dataclass import dataclass

_FENCE = re.compile(r"([ \t]*+(?:>[ \t]?)*+)(`{3,}+|~{3,}+)([^`\n]*+)")
_RUN = re.compile(r"`{3,}|~{3,}")


@dataclass(frozen=True, slots=True)
class CodeBlock:
    """One fenced block.

    Args:
        label: The first word behind the fence, lower-case; empty for none.
        text: What stands in it, without the indentation of the fence.
    """

    label: str
    text: str


def code_blocks(text: str) -> tuple[CodeBlock, ...]:
    """Return the fenced blocks in order; one that is never closed goes to the end.

    A fence without label and without partner may be the end of code as well as its start: both sides are blocks.
    """
    blocks: list[CodeBlock] = []
    fence, prefix, label = "", "", ""
    outside, inside = list[str](), list[str]()
    for marked in text.split("\n"):
        line = marked.removeprefix("\ufeff")
        found = _FENCE.fullmatch(line)
        words = [] if found is None else found[3].split()
        fits = found is not None and found[2].startswith(fence)
        if found is not None and fits and (not fence or (words and not label)):
            blocks += _unpaired(outside, inside) if fence else ()
            prefix, fence, label, inside = found[1], found[2], words[0] if words else "", []
        elif fence and fits and not words:
            blocks.append(CodeBlock(_label(label), "\n".join(inside)))
            fence, outside = "", []
        elif fence:
            inside.append(_without(prefix, line).rstrip("\r"))
        else:
            outside.append(line.rstrip("\r"))
    if fence and label:
        blocks.append(CodeBlock(_label(label), "\n".join(inside)))
    elif fence:
        blocks += _unpaired(outside, inside)
    return tuple(blocks)


def _unpaired(before: list[str], behind: list[str]) -> Iterator[CodeBlock]:
    """Yield what stands on the two sides of a fence that has no partner."""
    for lines in (before, behind):
        if any(map(str.strip, lines)):
            yield CodeBlock("", "\n".join(lines))


def fenced(code: str, label: str = "") -> str:
    """Return code in a fence that nothing inside it can close."""
    longest = max((len(run) for run in _RUN.findall(code)), default=2)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{label}\n{code}\n{fence}"


def _label(word: str) -> str:
    return word.strip("{}.").lower()


def _without(prefix: str, line: str) -> str:
    """Take the fence's own indentation off a line, as far as the line has it."""
    for shown, meant in zip(prefix, line, strict=False):
        if meant not in (shown, " ", "\t"):
            break
        line = line[1:]
    return line
