"""Places where an agent could read the patch that it is to write."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress

from pytest_helmbench.benchmarks.packs.families.repo_patch.diff import MalformedPatchError, read_patch
from pytest_helmbench.benchmarks.packs.task import PackTask, PlannedFile
from pytest_helmbench.core.json_types import JsonValue
from pytest_helmbench.core.light_dataclass import dataclass

__all__ = ["gold_leaks"]

_LARGEST = 16 * 1024 * 1024
_LEAST_CHARACTERS = 12
_DEEPEST = 3  # JSON in a string of JSON
_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*+"?')
_HUNK = re.compile(r"@@ -\d")
_MARKS = ("+", "-", " ")
_BINARY = "\nGIT binary patch\n"
_HASHES = ("index ", "similarity index ", "dissimilarity index ")


def gold_leaks(task: PackTask, gold: str, assets: Sequence[PlannedFile]) -> Iterator[str]:
    """Yield the public files and fields of a row in which its gold patch stands, or what it makes of a file.

    Args:
        task: The row.
        gold: Its gold patch; empty for none.
        assets: Public files of the row.
    """
    leak = _Leak.of(gold)
    for item in assets:
        if not item.is_folder and item.size <= _LARGEST:
            text = item.source.read_bytes().decode("utf-8", "replace")
            if leak.is_in(text):
                yield f"the public asset {item.target!r}"
    for name, value in task.public().items():
        if name != "assets" and leak.is_in("\n".join(_texts(value))):
            yield f"input.{name}"


@dataclass(frozen=True, slots=True)
class _Leak:
    """What gives a patch away. Lines are bare of what quotes, lists and code blocks put before them.

    Args:
        added: All lines that it adds, in any order; none where they are too few to be told by.
        written: Then each of its changes as the patch has it, with the line before and the line behind; of a patch
            without hunks what it says of each file.
        made: Then each of its hunks as it leaves the file.
    """

    added: frozenset[str]
    written: tuple[tuple[str, ...], ...]
    made: tuple[tuple[str, ...], ...]

    @staticmethod
    def of(gold: str) -> _Leak:
        """Return what gives this patch away."""
        try:
            patch = read_patch(gold)
        except MalformedPatchError:  # whoever applies it finds that too
            return _Leak(frozenset(), (), ())
        hunks = [[line for line in hunk if line[1:].strip()] for hunk in _hunks(patch.text) if hunk]
        if not hunks:
            heads = tuple(piece for change in patch.changes for piece in _head(change.text))
            return _Leak(frozenset(), heads if _are_enough(heads) else (), ())
        added = frozenset(_bare(line[1:]) for hunk in hunks for line in hunk if line[0] == "+") - {""}
        if _are_enough([tuple(added)]):
            return _Leak(added, (), ())
        written = tuple(change for hunk in hunks for change in _changes(hunk))
        made = tuple(_made(hunk) for hunk in hunks)
        return _Leak(
            frozenset(),
            written if _are_enough(written) else (),
            made if all(made) and _are_enough(made) else (),
        )

    def is_in(self, text: str, depth: int = 0) -> bool:
        """Return whether a text, or one in a string of it, gives the patch away."""
        lines = text.split("\n")
        if self.added and self.added <= {_bare(line) for line in lines}:
            return True
        if self.written and _stand_in(self.written, [_marked(line) for line in lines]):
            return True
        if self.made and _stand_in(self.made, [_bare(line) for line in lines]):
            return True
        return depth < _DEEPEST and any(self.is_in(inner, depth + 1) for inner in _strings(text))


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield all texts of a value of a row."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _texts(inner)


def _strings(text: str) -> Iterator[str]:
    """Yield the strings of several lines that a text holds in the form of JSON."""
    for found in _STRING.finditer(text):
        if "\\n" in found[0]:
            with suppress(ValueError):
                yield str(json.loads(found[0], strict=False))


def _hunks(patch: str) -> Iterator[list[str]]:
    """Yield the lines of each hunk, with their marks."""
    hunk: list[str] = []
    for line in re.sub(r"(?m)^--- .*\n\+\+\+ .*$", "diff", patch).split("\n"):
        if line[:1] in _MARKS and hunk:
            hunk.append(line)
        elif line and not line.startswith("\\"):
            yield hunk[1:]
            hunk = [line] if _HUNK.match(line) else []
    yield hunk[1:]


def _head(change: str) -> Iterator[tuple[str, ...]]:
    """Yield what a patch says of a file that it renames, makes, empties or changes as a whole; not the hashes."""
    before, binary, data = change.partition(_BINARY)
    lines = [line for line in before.split("\n") if line.strip() and not line.startswith(_HASHES)]
    moves = [line for line in lines if line.startswith(("rename ", "copy "))]
    yield from ((_marked(line),) for line in moves or lines)
    if binary:
        yield tuple(_marked(line) for line in data.split("\n") if line.strip())


def _changes(hunk: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each run of changed lines of a hunk with the lines around it, as it is written."""
    at = 0
    while at < len(hunk):
        end = at
        while end < len(hunk) and hunk[end][0] in "+-":
            end += 1
        if end > at:
            yield tuple(_marked(line) for line in hunk[max(at - 1, 0) : end + 1])
        at = end + 1


def _made(hunk: Sequence[str]) -> tuple[str, ...]:
    """Return what a hunk leaves in the file; nothing where the file holds the same without the change."""
    new = tuple(_bare(line[1:]) for line in hunk if line[0] != "-")
    old = [_bare(line[1:]) for line in hunk if line[0] != "+"]
    return () if _stand_in([new], old) else new


def _are_enough(pieces: Sequence[Sequence[str]]) -> bool:
    """Return whether there are so many characters that nobody writes them by chance."""
    return sum(len(line) for piece in pieces for line in piece) >= _LEAST_CHARACTERS


def _stand_in(pieces: Sequence[Sequence[str]], lines: Sequence[str]) -> bool:
    """Return whether the lines of each piece stand there one after the other; empty lines do not count."""
    whole = "\n".join(("", *filter(None, lines), ""))
    return all("\n".join(("", *piece, "")) in whole for piece in pieces)


def _bare(line: str) -> str:
    """Return a line without what stands before it in quotes, code blocks and patches that add it."""
    return line.lstrip("+> \t").rstrip()


def _marked(line: str) -> str:
    """Return a line of a patch, bare but for its mark."""
    text = line.lstrip("> \t").rstrip()
    return text[0] + text[1:].strip() if text.startswith(("+", "-")) else text
