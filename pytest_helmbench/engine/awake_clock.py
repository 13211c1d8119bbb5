"""A clock that stands still with its process: a pause of the machine or of a container is no time of a case."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

__all__ = ["AwakeClock"]

_TICK_S = 0.5
_STANDSTILL_S = 2.0  # no loop that runs leaves out its ticks for so long


class AwakeClock:
    """Monotonic seconds, without those in which nothing in this process ran.

    Args:
        clock: Monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._last = clock()
        self._lost_s = 0.0
        self._ticks = False

    def __call__(self) -> float:
        """Return the seconds."""
        now = self._clock()
        gap_s = now - self._last
        if self._ticks and gap_s > _STANDSTILL_S:
            self._lost_s += gap_s - _TICK_S
        self._last = now
        return now - self._lost_s

    def start(self) -> None:
        """Look at the time twice a second from now on, on the running loop; until then nothing is left out."""
        if not self._ticks:
            self()
            self._ticks = True
            self._tick()

    def _tick(self) -> None:
        self()
        asyncio.get_running_loop().call_later(_TICK_S, self._tick)
