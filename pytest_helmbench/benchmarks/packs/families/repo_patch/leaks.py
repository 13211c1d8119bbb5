"""Places where an agent could read the patch that it is to write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_helmbench.benchmarks.packs.task import PackTask, PlannedFile

__all__ = ["gold_leaks"]

_LARGEST = 16 * 1024 * 1024
_LEAST_CHARACTERS = 12


def gold_leaks(task: PackTask, gold: str, assets: Sequence[PlannedFile]) -> Iterator[str]:
    """Yield the public files and fields of a row in which all lines stand that its gold patch adds.

    Args:
        task: The row.
        gold: Its gold patch; empty for none.
        assets: Public files of the row.
    """
    added = [line[1:].strip() for line in gold.splitlines() if line.startswith("+") and line[:3] != "+++"]
    added = [line for line in added if line]
    if sum(map(len, added)) < _LEAST_CHARACTERS:
        return
    for item in assets:
        if not item.is_folder and item.size <= _LARGEST:
            text = item.source.read_bytes().decode("utf-8", "replace")
            if _holds(text, added):
                yield f"the public asset {item.target!r}"
    for name, value in task.public().items():
        if name != "assets" and _holds(str(value), added):
            yield f"input.{name}"


def _holds(text: str, added: Sequence[str]) -> bool:
    lines = {line.lstrip("+ \t").strip() for line in text.splitlines()}
    return all(line in lines or line.lstrip("+ \t") in lines for line in added)
