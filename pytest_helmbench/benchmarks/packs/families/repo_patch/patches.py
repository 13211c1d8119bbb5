"""The patch in a reply, and places where an agent could read the one that it is to write.

Git alone says which paths a patch touches (`applier`). Here it is only cut out of the text around it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from pytest_helmbench.benchmarks.packs.task import PackTask, PlannedFile
from pytest_helmbench.core.problem import HelmbenchError
from pytest_helmbench.core.scrub import without_surrogates

_HEADER = re.compile(r"^(?:diff --git |--- |\+\+\+ |@@ -)[^\n]*$", re.MULTILINE)
_SECTION = re.compile(r"^(?=diff --git )|^(?=--- .*\n\+\+\+ .*\n@@ )", re.MULTILINE)
_GIT_NAMES = re.compile(r'diff --git "?([abciow])/.* "?([abciow])/')
_PREFIX = re.compile(r'"?([abciow])/')
_NO_FILE = "/dev/null"
_LARGEST_ASSET = 16 * 1024 * 1024
_LEAST_CHARACTERS = 12
_FENCE = re.compile(r"([ \t]*)((?:[-*+]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})[^`]*$")
_SIGNS = re.compile(
    r"^[> \t]*(?:diff --git |@@ |\*\*\* Begin Patch|(?:`{3,}|~{3,})(?:diff|patch)\b)|(?:^|\\n)@@ -\d",
    re.MULTILINE,
)


class MalformedPatchError(HelmbenchError):
    """A text is not a patch that can be applied."""


def encoded(text: str) -> bytes:
    """Return the bytes of a text; those that were not UTF-8 when it was read come out as they were."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return without_surrogates(text).encode()


def read_patch(text: str) -> str:
    """Return a patch, or the patch in a reply: fences and what stands before it are left out.

    Where fenced blocks hold several patches to a file, the last one stands. A patch that arrived with CRLF at the
    end of its own headers is returned without.

    Raises:
        MalformedPatchError: There is none.
    """
    kept: list[str] = []
    taken: set[str] = set()
    for block in reversed(patch_blocks(text)):
        sections = {each: _head(each) for each in _SECTION.split(block) if _SECTION.match(each)}
        kept += reversed([each for each, head in sections.items() if head not in taken])
        taken.update(sections.values())
    if not kept:
        what = "there seems to be a patch in it, but none that git reads"
        what = what if _SIGNS.search(text) else "there is no patch in it"
        raise MalformedPatchError(f"{what}: no line starts with 'diff --git' or '---'")
    return "".join(reversed(kept))


def patch_in_reply(text: str) -> str:
    """Return the patch in a reply, or the whole reply where it seems to hold one of another form; empty for none."""
    try:
        return read_patch(text)
    except MalformedPatchError:
        return text if _SIGNS.search(text) else ""


def strip_of(patch: str) -> int:
    """Return how many leading parts of a patch's paths git is to leave out: 1 for `a/` and `b/`, else 0."""
    return 1 if all(map(_is_prefixed, _SECTION.split(patch))) else 0


def _is_prefixed(section: str) -> bool:
    """Return whether both names start as git's do: with one letter each, not the same one."""
    both = _GIT_NAMES.match(section)
    if both is not None:
        return both[1] != both[2]
    names = [line[4:] for line in section.splitlines()[:2] if line[:4] in ("--- ", "+++ ")]
    letters = [found[1] for name in names if (found := _PREFIX.match(name))]
    real = [name for name in names if not name.startswith(_NO_FILE)]
    return len(letters) == len(real) == len(set(letters)) and not section.startswith("diff --git ")


def _head(section: str) -> str:
    """Return what tells a section from those of other files."""
    line = section.split("\n", 2)[section.startswith("--- ")]
    return line.partition("\t")[0]


def patch_blocks(text: str) -> list[str]:
    """Return the fenced blocks of a reply that hold a patch; the whole text when there are none.

    Fences may be indented, as in lists, but not below a patch that stands outside of them: its own lines are indented
    too. Where all headers of a block end with CRLF, it is returned without.
    """
    found = [block for block in _fenced(text) if _HEADER.search(block)] or [text]
    return [_with_plain_ends(block).rstrip("\n") + "\n" for block in found]


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
                # The lines of a list's item stand below the text behind its mark.
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


def gold_leaks(task: PackTask, gold: str, assets: Sequence[PlannedFile]) -> Iterator[str]:
    """Yield the public files and fields of a row in which all lines stand that its gold patch adds."""
    added = [line[1:].strip() for line in gold.splitlines() if re.match(r"\+(?!\+\+ )", line)]
    if sum(map(len, added)) < _LEAST_CHARACTERS:  # so few stand anywhere by chance
        return
    for item in assets:
        if not item.is_folder and item.size <= _LARGEST_ASSET:
            text = item.source.read_bytes().decode("utf-8", "replace")
            if all(line in text for line in added):
                yield f"the public asset {item.target!r}"
    for name, value in task.public().items():
        if name != "assets" and all(line in str(value) for line in added):
            yield f"input.{name}"
