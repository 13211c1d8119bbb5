"""The path policy of packs: paths and mounts that one may name, told by their text alone."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

RESERVED_ROOTS = ("securebench", "eval", "scorer", "ground_truth")
"""First parts of a mount that belong to evaluators.

Source:
    Benchmark packs, section 3.
"""

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_DRIVE = re.compile(r"[A-Za-z]:")
_LONGEST_PART = 255  # bytes, of every usual file system
_LONGEST = 4096  # bytes


def trimmed(path: str) -> str:
    """Return a path without the one slash that may end a folder's name."""
    return path.removesuffix("/")


def path_fault(path: str) -> str | None:
    """Return why a text is not a relative POSIX path that stays where it starts; None for one that is."""
    if not path or path.isspace():
        return "is empty"
    if _CONTROL.search(path):
        return "holds a control character"
    if "\\" in path:
        return "holds a backslash"
    if path.startswith("/") or _DRIVE.match(path):
        return "is not relative"
    parts = trimmed(path).split("/")
    if ".." in parts:
        return "leads out by '..'"
    if "" in parts:
        return "has an empty part"
    if "." in parts:
        return "has a part '.'"
    if not path.isascii() and any(set(part) <= {"."} or "/" in part or "\\" in part for part in folded(path)):
        return "looks like another path once its characters are normalised"
    sizes = [len(part.encode()) for part in parts]
    if max(sizes) > _LONGEST_PART or sum(sizes) > _LONGEST:
        return "is too long"
    return None


def mount_fault(mount: str) -> str | None:
    """Return why nothing may be mounted there; None for a place that is free."""
    fault = path_fault(mount)
    if fault is None and folded(mount)[0] in RESERVED_ROOTS:
        return f"lies under the reserved folder '{folded(mount)[0]}/'"
    return fault


def folded(path: str) -> tuple[str, ...]:
    """Return the parts of a path such that names which some file system takes for equal are equal."""
    return tuple(
        unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", part).casefold())
        for part in trimmed(path).split("/")
    )


def overlap(first: str, second: str) -> bool:
    """Return whether two paths are equal or one lies inside the other."""
    one, other = folded(first), folded(second)
    shorter = min(len(one), len(other))
    return one[:shorter] == other[:shorter]


def clashes(paths: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Yield positions of paths that are equal to, or lie inside, an earlier or outer one (outer, inner)."""
    ordered: Iterable[tuple[tuple[str, ...], int]] = sorted(
        (folded(path), index) for index, path in enumerate(paths)
    )
    outer: tuple[tuple[str, ...], int] | None = None
    for parts, index in ordered:
        if outer is not None and parts[: len(outer[0])] == outer[0]:
            yield outer[1], index
        else:
            outer = (parts, index)
