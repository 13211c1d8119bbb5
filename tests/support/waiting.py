"""Waiting for other processes, threads and tasks: a test depends on the event, not on its time."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["PATIENCE_S", "lives", "until", "until_async"]

PATIENCE_S = 120.0
"""An event that takes a second on a quiet machine comes within this time under load, or never."""


def until(condition: Callable[[], object], what: str = "what is waited for") -> None:
    """Wait until a condition holds that other processes or threads fulfil."""
    for pause_s in _pauses(condition, what):
        time.sleep(pause_s)


async def until_async(condition: Callable[[], object], what: str = "what is waited for") -> None:
    """Wait until a condition holds that other tasks, too, may fulfil."""
    for pause_s in _pauses(condition, what):
        await asyncio.sleep(pause_s)


def lives(pid: int) -> bool:
    """Return whether a process is there and has not ended; a zombie that its parent has not buried yet has."""
    state = Path(f"/proc/{pid}/stat")
    try:
        os.kill(pid, 0)
        return not state.exists() or state.read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (ProcessLookupError, FileNotFoundError):  # in reading, too
        return False


def _pauses(condition: Callable[[], object], what: str) -> Iterator[float]:
    end, pause_s = time.monotonic() + PATIENCE_S, 0.002
    while not condition():
        assert time.monotonic() < end, f"in vain: {what}"
        yield pause_s
        pause_s = min(pause_s * 1.2, 0.05)  # to look costs CPU time that the others need
