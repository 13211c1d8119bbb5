"""Our own process, closed to other programs of the same user: it holds keys, and says what a verdict is."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["close_to_others"]

_PR_SET_DUMPABLE = 4


def close_to_others() -> None:
    """Keep programs of the same user from reading our environment and memory, and from writing into it.

    `/proc/PID/environ` and `/proc/PID/mem` belong to root then. Elsewhere than on Linux nothing is done.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
