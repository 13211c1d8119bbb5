"""The part of a reply in which its patch stands: fenced blocks, or the text itself."""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["has_signs_of_a_patch", "patch_blocks"]

_HEADER = re.compile(r"^(?:diff --git |--- |\+\+\+ |@@ -)[^\n]*$", re.MULTILINE)
_FENCE = re.compile(r"([ \t]*)((?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})[^`]*$")
_SIGNS = re.compile(
    r"^[> \t]*(?:diff --git |@@ |\*\*\* Begin Patch|(?:`{3,}|~{3,})(?:diff|patch)\b)|(?:^|\\n)@@ -\d",
    re.MULTILINE,
)


def has_signs_of_a_patch(text: str) -> bool:
    """Return whether a text seems to hold a patch, of whatever form."""
    return _SIGNS.search(text) is not None


def patch_blocks(text: str) -> list[str]:
    """Return the fenced blocks of a reply that hold a patch; the whole text when there are none.

    Fences may be indented, as in lists, but not below a patch that stands outside of them: its own lines are indented
    too. Where all headers of a block end with CRLF, it is returned without.
    """
    found = [block for block in _fenced(text) if _HEADER.search(block)] or [text]
    return [_with_plain_ends(block) for block in found]


def _fenced(text: str) -> list[str]:
    """Return what stands in fences."""
    blocks: list[str] = []
    inside: list[str] | None = None
    indent = fence = ""
    is_patch = False
    for line in text.split("\n"):
        if inside is None:
            found = _FENCE.match(line)
            if found is not None and not (is_patch and found.start(3)):
                # What follows a list's mark stands below what stands behind it.
                indent, fence, inside = found[1] + " " * len(found[2] or ""), found[3], []
            is_patch = is_patch or _HEADER.match(line) is not None
        elif _ends(line.removeprefix(indent), fence):
            blocks.append(_without(indent, inside))
            inside = None
        else:
            inside.append(line)
    if inside is not None:  # the reply was cut
        blocks.append(_without(indent, inside))
    return blocks


def _ends(line: str, fence: str) -> bool:
    return line.startswith(fence) and not line.strip(f"{fence[0]} \t\r")


def _without(indent: str, lines: Sequence[str]) -> str:
    """Return the lines of a block without the indent of its fence, where all of them have it."""
    if all(line.startswith(indent) or not line.strip() for line in lines):
        lines = [line[len(indent) :] for line in lines]
    return "\n".join(lines)


def _with_plain_ends(text: str) -> str:
    """Return the text without CRs that came with its transport; those of the files themselves stay."""
    headers = _HEADER.findall(text)
    if headers and all(line.endswith("\r") for line in headers):
        return re.sub(r"\r$", "", text, flags=re.MULTILINE)
    return text
