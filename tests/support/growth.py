"""Whether a cost grows with a length or with its square: a ratio within one run, which load does not change."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import TypeVar

_Input = TypeVar("_Input")

__all__ = ["grows_in_proportion"]

_TIMES_LONGER = 8
_SPREAD = 3  # cost that grew with the square would be eight times its share
_TINY_S = 0.1
_TRIES = 12


def grows_in_proportion(work: Callable[[_Input], object], made: Callable[[int], _Input], length: int) -> bool:
    """Return whether `work` of a `length` costs about eight times as much CPU time as work of an eighth of it.

    `length` is such that cost that grows with its square takes seconds: a tenth of a second is never too much.
    The least of several tries counts where load lies upon one of them.
    """
    short_s = long_s = float("inf")
    for _ in range(_TRIES):
        long_s = min(long_s, _cost_s(work, made(length)))
        if long_s < _TINY_S:
            return True
        short_s = min(short_s, _cost_s(work, made(length // _TIMES_LONGER)))
        if long_s < _TINY_S + _SPREAD * _TIMES_LONGER * short_s:
            return True
    return False


def _cost_s(work: Callable[[_Input], object], given: _Input) -> float:
    collects = gc.isenabled()
    gc.disable()  # it would walk through all that earlier tests have left
    try:
        start = time.thread_time()
        work(given)
        return time.thread_time() - start
    finally:
        if collects:
            gc.enable()
