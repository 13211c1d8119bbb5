"""The time of an item whose own code runs beside its model calls."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pytest_helmbench.gateway.case_clock import CaseClock
from pytest_helmbench.gateway.retries import Patience

__all__ = ["ItemClock"]


class ItemClock(CaseClock):
    """Counts all the time of an item but what its requests wait in our own queues.

    Args:
        patience: Its limit.
        clock: Monotonic seconds.
    """

    def __init__(self, patience: Patience, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(patience, clock)
        self._now = clock
        self._asked = 0
        self._out = 0
        self._began = clock()
        self._waited_s = 0.0
        self._waits_since: float | None = None

    def begin(self) -> None:
        """Count from now on: the item's code starts, or starts over."""
        self._began = self._now()
        self._waited_s = 0.0
        if self._waits_since is not None:
            self._waits_since = self._began

    def used_s(self) -> float:
        """Return the seconds since `begin`, without those in which every open request waited for leave."""
        now = self._now()
        waiting_s = 0.0 if self._waits_since is None else now - self._waits_since
        return now - self._began - self._waited_s - waiting_s

    @contextmanager
    def asking(self) -> Iterator[None]:
        """See `CaseClock.asking`."""
        self._count(asked=1)
        try:
            yield
        finally:
            self._count(asked=-1)

    @contextmanager
    def running(self) -> Iterator[None]:
        """See `CaseClock.running`."""
        self._count(out=1)
        try:
            with super().running():
                yield
        finally:
            self._count(out=-1)

    def _count(self, asked: int = 0, out: int = 0) -> None:
        self._asked += asked
        self._out += out
        waits = self._asked > 0 and self._out == 0
        if waits and self._waits_since is None:
            self._waits_since = self._now()
        elif not waits and self._waits_since is not None:
            self._waited_s += self._now() - self._waits_since
            self._waits_since = None
