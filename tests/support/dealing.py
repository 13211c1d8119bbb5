"""The order of all tests for workers of pytest-xdist: each begins with its share of the slow files.

A worker gets one run of neighbouring tests at first, and what others have left at the end. So slow files are dealt to
the workers one by one, those that wait beside those that compute, and what is left over at the end is short.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import groupby
from pathlib import Path
from typing import TypeVar

__all__ = ["dealt", "slow_files"]

_T = TypeVar("_T")
_LIST = Path(__file__).with_name("slow_files.txt")


def slow_files() -> dict[str, int]:
    """Return the place of each file in the list of those that take longest, by its path below `tests`."""
    lines = _LIST.read_text(encoding="utf-8").splitlines()
    return {line: place for place, line in enumerate(line for line in lines if not line.startswith("#"))}


def dealt(
    tests: Sequence[_T], workers: int, *, file: Callable[[_T], Hashable], rank: Callable[[_T], int | None]
) -> list[_T]:
    """Return the tests in the order in which pytest-xdist cuts them into one run per worker.

    Args:
        tests: Those of a file are neighbours, and stay so.
        workers: How many runs are cut.
        file: Where a test stands.
        rank: The same for all tests of a file: those with the least are dealt first; None for what fills up.
    """
    files = [list(group) for _, group in groupby(tests, file)]
    slow = [group for group in files if rank(group[0]) is not None]
    slow.sort(key=lambda group: rank(group[0]) or 0)
    quick = [test for group in files if rank(group[0]) is None for test in group]
    hands: list[list[_T]] = [[] for _ in range(workers)]
    for place, group in enumerate(slow):
        turn, seat = divmod(place, workers)
        hands[seat if turn % 2 == 0 else workers - 1 - seat] += group
    left = len(tests)
    for place, hand in enumerate(hands):
        size = left // (workers - place)
        filling = max(0, size - len(hand))
        hand.extend(quick[:filling])
        del quick[:filling]
        left -= size
    return [test for hand in hands for test in hand] + quick
